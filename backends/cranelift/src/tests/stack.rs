//! Code whose frame is larger than the stack of the thread that launches it.

use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use exactile_core::launch::Argument;

use super::{lane_function, run};
use crate::Threads;

/// Bytes of the stacks of the test's threads.
const STACK: usize = 64 << 10;

/// Vectors that are all loaded before the first is stored: 80 KiB of registers.
const VECTORS: usize = 5000;

/// Bytes of a thread's own data.
const OWN: usize = 32 << 10;

fn large_frame() -> String {
    let mut text = String::from("func @f lane warps=0 (%x: ptr<f32>, %y: ptr<f32> write) {\n");
    for index in 0..VECTORS {
        let first = index * 4;
        text.push_str(&format!("%o{index} = constant value=i64({first}) : i64\n"));
        text.push_str(&format!(
            "%v{index} = lane_load %x, %o{index}, align=4 : tile<4xf32>\n"
        ));
    }
    for index in (0..VECTORS).rev() {
        text.push_str(&format!("lane_store %y, %o{index}, %v{index}, align=4\n"));
    }
    text + "}\n"
}

/// A thread with data on its stack, which says at the end whether they are as they were.
fn neighbour(end: Receiver<()>, ready: std::sync::mpsc::Sender<()>) -> JoinHandle<bool> {
    let thread = std::thread::Builder::new().stack_size(STACK);
    let work = move || {
        let mut own = [0xa5u8; OWN];
        std::hint::black_box(&mut own);
        ready.send(()).expect("the test waits");
        end.recv().expect("the test says when");
        std::hint::black_box(&mut own)
            .iter()
            .all(|&byte| byte == 0xa5)
    };
    thread.spawn(work).expect("a thread starts")
}

#[test]
fn a_large_frame_leaves_the_stacks_of_others_alone() {
    let code = crate::compile(&lane_function(&large_frame())).expect("compiles");
    let (start, wait) = channel::<()>();
    let launcher = std::thread::Builder::new().stack_size(STACK);
    let launcher = launcher.spawn(move || {
        wait.recv().expect("the test says when");
        let x: Vec<u8> = (0..VECTORS * 4)
            .flat_map(|i| (i as f32).to_ne_bytes())
            .collect();
        let mut y = vec![0u8; x.len()];
        run(
            &code,
            &mut [Argument::Read(&x), Argument::ReadWrite(&mut y)],
        )
        .expect("runs");
        assert!(x == y);
        let mut arguments = [Argument::Read(&x), Argument::ReadWrite(&mut y)];
        super::run_on(&code, &mut arguments, Threads::All).expect("runs");
    });
    let launcher = launcher.expect("a thread starts");
    // Stacks of later threads lie below those of earlier ones.
    let mut others = Vec::new();
    for _ in 0..4 {
        let ((end, over), (ready, is_ready)) = (channel(), channel());
        others.push((end, neighbour(over, ready)));
        is_ready.recv().expect("the neighbour starts");
    }
    start.send(()).expect("the launcher waits");
    launcher.join().expect("the launch works");
    for (end, other) in others {
        end.send(()).expect("the neighbour waits");
        assert!(
            other.join().expect("nothing panics"),
            "the stack of another thread changed"
        );
    }
}

#[test]
fn offsets_of_streams_may_be_any_numbers() {
    let text = "func @f lane warps=0 (%x: ptr<f64>, %n: i64) {
      %far = constant value=i64(9223372036854775807) : i64
      %zero = constant value=i64(0) : i64
      for %zero, %n, [], step=9223372036854775807, stages=1 (%i: i64) {
        %a = mul %i, %far : i64
        %p = program_id axis=0 : i64
        %b = add %a, %p : i64
        %c = add %b, %far : i64
        %v = lane_load %x, %c, align=8 : tile<4xf64>
        yield []
      }
    }";
    crate::compile(&lane_function(text)).expect("compiles");
}
