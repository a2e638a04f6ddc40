//! The recurrence of a selective state space: `h = exp(d a) h + d b x`, `y = sum(c h)`, along time.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// A channel of a sequence a program, `TIME` steps at a time; `STATES` is the number of states, a power of two.
#[kernel(TIME = 64)]
pub fn selective_scan<T: Float, const STATES: usize, #[meta(64, 128, 32)] const TIME: usize>(
    x: Ptr<T>,
    deltas: Ptr<T>,
    a: Ptr<f32>,
    b: Ptr<T>,
    c: Ptr<T>,
    out: PtrMut<T>,
    channels: i32,
    steps: i32,
) {
    let (sequence, channel) = (program_id(0), program_id(1));
    let state = arange(0, STATES).expand(0);
    let rate = load(a + channel * STATES + state);
    let maps = accumulator::<(Tile<f32>, Tile<f32>)>([STATES], |a, b| (a.0 * b.0, b.0 * a.1 + b.1));
    let mut maps = maps.at_most(1024);
    for start in range(0, steps).step(TIME) {
        let time = (start + arange(0, TIME)).expand(1);
        let mask = time < steps;
        let at = (sequence * steps + time) * channels + channel;
        let delta = load(deltas + at).mask(mask).to::<f32>();
        let input = load(x + at).mask(mask).to::<f32>();
        let place = (sequence * steps + time) * STATES + state;
        let decay = exp(delta * rate);
        let gain = delta * input * load(b + place).mask(mask).to::<f32>();
        let (_, states) = maps.scan((decay, gain), 0);
        let read = (states * load(c + place).mask(mask).to::<f32>()).sum(1);
        store(out + at.squeeze(1), read.to::<T>()).mask(mask.squeeze(1));
    }
}

/// What [`launch`] reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, T> {
    /// What goes in, `[sequences, steps, channels]`.
    pub x: &'a Buffer<T>,
    /// The size of each step, likewise.
    pub deltas: &'a Buffer<T>,
    /// The rates of decay, `[channels, states]`.
    pub a: &'a Buffer<f32>,
    /// What goes into each state, `[sequences, steps, states]`.
    pub b: &'a Buffer<T>,
    /// What is read from each state, likewise.
    pub c: &'a Buffer<T>,
}

/// The scan of `[sequences, steps, channels]` with `states` states, a power of two, in `f32` and rounded once. A
/// setting's `block` is the steps that are taken at a time.
pub fn launch<T: Float + Number>(
    Inputs { x, deltas, a, b, c }: Inputs<'_, T>,
    out: &mut Buffer<T>,
    states: usize,
    shape @ [sequences, steps, channels]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    for len in [x.len(), deltas.len(), out.len()] {
        check_shape(len, &shape)?;
    }
    check_shape(a.len(), &[channels, states])?;
    check_shape(b.len(), &[sequences, steps, states])?;
    check_shape(c.len(), &[sequences, steps, states])?;
    let kernel = selective_scan::<T>()
        .states(states)
        .time(setting.block_or(64))
        .by(setting);
    let device = out.device().clone();
    let arguments = (x, deltas, a, b, c, out, extent(channels)?, extent(steps)?);
    kernel.launch(&device, (sequences, channels), arguments)
}

/// One channel: `x` and `deltas` by steps, `b` and `c` by steps and states.
pub fn reference(x: &[f32], deltas: &[f32], a: &[f32], b: &[f32], c: &[f32]) -> Vec<f32> {
    let mut states = vec![0.0f64; a.len()];
    let mut out = Vec::new();
    for (time, (&x, &delta)) in x.iter().zip(deltas).enumerate() {
        let (x, delta) = (f64::from(x), f64::from(delta));
        let mut read = 0.0;
        for (state, h) in states.iter_mut().enumerate() {
            let place = time * a.len() + state;
            *h = (delta * f64::from(a[state])).exp() * *h + delta * x * f64::from(b[place]);
            read += *h * f64::from(c[place]);
        }
        out.push(read as f32);
    }
    out
}

/// The settings worth trying.
pub fn space(states: usize) -> Vec<Setting> {
    space::space(
        &selective_scan::<f32>().range_of("TIME"),
        &[0],
        &[None],
        |block, _| block * states,
    )
}
