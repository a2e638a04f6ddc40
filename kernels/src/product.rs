//! What the kernels of matrix products share: their steps, one matrix of several, and how they are launched.

use exactile::prelude::*;
use exactile::{Device, DeviceKind, HostTensor};

use crate::setting::Setting;

/// The rows of tiles that programs go through together, column by column: they then read the same rows and columns.
pub(crate) const GROUP: i64 = 8;

/// Products that are added at a time.
pub(crate) const TERMS: usize = 64;

/// Steps of [`TERMS`] products that are under way for a tile `[bm, bn]`.
pub(crate) fn stages(tile: [usize; 2]) -> usize {
    stages_of(tile, TERMS)
}

/// Steps of so many products that are under way for a tile `[bm, bn]`: as many as 192 KiB hold, of 128 bytes for [`TERMS`] of each of its rows
/// and columns.
pub(crate) fn stages_of([bm, bn]: [usize; 2], terms: usize) -> usize {
    (1536 * TERMS / terms / (bm + bn)).clamp(2, 8)
}

/// Whether so few rows are multiplied that those of the weight take the place of rows in tiles, unless a setting has tiles of
/// its own. A CPU reads the weight by rows as it is.
pub(crate) fn has_few_rows(rows: usize, setting: &Setting, device: &Device) -> bool {
    let is_own = setting.block == 0 && setting.width == 0;
    (1..=128).contains(&rows) && is_own && device.kind() != DeviceKind::Cpu
}

/// A matrix whose rows begin at one of those of an array.
type Rows<T> = (Tensor<T, 2>, Scalar<i64>);

/// The matrix of this index among those of `k` rows that lie behind each other. Steps that take it `whole` never come to the
/// next one, so it needs no end: bulk copies take boxes of an array alone.
#[device]
pub(crate) fn one_of<T: Numeric>(
    all: Tensor<T, 2>,
    [index, k]: [Scalar<i64>; 2],
    whole: bool,
) -> Rows<T> {
    if whole {
        return (all, index * k);
    }
    let part = all.part([index * k, scalar(0)], [k, all.extent(1)]);
    (part, scalar(0))
}

/// The first row and column of the tile `[bm, bn]` that comes at this place among `tiles`, which are rows and columns of tiles.
#[device]
fn place_in_turn(
    turn: Scalar<i64>,
    [rows, columns]: [Scalar<i64>; 2],
    [bm, bn]: [usize; 2],
) -> [Scalar<i64>; 2] {
    let (row, column) = swizzle_2d(turn / columns, turn % columns, rows, columns, GROUP);
    [row * bm, column * bn]
}

/// What a program does with the origin of each of its tiles `[bm, bn]` of a product of these extents: those that come to it in turns,
/// or the one of its number.
#[device]
pub(crate) fn each_tile(
    extents: [Scalar<i64>; 2],
    [bm, bn]: [usize; 2],
    in_turns: bool,
    work: impl Fn([Scalar<i64>; 2]),
) {
    match in_turns {
        true => {
            let tiles = [cdiv(extents[0], bm), cdiv(extents[1], bn)];
            for turn in range(program_id(0), tiles[0] * tiles[1]).step(num_programs(0)) {
                work(place_in_turn(turn, tiles, [bm, bn]));
            }
        }
        false => work(tile_origin([bm, bn], GROUP)),
    }
}

/// How many programs take tiles of a product of `m` rows and `n` columns in turns, one for each multiprocessor, and a setting
/// that states the tile; nothing where there are no more tiles than that, each of which has a program then.
pub(crate) fn turns(
    device: &Device,
    [m, n]: [usize; 2],
    setting: &Setting,
) -> Option<(usize, Setting)> {
    let (block, width) = (setting.block_or(128), setting.width_or(256));
    let programs = device.multiprocessors();
    let tiles = m.div_ceil(block).saturating_mul(n.div_ceil(width));
    let stated = Setting {
        block,
        width,
        ..*setting
    };
    (tiles > programs).then_some((programs, stated))
}

/// The same on a GPU, of 16-bit floats in rows that bulk copies take, by tiles of which a multiprocessor holds one at a time, or
/// which two groups of warps take in turns.
pub(crate) fn turns_of_halves<T>(
    device: &Device,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Option<(usize, Setting)> {
    let fits = n.is_multiple_of(8) && k.is_multiple_of(8) && size_of::<T>() == 2;
    let is_wide = n > 128;
    let is_large = setting.block_or(128) * setting.width_or(256) >= 128 * 256;
    let is_one = is_large || setting.schedule.pingpong == Some(2);
    let found = turns(device, [m, n], setting);
    found.filter(|_| fits && is_wide && is_one && device.kind() != DeviceKind::Cpu)
}

/// The setting of tiles that are taken in turns, where a group of warps starts copies if a tile of 128 rows has so many columns and
/// so a multiprocessor to itself; without turns a setting as it is.
pub(crate) fn of_turns(
    turns: Option<&(usize, Setting)>,
    setting: &Setting,
    columns: usize,
) -> Setting {
    let Some((_, stated)) = turns else {
        return *setting;
    };
    stated.or_producer(stated.block * stated.width >= 128 * columns)
}

/// Two groups of warps that take tiles in turns beside one that starts copies.
pub(crate) fn pingpong() -> Setting {
    let setting = Setting::staged((128, 128, 4, 6));
    Setting {
        schedule: setting.schedule.pingpong(2).producer(2),
        ..setting
    }
}

/// The grid of tiles `[bm, bn]` over a product, the columns first, as [`tile_origin`] takes them.
pub(crate) fn grid(out: &HostTensor<2>, [bm, bn]: [usize; 2]) -> (usize, usize) {
    (out.extent(1).div_ceil(bn), out.extent(0).div_ceil(bm))
}

/// The settings worth trying for products by tensor cores. Their `block` and `width` are the rows and the columns of a tile.
pub(crate) fn space() -> Vec<Setting> {
    let tiles = [
        (128, 256, 8, 4),
        (128, 256, 8, 3),
        (128, 128, 4, 3),
        (128, 128, 4, 4),
        (128, 128, 8, 3),
        (256, 128, 8, 4),
        (64, 256, 4, 4),
        (64, 128, 4, 4),
        (64, 128, 4, 8),
    ];
    let tiles = tiles.map(Setting::staged).into_iter();
    tiles.chain([pingpong()]).collect()
}
