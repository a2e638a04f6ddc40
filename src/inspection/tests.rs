//! What is shown is what runs.

use super::*;
use crate::DeviceKind;
use crate::cache::CodeKey;
use crate::prelude::*;

#[kernel]
fn twice(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * 64 + arange(0, 64);
    let inside = at < n;
    store(y + at, load(x + at).mask(inside) * 2.0).mask(inside);
}

#[kernel]
fn rows(x: Tensor<f32, 2>, y: TensorMut<f32, 2>) {
    let place = (program_id(0), 0);
    store(
        y.tile([1, 32]).at(place),
        load(x.tile([1, 32]).at(place)) + 1.0,
    );
}

/// The texts are of code that the launch has made: nothing else is in the cache.
#[test]
fn what_is_shown_is_what_runs() {
    for device in [Device::cpu(), Device::lanes()] {
        let x = Buffer::from_slice(&device, &[1.0f32; 128]).expect("fits");
        let mut y = Buffer::<f32>::zeros(&device, 128).expect("fits");
        let shown = |inspection: Inspection| {
            let lane = inspection.lowered().expect("compiles").lane;
            let key = match device.kind() {
                DeviceKind::Cpu => CodeKey::new(&lane, "cpu"),
                DeviceKind::Interpreter | DeviceKind::Lanes | DeviceKind::Cuda(_) => {
                    CodeKey::with_lines(&lane)
                }
            };
            (device.cache().has(&key), inspection.bounds())
        };
        for (n, bounds) in [
            (100, Bounds::Checked),
            (100, Bounds::Unchecked),
            (97, Bounds::Checked),
        ] {
            let inspection = twice().inspect(&device, 2, (&x, &mut y, n));
            let inspection = inspection.expect("compiles");
            // Nothing of it ran before.
            assert_eq!(shown(inspection), (false, bounds), "{n} on {device}");
            twice().run(&device, 2, (&x, &mut y, n)).expect("runs");
        }
        let before = device.compiled_kernels();
        let inspection = twice().inspect(&device, 2, (&x, &mut y, 97));
        assert_eq!(
            shown(inspection.expect("compiles")),
            (false, Bounds::Unchecked)
        );
        let shape = [4, 32];
        let of_x = || x.view(shape).expect("fits");
        let inspect = |y: &mut Buffer<f32>| {
            let view = y.view_mut(shape).expect("fits");
            rows()
                .inspect(&device, 4, (of_x(), view))
                .expect("compiles")
        };
        let early = inspect(&mut y);
        assert_eq!(device.compiled_kernels(), before);
        let view = y.view_mut(shape).expect("fits");
        rows().run(&device, 4, (of_x(), view)).expect("runs");
        assert!(shown(early).0, "{device}");
    }
}

#[test]
fn stages_follow_what_is_known_of_arguments_and_the_machine() {
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[1.0f32; 128]).expect("fits");
    let mut y = Buffer::<f32>::zeros(&device, 128).expect("fits");
    let mut text = |n: i32, target: Target, stage| {
        let inspection = twice().inspect(&device, 2, (&x, &mut y, n));
        inspection.expect("compiles").on(target).text(stage)
    };
    let lanes = |n, text: &mut dyn FnMut(i32, Target, ListingStage) -> Result<String>| {
        text(n, Target::SM_90A, ListingStage::Lane).expect("compiles")
    };
    let (wide, narrow) = (lanes(128, &mut text), lanes(127, &mut text));
    assert!(wide.contains("divisor=16") && wide != narrow, "{wide}");
    for stage in ListingStage::ALL {
        let (cpu, gpu) = (
            text(128, Target::CPU, stage),
            text(128, Target::SM_90A, stage),
        );
        let of_cpu = matches!(stage, ListingStage::Worker | ListingStage::Clif);
        let of_gpu = match stage {
            ListingStage::Trace | ListingStage::Block => false,
            ListingStage::Worker | ListingStage::Clif => false,
            ListingStage::Lane
            | ListingStage::Llvm
            | ListingStage::OptimizedLlvm
            | ListingStage::Ptx => true,
        };
        assert_eq!(cpu.is_ok(), !of_gpu, "{}", stage.name());
        if cfg!(feature = "nvptx") || stage == ListingStage::Lane {
            assert_eq!(gpu.is_ok(), !of_cpu, "{}", stage.name());
        }
    }
    let inspection = twice().inspect(&device, 2, (&x, &mut y, 128));
    let message = inspection
        .expect("compiles")
        .resources()
        .expect_err("is no GPU");
    assert!(message.to_string().contains("no GPU"), "{message}");
}

#[test]
fn occupancy_is_a_share_of_threads() {
    let resources = Resources {
        threads: 256,
        programs: 2,
        registers: 64,
        local_bytes: 0,
        shared_bytes: 4096,
        blocks: 4,
        most_threads: 2048,
    };
    assert!((resources.occupancy() - 0.5).abs() < 1e-9);
    assert!(
        resources.to_string().ends_with("occupancy 50 %"),
        "{resources}"
    );
}
