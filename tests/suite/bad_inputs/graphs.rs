//! Captures, graphs, profiles and hooks that are used against their purpose.

use std::path::Path;

use exactile::prelude::*;
use exactile::{Error, Result, Stream};

use super::{Tried, adds, hosts};

#[test]
fn captures_of_anything() {
    let mut tried = Tried::default();
    for device in hosts() {
        let stream = device.stream().expect("is made");
        let other = device.stream().expect("is made");
        let x = Buffer::<f32>::zeros(&device, 8).expect("fits");
        let mut y = Buffer::<f32>::zeros(&device, 8).expect("fits");
        let kernel = adds();
        tried.call("nothing", || {
            let graph = stream.capture(|_| Ok(()))?;
            graph.replay(&stream, ())
        });
        tried.refused("fails", || {
            stream.capture(|_| Err(Error::Invalid("on purpose".to_string())))
        });
        tried.refused("inside", || {
            stream.capture(|stream| stream.capture(|_| Ok(())).map(drop))
        });
        for place in [&other, &stream] {
            tried.call("elsewhere", || {
                stream.capture(|_| kernel.launch(place, 1, (&x, &mut y, 8)))
            });
        }
        tried.refused("waits", || stream.capture(Stream::synchronize));
        tried.refused("event", || stream.capture(|it| it.event().map(drop)));
        tried.refused("reads", || stream.capture(|_| y.to_vec().map(drop)));
        tried.refused("runs elsewhere", || {
            stream.capture(|_| kernel.launch(&Device::cpu_single_thread(), 1, (&x, &mut y, 8)))
        });
        replays(&mut tried, &stream, (&x, &mut y));
    }
    tried.end(40);
}

/// A graph that is handed other arrays than it uses, and the same for less, replaced by what fails.
fn replays(tried: &mut Tried, stream: &Stream, (x, y): (&Buffer<f32>, &mut Buffer<f32>)) {
    let kernel = adds();
    let graph = stream.capture(|stream| kernel.launch(stream, 1, (x, &mut *y, 8)));
    let mut graph = graph.expect("is captured");
    let mut third = Buffer::<f32>::zeros(stream.device(), 8).expect("fits");
    assert!(!tried.call("all", || graph.replay(stream, (x, &mut *y))));
    tried.refused("none", || graph.replay(stream, ()));
    tried.refused("one", || graph.replay(stream, (x,)));
    tried.refused("not to be written", || graph.replay(stream, (x, &*y)));
    tried.refused("others", || graph.replay(stream, (x, &mut third)));
    tried.refused("update fails", || {
        graph.update(stream, |_| Err(Error::Invalid("on purpose".to_string())))
    });
    tried.refused("update waits", || graph.update(stream, Stream::synchronize));
    // It is what it was.
    assert!(!tried.call("all", || graph.replay(stream, (x, &mut *y))));
    let elsewhere = Device::interpreter();
    if !elsewhere.name().eq(stream.device().name()) {
        tried.refused("device", || graph.replay(&elsewhere, (x, &mut *y)));
    }
    tried.call("out of bounds", || {
        graph.update(stream, |stream| {
            kernel.launch(stream, 2, (x, &mut *y, 1 << 40))
        })?;
        graph.replay(stream, (x, &mut *y))?;
        stream.synchronize()
    });
    tried.call("then", || stream.synchronize());
}

#[test]
fn profiles_and_hooks_of_what_fails() {
    let mut tried = Tried::default();
    for device in hosts() {
        let x = Buffer::<f32>::zeros(&device, 8).expect("fits");
        let mut y = Buffer::<f32>::zeros(&device, 8).expect("fits");
        tried.refused("fails", || {
            let fails = || -> Result<()> { Err(Error::Invalid("on purpose".to_string())) };
            device.profile(fails)
        });
        tried.refused("inside", || {
            device.profile(|| device.profile(|| Ok(())).map(drop))
        });
        let ((), profile) = device.profile(|| Ok(())).expect("ends");
        assert!(profile.spans().is_empty());
        tried.call("empty", || {
            Ok((profile.chrome_trace(), profile.to_string()))
        });
        for path in ["/", "", "/no/such/folder/trace.json", "a\0b"] {
            tried.refused(path, || profile.write_chrome_trace(Path::new(path)));
        }
        let inner = device.clone();
        let hook = device.on_launch(move |_, _| {
            // Launches of a hook call none.
            let x = Buffer::<f32>::zeros(&inner, 8).expect("fits");
            let mut y = Buffer::<f32>::zeros(&inner, 8).expect("fits");
            let _ = adds().run(&inner, 2, (&x, &mut y, 9));
        });
        assert!(!tried.call("hooked", || adds().run(&device, 1, (&x, &mut y, 8))));
        tried.refused("hooked", || adds().run(&device, 2, (&x, &mut y, 9)));
        drop(hook);
        assert!(!tried.call("alone", || adds().run(&device, 1, (&x, &mut y, 8))));
        tried.call("compiled", || {
            let kernel = adds().compile(&device, 1, (&x, &mut y, 8))?;
            let _ = kernel.compile(&device, 0, (&x, &mut y, 1))?;
            kernel.inspect(&device, 1, (&x, &mut y, 3))
        });
    }
    tried.end(30);
}
