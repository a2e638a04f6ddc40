//! Launches that are like one before them are put into their stream by less work: with the same words as by all of it, and with
//! the checks that they need.

use exactile::internals::{forget_code, kept_launches};
use exactile::prelude::*;
use exactile::{Kernel, Result};
use exactile_core::random::Random;

use super::{calls_of, outcome_of, words_of};

#[kernel]
fn moves(x: Ptr<f32>, y: PtrMut<f32>, n: i32, factor: f32, place: f32) {
    let at = arange(0, 8);
    let moved = load(x + at).mask(at < n) * factor;
    store(y + at + place.to::<i32>(), moved).mask(at < n);
}

/// What a launch passes.
#[derive(Clone, Copy, PartialEq)]
struct Passes {
    grid: u32,
    start: usize,
    length: usize,
    n: i32,
    factor: f32,
    place: f32,
}

const FIRST: Passes = Passes {
    grid: 1,
    start: 0,
    length: 64,
    n: 8,
    factor: 2.0,
    place: 1.0,
};

/// Others, with whether they are in bounds for the same reason.
fn others() -> [(Passes, bool); 8] {
    let with = |change: &dyn Fn(&mut Passes)| {
        let mut passes = FIRST;
        change(&mut passes);
        passes
    };
    [
        (FIRST, true),
        (with(&|it| it.factor = -0.5), true),
        (with(&|it| it.start = 64), true),
        // Code for this address is another, whose own launch has to prove it.
        (with(&|it| it.start = 1), false),
        (with(&|it| it.length = 32), false),
        (with(&|it| it.n = 24), false),
        (with(&|it| it.place = 2.0), false),
        (with(&|it| it.grid = 2), false),
    ]
}

struct Arrays {
    device: Device,
    x: Buffer<f32>,
    y: Buffer<f32>,
}

impl Arrays {
    fn new() -> Result<Self> {
        let device = Device::cuda(0)?;
        Ok(Self {
            x: Buffer::zeros(&device, 256)?,
            y: Buffer::zeros(&device, 256)?,
            device,
        })
    }

    fn launch(&mut self, kernel: &Kernel<Moves>, passes: Passes) -> Result<()> {
        let Passes {
            grid,
            start,
            length,
            n,
            factor,
            place,
        } = passes;
        let range = start..start + length;
        let arguments = (
            self.x.slice(range.clone())?,
            self.y.slice_mut(range)?,
            n,
            factor,
            place,
        );
        kernel.launch(&self.device, grid, arguments)
    }

    /// A launch, and the same while a hook has all be done.
    fn tell(&mut self, kernel: &Kernel<Moves>, passes: Passes) -> Result<()> {
        println!("begin");
        self.launch(kernel, passes)?;
        println!("end");
        let _hook = self.device.on_launch(|_, _| ());
        println!("begin");
        self.launch(kernel, passes)?;
        println!("end");
        Ok(())
    }

    /// After it the first launch is proved, and others are like it.
    fn begin(&mut self, kernel: &Kernel<Moves>) -> Result<()> {
        self.device.synchronize()?;
        for _ in 0..3 {
            self.launch(kernel, FIRST)?;
            self.device.synchronize()?;
        }
        Ok(())
    }
}

type Moves = (Ptr<f32>, PtrMut<f32>, i32, f32, f32);

/// The calls of the launch of each of the [`others`], by itself, before and after somebody ceases to trust proofs.
pub(super) fn checks() -> Result<()> {
    println!();
    for (passes, _) in others() {
        let mut arrays = Arrays::new()?;
        let kernel = moves().into_kernel();
        arrays.begin(&kernel)?;
        println!("begin");
        arrays.launch(&kernel, passes)?;
        println!("end");
        arrays.device.synchronize()?;
        arrays.device.trust_proofs(false);
        println!("begin");
        arrays.launch(&kernel, passes)?;
        println!("end");
        arrays.device.synchronize()?;
    }
    Ok(())
}

/// The words of each launch, where others are like it and where a hook has all be done; with code that was looked up, was
/// compiled before, and checks nothing.
pub(super) fn words() -> Result<()> {
    println!();
    let mut arrays = Arrays::new()?;
    let kernel = moves().into_kernel();
    let compiled = {
        let (x, y) = (arrays.x.slice(..64)?, arrays.y.slice_mut(..64)?);
        kernel.compile(&arrays.device, 1, (x, y, 8, 2.0, 1.0))?
    };
    for kernel in [&kernel, &compiled] {
        arrays.begin(kernel)?;
        for (passes, _) in others().into_iter().filter(|(it, _)| it.start != 1) {
            for _ in 0..3 {
                arrays.launch(kernel, passes)?;
                arrays.device.synchronize()?;
            }
            arrays.tell(kernel, passes)?;
        }
        // More than are kept.
        let mut random = Random::stream(5, 0);
        for _ in 0..200 {
            let passes = Passes {
                n: 8 * (1 + random.below(12) as i32),
                factor: random.below(100) as f32,
                start: 64 * random.below(3),
                ..FIRST
            };
            arrays.tell(kernel, passes)?;
            arrays.device.synchronize()?;
        }
    }
    Ok(())
}

/// A launch that finds one that it is like is not kept, and no more are kept than there is room for.
pub(super) fn keeps() -> Result<()> {
    let mut arrays = Arrays::new()?;
    let kernel = moves().into_kernel();
    arrays.begin(&kernel)?;
    for factor in 0..20 {
        let factor = factor as f32;
        arrays.launch(&kernel, Passes { factor, ..FIRST })?;
    }
    assert_eq!(kept_launches(&arrays.device), 1);
    for n in 1..40 {
        for _ in 0..3 {
            arrays.launch(&kernel, Passes { n, ..FIRST })?;
            arrays.device.synchronize()?;
        }
    }
    assert_eq!(kept_launches(&arrays.device), 8);
    forget_code(&arrays.device);
    assert_eq!(kept_launches(&arrays.device), 0);
    Ok(())
}

#[test]
fn launches_that_are_alike_find_the_one_that_is_kept() {
    if let Some(outcome) = outcome_of("alike, keeps", "alike_keeps", &[]) {
        assert_eq!(outcome, "all works");
    }
}

#[test]
fn launches_that_are_not_alike_have_their_checks() {
    let Some(calls) = calls_of("alike, checks", &["TELLS"]) else {
        return;
    };
    let mut calls = calls.iter();
    for (index, (_, is_proved)) in others().iter().enumerate() {
        let checked = &["cuLaunchKernel", "cuEventRecord"][..];
        let expected = if *is_proved { &checked[..1] } else { checked };
        assert_eq!(calls.next().expect("is told"), expected, "{index}");
        assert_eq!(calls.next().expect("is told"), checked, "{index}");
    }
}

#[test]
fn launches_that_are_alike_have_their_own_words() {
    let Some(words) = words_of("alike, words", 5) else {
        return;
    };
    let mut different: Vec<&String> = Vec::new();
    for pair in words.chunks(2) {
        let [again, anew] = pair else {
            panic!("{pair:?}");
        };
        assert_eq!((again.len(), again), (1, anew));
        different.extend(again);
    }
    different.sort();
    different.dedup();
    assert!(different.len() > 150, "{different:?}");
}
