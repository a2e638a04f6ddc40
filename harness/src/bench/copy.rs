//! What the memory of a device gives: a copy of as many bytes as a kernel moves.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock::Clock;
use exactile::Buffer;
use exactile::prelude::*;
use exactile::{Device, DeviceKind};
use exactile::{Result, Schedule};

#[kernel(BLOCK = 1024)]
fn copy<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let offsets = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = offsets < n;
    store(out + offsets, load(x + offsets).mask(mask)).mask(mask);
}

/// Tile sizes and warps that are tried.
const CONFIGS: [(usize, u32); 6] = [
    (1024, 4),
    (1024, 8),
    (2048, 4),
    (2048, 8),
    (4096, 8),
    (8192, 8),
];

/// Time to measure one configuration.
const TIME: Duration = Duration::from_millis(30);

/// The rates of copies, by the bytes read and written together.
#[derive(Default)]
pub(super) struct CopyRates {
    rates: BTreeMap<u64, f64>,
}

impl CopyRates {
    /// Bytes a second of the best configuration of this crate's copy.
    pub(super) fn rate(&mut self, device: &Device, clock: &mut Clock, bytes: u64) -> Result<f64> {
        let n = size_class(bytes);
        if let Some(&rate) = self.rates.get(&n) {
            return Ok(rate);
        }
        let x = Buffer::<f32>::zeros(device, n as usize)?;
        let mut out = Buffer::<f32>::zeros(device, n as usize)?;
        let configs = match device.kind() {
            DeviceKind::Cuda(_) => &CONFIGS[..],
            DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => &CONFIGS[..1],
        };
        let mut best = 0f64;
        for &(block, warps) in configs {
            let kernel = copy().block(block).schedule(Schedule::AUTO.warps(warps));
            let grid = (n as usize).div_ceil(block);
            let mut launch = || kernel.launch(device, grid, (&x, &mut out, n as i32));
            launch()?;
            launch()?;
            best = best.max(8.0 * n as f64 / clock.median(TIME, &mut launch)?);
        }
        self.rates.insert(n, best);
        Ok(best)
    }
}

/// Elements of a copy that reads and writes about `bytes`.
pub(super) fn size_class(bytes: u64) -> u64 {
    (bytes / 8).next_multiple_of(1 << 16).min(1 << 30)
}
