//! Hooks around launches, and profiles of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use exactile::prelude::*;
use exactile::{DeviceKind, Error, LaunchMoment, Profile, Result, SpanKind};
use serde_json::Value;

use super::graphs::says;
use super::{Check, LEN, expect, is_of, look_up, lookups, mix, steps};

/// All checks.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "a hook is called before and after each launch, with what it is, and by no launch of its own",
        run: hooks_are_called,
    },
    Check {
        name: "a profile has a span for each launch, in the order of its stream",
        run: profiles_have_spans,
    },
    Check {
        name: "a profile that fails or panics leaves nothing behind, and errors of launches stay",
        run: profiles_end,
    },
    Check {
        name: "a copy in one stream overlaps with a kernel in another one, as a timeline shows",
        run: copies_overlap,
    },
];

fn hooks_are_called(device: &Device) -> Result<()> {
    let [x, inside, _, mut y] = lookups(device)?;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&calls);
    let (own, other) = (device.clone(), Buffer::from_slice(device, &[1; LEN])?);
    let hook = device.on_launch(move |info, moment| {
        let mut calls = list.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = (info.bytes_read, info.bytes_written);
        calls.push((info.kernel.to_string(), moment, info.grid, bytes));
        if let Ok(mut copy) = other.try_clone() {
            // Calls no hook, or this would never end.
            let _ = mix().launch(&own, 1, (&other, &mut copy, 1));
        }
    });
    look_up().launch(device, 1, (&x, &inside, &mut y))?;
    let graph = {
        let stream = device.stream()?;
        stream.capture(|stream| mix().launch(stream, 1, (&x, &mut y, 1)))?
    };
    graph.replay(device, (&x, &mut y))?;
    let elsewhere = Device::interpreter();
    let mut z = Buffer::<i32>::zeros(&elsewhere, LEN)?;
    let misplaced = look_up().launch(device, 1, (&x, &inside, &mut z));
    expect(
        misplaced.is_err() == matches!(device.kind(), DeviceKind::Cuda(_)),
        "memory elsewhere is taken",
    )?;
    drop(hook);
    look_up().launch(device, 1, (&x, &inside, &mut y))?;
    device.synchronize()?;
    let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = (8 * LEN as u64, 4 * LEN as u64);
    let call = |moment| ("look_up".to_string(), moment, [1; 3], bytes);
    let first = [call(LaunchMoment::Before), call(LaunchMoment::After)];
    expect(calls.get(..2) == Some(&first), "a hook is told otherwise")?;
    let more = if misplaced.is_ok() { 4 } else { 2 };
    expect(calls.len() == more, "a hook is called at another time")
}

/// Whether each event of the timeline is one of the profile, in microseconds.
fn trace_agrees(profile: &Profile) -> Result<()> {
    let trace: Value = serde_json::from_str(&profile.chrome_trace())
        .map_err(|error| Error::Mismatch(format!("the timeline is no JSON: {error}")))?;
    let events = trace["traceEvents"].as_array();
    let events = events.map_or(&[][..], |events| &events[..]);
    expect(
        events.len() == 1 + profile.spans().len(),
        "a span is not shown",
    )?;
    for (event, span) in events[1..].iter().zip(profile.spans()) {
        let near = |field: &str, seconds: f64| {
            let shown = event[field].as_f64().unwrap_or(f64::NAN);
            (shown - seconds * 1e6).abs() <= 1e-3
        };
        let same = event["name"] == *span.name
            && event["ph"] == "X"
            && event["tid"] == span.stream
            && near("ts", span.start)
            && near("dur", span.seconds);
        expect(same, &format!("a span is shown as {event}"))?;
    }
    Ok(())
}

fn profiles_have_spans(device: &Device) -> Result<()> {
    let [x, inside, _, mut y] = lookups(device)?;
    let mut z = Buffer::<i32>::zeros(device, LEN)?;
    let stream = device.stream()?;
    let times = steps(device);
    mix().run(device, 1, (&x, &mut z, times))?;
    look_up().run(device, 1, (&x, &inside, &mut y))?;
    let graph = stream.capture(|stream| mix().launch(stream, 1, (&x, &mut z, 1)))?;
    let (told, profile) = device.profile(|| {
        for _ in 0..3 {
            mix().launch(&stream, 1, (&x, &mut z, times))?;
        }
        look_up().launch(device, 1, (&x, &inside, &mut y))?;
        graph.replay(&stream, (&x, &mut z))?;
        Ok(5)
    })?;
    expect(told == 5, "what the work gives is lost")?;
    let spans: Vec<_> = profile
        .spans()
        .iter()
        .filter(|span| &*span.name == "mix")
        .collect();
    expect(spans.len() == 3, "a launch has no span")?;
    for pair in spans.windows(2) {
        let ordered = pair[0].start + pair[0].seconds <= pair[1].start + 2e-6;
        expect(
            ordered && !pair[0].overlaps(pair[1]),
            "launches of a stream overlap",
        )?;
    }
    for span in &spans {
        let bytes = Some(8 * LEN as u64);
        let same =
            span.kind == SpanKind::Launch && span.bytes == bytes && span.grid == Some([1; 3]);
        expect(
            same && span.start >= 0.0 && span.seconds > 0.0,
            "a span says otherwise",
        )?;
    }
    let of = |kind: SpanKind| profile.spans().iter().filter(move |span| span.kind == kind);
    expect(of(SpanKind::Graph).count() == 1, "a replay has no span")?;
    expect(of(SpanKind::Launch).count() == 4, "a launch has no span")?;
    let table = profile.to_string();
    let lines: Vec<&str> = table.lines().collect();
    let all = [
        "count",
        "total ms",
        "share",
        "GB/s",
        "look_up",
        "graph of 1 launches",
    ];
    expect(all.iter().all(|word| table.contains(word)), &table)?;
    expect(lines.len() == 4, &table)?;
    trace_agrees(&profile)
}

fn profiles_end(device: &Device) -> Result<()> {
    let [x, _, outside, mut y] = lookups(device)?;
    let failed = device.profile(|| {
        let again = device.profile(|| Ok(()));
        expect(
            says(&again, &["another profile", "is under way"]),
            "two profiles at once",
        )?;
        Err::<(), _>(Error::Invalid("on purpose".to_string()))
    });
    expect(
        says(&failed, &["on purpose"]),
        "an error of the work is lost",
    )?;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let work = || -> Result<()> { std::panic::resume_unwind(Box::new("on purpose")) };
        device.profile(work).map(drop)
    }));
    expect(panicked.is_err(), "a panic of the work is lost")?;
    let (_, profile) = device.profile(|| look_up().launch(device, 1, (&x, &outside, &mut y)))?;
    expect(
        profile.spans().len() == 1,
        "a launch with an error has no span",
    )?;
    expect(
        is_of(&device.synchronize(), "look_up"),
        "a profile takes the error of a launch",
    )?;
    let (_, profile) = device.profile(|| Ok(()))?;
    expect(profile.spans().is_empty(), "spans come from nowhere")
}

fn copies_overlap(device: &Device) -> Result<()> {
    let DeviceKind::Cuda(_) = device.kind() else {
        // On the host a launch has ended when a copy begins.
        return Ok(());
    };
    let x = Buffer::from_slice(device, &[5; LEN])?;
    let mut y = Buffer::from_slice(device, &[7; LEN])?;
    let mut z = Buffer::<i32>::zeros(device, 1 << 16)?;
    let numbers = vec![3; 1 << 16];
    let stream = device.stream()?;
    mix().run(&stream, 1, (&x, &mut y, 1))?;
    let (_, profile) = device.profile(|| {
        mix().launch(&stream, 1, (&x, &mut y, 50 * steps(device)))?;
        z.copy_from_slice(&numbers)
    })?;
    let of = |kind: SpanKind| profile.spans().iter().find(move |span| span.kind == kind);
    let (launch, copy) = (of(SpanKind::Launch), of(SpanKind::Copy));
    let overlap = launch
        .zip(copy)
        .is_some_and(|(launch, copy)| launch.overlaps(copy));
    expect(
        overlap,
        &format!("the copy waits for the kernel:\n{profile}"),
    )?;
    trace_agrees(&profile)
}
