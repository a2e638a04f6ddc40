//! Graphs as a program uses them: captured launches, replayed in streams, with errors that come later.

use std::panic::{AssertUnwindSafe, catch_unwind};

use exactile::prelude::*;
use exactile::{Error, Graph, Result, Stream};
use exactile_core::random::Random;

use super::{
    Check, LEN, MANY, expect, is_of, look_elsewhere, look_up, lookups, mix, mixed, numbers, steps,
};

/// All checks.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "replays have the bits of their launches, in any stream, whatever the host writes in between",
        run: replays_have_the_bits,
    },
    Check {
        name: "errors of replays come when somebody waits, once, in the order of the stream",
        run: errors_of_replays,
    },
    Check {
        name: "a replay needs the arrays of the capture",
        run: replays_need_their_arrays,
    },
    Check {
        name: "what cannot be captured is an error, and the capture goes on",
        run: captures_refuse,
    },
    Check {
        name: "a capture that fails or panics leaves nothing behind",
        run: captures_end,
    },
    Check {
        name: "a graph takes other launches, while replays are under way",
        run: graphs_are_updated,
    },
    Check {
        name: "more replays may be under way than there is room for errors",
        run: many_replays,
    },
    Check {
        name: "graphs and arrays go while replays are under way",
        run: graphs_go,
    },
    Check {
        name: "parts of one array are arguments of one launch of a graph",
        run: parts_of_arrays,
    },
];

/// Random launches as a graph, replayed in random streams between writes of the host, and the same on the host.
fn replays_have_the_bits(device: &Device) -> Result<()> {
    let mut random = Random::stream(7, 0);
    let streams = (0..2).map(|_| device.stream());
    let streams: Vec<Stream> = streams.collect::<Result<_>>()?;
    let mut model: Vec<Vec<i32>> = (0..3).map(|_| numbers(&mut random)).collect();
    let array = |index: usize| Buffer::from_slice(device, &model[index]);
    let (mut x, mut y, mut z) = (array(0)?, array(1)?, array(2)?);
    let times = steps(device);
    // Proved, so that the graph has launches that check and launches that do not.
    mix().run(device, 1, (&x, &mut z.try_clone()?, times))?;
    let graph = streams[0].capture(|stream| {
        mix().launch(stream, 1, (&x, &mut y, times))?;
        mix().launch(stream, 1, (&y, &mut z, 3))?;
        mix().launch(stream, 1, (&z, &mut x, 2))
    })?;
    expect(graph.len() == 3, "a launch is not captured")?;
    for _ in 0..12 {
        let arrays = (&mut x, &mut z, &mut y);
        match random.below(3) {
            2 => graph.replay(device, arrays)?,
            number => graph.replay(&streams[number], arrays)?,
        }
        for (from, to, times) in [(0, 1, times), (1, 2, 3), (2, 0, 2)] {
            let added = model[from].clone();
            for (y, x) in model[to].iter_mut().zip(added) {
                *y = mixed(x, *y, times);
            }
        }
        if random.below(3) == 0 {
            model[1] = numbers(&mut random);
            y.copy_from_slice(&model[1])?;
        }
        if random.below(3) == 0 {
            mix().launch(&streams[1], 1, (&y, &mut x, 1))?;
            let added = model[1].clone();
            for (y, x) in model[0].iter_mut().zip(added) {
                *y = mixed(x, *y, 1);
            }
        }
        if random.below(4) == 0 {
            expect(
                z.to_vec()? == model[2],
                "an array has other numbers in between",
            )?;
        }
    }
    let same = [x.to_vec()?, y.to_vec()?, z.to_vec()?] == model[..];
    expect(same, "an array has other numbers")
}

fn errors_of_replays(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let mut index = inside.try_clone()?;
    let mut z = Buffer::<i32>::zeros(device, LEN)?;
    let stream = device.stream()?;
    let graph = stream.capture(|stream| {
        mix().launch(stream, 1, (&x, &mut z, 1))?;
        look_up().launch(stream, 1, (&x, &index, &mut y))?;
        look_elsewhere().launch(stream, 1, (&y, &index, &mut z))
    })?;
    graph.replay(&stream, (&x, &index, &mut y, &mut z))?;
    stream.synchronize()?;
    let more: Vec<i32> = x.to_vec()?.iter().map(|x| x + 1).collect();
    expect(z.to_vec()? == more, "other numbers are looked up")?;
    index.copy_from(&outside)?;
    for _ in 0..2 {
        graph.replay(&stream, (&x, &index, &mut y, &mut z))?;
    }
    look_elsewhere().launch(&stream, 1, (&x, &index, &mut z))?;
    expect(
        is_of(&stream.synchronize(), "look_up"),
        "the first error of a replay is not told first",
    )?;
    stream.synchronize()?;
    look_elsewhere().launch(&stream, 1, (&x, &index, &mut z))?;
    graph.replay(&stream, (&x, &index, &mut y, &mut z))?;
    expect(
        is_of(&stream.synchronize(), "look_elsewhere"),
        "the error of a launch before a replay is not told first",
    )?;
    // Whatever wrote them is forgotten.
    let forget = |y: &mut Buffer<i32>, z: &mut Buffer<i32>| {
        y.copy_from_slice(&[0; LEN])?;
        z.copy_from_slice(&[0; LEN])
    };
    forget(&mut y, &mut z)?;
    graph.replay(device, (&x, &index, &mut y, &mut z))?;
    expect(is_of(&y.to_vec(), "look_up"), "a read tells no error")?;
    device.synchronize()?;
    z.to_vec()?;
    index.copy_from(&inside)?;
    graph.replay(&stream, (&x, &index, &mut y, &mut z))?;
    device.synchronize()?;
    expect(z.to_vec()? == more, "the graph is of no use after an error")
}

/// Whether this error says all of these words.
pub(super) fn says<T>(told: &Result<T>, words: &[&str]) -> bool {
    match told {
        Ok(_) => false,
        Err(error) => {
            let text = error.to_string();
            words.iter().all(|word| text.contains(word))
        }
    }
}

fn replays_need_their_arrays(device: &Device) -> Result<()> {
    let [x, _, other, mut y] = lookups(device)?;
    let stream = device.stream()?;
    let graph = stream.capture(|stream| mix().launch(stream, 1, (&x, &mut y, 1)))?;
    let before = y.to_vec()?;
    let told = graph.replay(&stream, &mut y);
    expect(
        says(
            &told,
            &[
                "kernel `mix`",
                "launch 0",
                "reads",
                "argument 0",
                "`&array`",
            ],
        ),
        "an array that is read may be missing",
    )?;
    let told = graph.replay(&stream, (&x, &y));
    expect(
        says(
            &told,
            &["kernel `mix`", "writes", "argument 1", "`&mut array`"],
        ),
        "an array that is written is handed to be read",
    )?;
    let told = graph.replay(&stream, (&other, &mut y));
    expect(
        told.is_err(),
        "another array is taken for the one of the capture",
    )?;
    let told = graph.replay(&stream, (&x, y.slice_mut(1..)?));
    expect(told.is_err(), "a part is taken for all of an array")?;
    let elsewhere = Device::cpu();
    let told = graph.replay(&elsewhere, (&x, &mut y));
    expect(
        says(&told, &["a graph of", "capture it there"]),
        "a graph is replayed on another device",
    )?;
    device.synchronize()?;
    expect(y.to_vec()? == before, "a replay that fails writes")?;
    graph.replay(&stream, (&other, &x, &mut y))?;
    expect(y.to_vec()? != before, "a replay does nothing")
}

fn captures_refuse(device: &Device) -> Result<()> {
    let [x, _, _, mut y] = lookups(device)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let event = other.event()?;
    let before = y.to_vec()?;
    let mut told: Vec<(&str, Result<()>)> = Vec::new();
    let graph = stream.capture(|stream| {
        mix().launch(stream, 1, (&x, &mut y, 1))?;
        let run = mix().run(stream, 1, (&x, &mut y, 1));
        told.push(("a run of `mix`", run));
        told.push(("a read of an array", y.to_vec().map(drop)));
        told.push(("a write to an array", y.copy_from_slice(&[0; LEN])));
        told.push(("a fill of an array", y.fill(1)));
        told.push(("a copy of an array", y.copy_from(&x)));
        told.push(("a copy of an array", y.try_clone().map(drop)));
        told.push(("a wait for a stream", stream.synchronize()));
        told.push(("a wait for the device", device.synchronize()));
        told.push(("an event", stream.event().map(drop)));
        told.push(("a wait for an event", stream.wait(&event)));
        told.push(("another capture", stream.capture(|_| Ok(())).map(drop)));
        let launch = mix().launch(&other, 1, (&x, &mut y, 1));
        told.push(("a launch of `mix` into another stream", launch));
        mix().launch(stream, 1, (&x, &mut y, 1))
    })?;
    for (what, told) in &told {
        let words = [what, "the capture at", "graphs.rs"];
        expect(says(told, &words), &format!("{what} is captured: {told:?}"))?;
    }
    expect(graph.len() == 2, "a launch is not captured")?;
    device.synchronize()?;
    expect(y.to_vec()? == before, "a capture runs launches")
}

fn captures_end(device: &Device) -> Result<()> {
    let [x, _, _, mut y] = lookups(device)?;
    let stream = device.stream()?;
    let failed = stream.capture(|stream| {
        mix().launch(stream, 1, (&x, &mut y, 1))?;
        y.to_vec().map(drop)
    });
    expect(
        says(&failed, &["a read of an array"]),
        "an error of a capture is lost",
    )?;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let work = |_: &Stream| -> Result<()> { std::panic::resume_unwind(Box::new("on purpose")) };
        stream.capture(work).map(drop)
    }));
    expect(panicked.is_err(), "a panic of a capture is lost")?;
    mix().run(&stream, 1, (&x, &mut y, 1))?;
    let empty = stream.capture(|_| Ok(()))?;
    expect(empty.is_empty(), "launches come from nowhere")?;
    empty.replay(&stream, ())?;
    stream.synchronize()
}

fn graphs_are_updated(device: &Device) -> Result<()> {
    let x = Buffer::from_slice(device, &[5; LEN])?;
    let mut y = Buffer::from_slice(device, &[7; LEN])?;
    let mut z = Buffer::from_slice(device, &[7; LEN])?;
    let (one, other) = (device.stream()?, device.stream()?);
    let (long, mut model) = (steps(device), 7);
    let mut graph = one.capture(|stream| mix().launch(stream, 1, (&x, &mut y, long)))?;
    graph.replay(&one, (&x, &mut y))?;
    model = mixed(5, model, long);
    graph.update(&other, |stream| mix().launch(stream, 1, (&x, &mut y, 2)))?;
    graph.replay(&one, (&x, &mut y))?;
    model = mixed(5, model, 2);
    expect(y.to_vec()? == [model; LEN], "other numbers after an update")?;
    let failed = graph.update(&one, |_| Err(Error::Invalid("on purpose".to_string())));
    expect(
        failed.is_err() && graph.len() == 1,
        "an update that fails changes the graph",
    )?;
    graph.update(&one, |stream| {
        mix().launch(stream, 1, (&y, &mut z, 1))?;
        mix().launch(stream, 1, (&x, &mut y, 1))
    })?;
    graph.replay(&other, (&x, &mut y, &mut z))?;
    let added = mixed(model, 7, 1);
    model = mixed(5, model, 1);
    let same = y.to_vec()? == [model; LEN] && z.to_vec()? == [added; LEN];
    expect(same, "other numbers after an update to more launches")?;
    graph.update(&one, |_| Ok(()))?;
    graph.replay(&one, ())
}

/// A graph of one launch that checks, whatever was proved.
fn of_lookup(
    stream: &Stream,
    x: &Buffer<i32>,
    index: &Buffer<i32>,
    y: &mut Buffer<i32>,
) -> Result<Graph> {
    stream.capture(|stream| look_up().launch(stream, 1, (x, index, y)))
}

fn many_replays(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let right = of_lookup(&stream, &x, &inside, &mut y)?;
    let wrong = of_lookup(&stream, &x, &outside, &mut y)?;
    for index in 0..MANY {
        match index {
            3 => wrong.replay(&stream, (&x, &outside, &mut y))?,
            _ if index % 3 == 0 => right.replay(&other, (&x, &inside, &mut y))?,
            _ => right.replay(&stream, (&x, &inside, &mut y))?,
        }
        look_up().launch(&stream, 1, (&x, &inside, &mut y))?;
    }
    other.synchronize()?;
    expect(
        is_of(&stream.synchronize(), "look_up"),
        "one error of many is lost",
    )?;
    y.copy_from_slice(&[0; LEN])?;
    right.replay(&stream, (&x, &inside, &mut y))?;
    stream.synchronize()?;
    expect(y.to_vec()? == x.to_vec()?, "other numbers are looked up")
}

fn graphs_go(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    for times in [1, 2] {
        let [x, inside, outside, mut y] = lookups(device)?;
        let mut z = Buffer::<i32>::zeros(device, LEN)?;
        let graph = stream.capture(|stream| {
            mix().launch(stream, 1, (&x, &mut z, times * steps(device)))?;
            look_up().launch(stream, 1, (&z, &outside, &mut y))
        })?;
        graph.replay(&stream, (&x, &outside, &mut y, &mut z))?;
        drop(graph);
        drop((x, inside, outside, y, z));
    }
    let ended = stream.synchronize();
    expect(is_of(&ended, "look_up"), "an error goes with its graph")?;
    stream.synchronize()
}

fn parts_of_arrays(device: &Device) -> Result<()> {
    let numbers: Vec<i32> = (0..3 * LEN as i32).collect();
    let mut all = Buffer::from_slice(device, &numbers)?;
    let stream = device.stream()?;
    let graph = stream.capture(|stream| {
        let (low, rest) = all.split_at_mut(LEN)?;
        let (_, high) = rest.split_at(LEN)?;
        look_up().launch(stream, 1, (low.as_slice(), low.as_slice(), high))
    })?;
    graph.replay(&stream, &mut all)?;
    let got = all.to_vec()?;
    expect(
        got[..2 * LEN] == numbers[..2 * LEN],
        "what is read is written",
    )?;
    expect(got[2 * LEN..] == numbers[..LEN], "other numbers in a part")
}
