//! Rows that a stride of the launch lets meet: of elements stored to one place the highest index wins,
//! whatever was launched or compiled before.

use exactile::internals::{compile_all, costs, record, threads};
use exactile::prelude::*;
use exactile::{Result, Schedule, assert_bits_equal};

const SIDE: usize = 32;

/// Room for rows that lie farthest apart.
const LENGTH: usize = 64 * SIDE;

#[kernel]
fn through_view<const BLOCK: usize>(y: TensorMut<i32, 2>) {
    let at = arange(0, BLOCK);
    let value = at.expand(1) * BLOCK + at.expand(0) + 1;
    store(y.tile([BLOCK, BLOCK]).at((0, 0)), value.to::<i32>());
}

#[kernel]
fn through_pointer<const BLOCK: usize>(y: PtrMut<i32>, stride: i64) {
    let at = arange(0, BLOCK);
    let value = at.expand(1) * BLOCK + at.expand(0) + 1;
    store(y + at.expand(1) * stride + at.expand(0), value.to::<i32>());
}

/// A kernel, and how warps divide its tile.
#[derive(Clone, Copy, Debug)]
struct Subject {
    by_pointer: bool,
    warps: u32,
}

impl Subject {
    fn launch(self, device: &Device, y: &mut Buffer<i32>, strides: [usize; 2]) -> Result<()> {
        let schedule = Schedule::AUTO.warps(self.warps);
        if self.by_pointer {
            let kernel = through_pointer().block(SIDE).schedule(schedule);
            return kernel.run(device, 1, (&mut *y, strides[0] as i64));
        }
        let kernel = through_view().block(SIDE).schedule(schedule);
        kernel.run(device, 1, (y.view_strided_mut([SIDE, SIDE], strides)?,))
    }

    fn check(self, device: &Device, strides: [usize; 2]) {
        let mut y = Buffer::<i32>::zeros(device, LENGTH).expect("fits");
        self.launch(device, &mut y, strides).expect("runs");
        let mut want = [0; LENGTH];
        for element in 0..SIDE * SIDE {
            let (row, column) = (element / SIDE, element % SIDE);
            want[row * strides[0] + column * strides[1]] = element as i32 + 1;
        }
        assert_bits_equal(&y, &want);
    }
}

fn subjects() -> impl Iterator<Item = (Device, Subject)> {
    let devices = || [Device::interpreter(), Device::cpu(), Device::lanes()];
    let kinds = [false, true].into_iter();
    let kinds = kinds.flat_map(|by_pointer| [1, 4].map(|warps| Subject { by_pointer, warps }));
    kinds.flat_map(move |subject| devices().map(|device| (device, subject)))
}

/// The strides of rows far enough apart and of rows that meet, in turns. Nothing else is known of 64 and
/// of 16, of 33 and of 31: the launches differ by their code alone.
fn strides(subject: Subject) -> Vec<[usize; 2]> {
    let mut strides = vec![
        [64, 1],
        [16, 1],
        [33, 1],
        [31, 1],
        [0, 1],
        [32, 1],
        [2, 1],
        [1, 1],
    ];
    if !subject.by_pointer {
        strides.extend([[1, 32], [1, 16], [0, 0], [2, 64 - 2], [0, 2]]);
    }
    strides
}

#[test]
fn the_highest_element_wins_whatever_ran_before() {
    for (device, subject) in subjects() {
        let strides = strides(subject);
        // Checked code first, code without checks later.
        for strides in strides.iter().chain(&strides).chain(strides.iter().rev()) {
            subject.check(&device, *strides);
        }
    }
}

#[test]
fn rows_that_meet_have_code_of_their_own() {
    for by_pointer in [false, true] {
        let (device, subject) = (
            Device::lanes(),
            Subject {
                by_pointer,
                warps: 4,
            },
        );
        let mut codes = Vec::new();
        for row in [64, 16, 48, 0] {
            subject.check(&device, [row, 1]);
            codes.push(costs(&device).codes);
        }
        assert_eq!(codes, [1, 2, 2, 2], "{subject:?}");
    }
}

#[test]
fn launches_compiled_ahead_are_told_apart() {
    for (device, subject) in subjects() {
        let mut y = Buffer::<i32>::zeros(&device, LENGTH).expect("fits");
        let mut record =
            |row| record(&device, || subject.launch(&device, &mut y, [row, 1])).expect("records");
        let sets = [record(16), record(64), record(0)];
        let mut ended = 0;
        compile_all(&device, &sets, None, threads(), &mut |index, outcome| {
            assert_eq!(outcome, Ok(()), "set {index} of {subject:?}");
            ended += 1;
        });
        assert_eq!(ended, sets.len());
        let codes = costs(&device).codes;
        for row in [0, 64, 16, 64, 0] {
            subject.check(&device, [row, 1]);
        }
        assert_eq!(costs(&device).codes, codes, "{device}, {subject:?}");
    }
}
