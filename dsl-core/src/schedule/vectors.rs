//! How many neighbours a lane has of tiles in memory, as the accesses to tiles of each shape would have it.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::reread_rows;
use super::runs::{WORD, slow_runs};
use crate::ir::{Func, Inst, MemoryAccess, Op, Shape};
use crate::passes::indices::Indices;
use crate::target::Target;

/// Bytes of the neighbours in a run that a lane reads in shared memory one by one: a warp takes two words of each bank.
const NEIGHBOURS: u32 = 8;

/// Tiles of one shape, which lie in memory along this axis.
pub(super) type Tiles = (Shape, usize);

/// Log2 of the widest vector of any access to tiles.
///
/// Lanes have neighbours also of a run that is to lie in shared memory, so that a tree over it begins in registers; not where
/// another access to such tiles goes element by element.
pub(super) fn widest_vectors(
    func: &Func,
    indices: &Indices,
    target: &Target,
    stated: Option<i64>,
) -> BTreeMap<Tiles, u32> {
    let bits = |access: &MemoryAccess, axis| access.vector_bits(func, indices, axis, target);
    let insts = func.all_insts().into_iter();
    let accesses = insts.filter_map(|inst| {
        let access = func.op(inst).access()?;
        let axis = *access.order(func, indices).first()?;
        Some((inst, (func.ty(access.offsets).shape, axis), access))
    });
    let accesses: Vec<(Inst, Tiles, MemoryAccess)> = accesses.collect();
    let mut widest: BTreeMap<Tiles, u32> = BTreeMap::new();
    for (_, tiles, access) in &accesses {
        let most = widest.entry(*tiles).or_default();
        *most = bits(access, tiles.1).max(*most);
    }
    let beside = beside_rows(func, &accesses, target, &bits);
    for (tiles, bits) in beside {
        let most = widest.entry(tiles).or_default();
        *most = bits.max(*most);
    }
    let runs = slow_runs(func, indices, target, stated).into_iter();
    let runs: BTreeSet<Inst> = runs.map(|(load, _)| load).collect();
    if runs.is_empty() {
        return widest;
    }
    let mut narrowest: BTreeMap<Tiles, u32> = BTreeMap::new();
    for (inst, tiles, access) in &accesses {
        let dtype = func.ty(access.base).pointee().map(|(dtype, _)| dtype);
        let bits = match dtype.filter(|_| runs.contains(inst)) {
            Some(dtype) => (NEIGHBOURS / dtype.bytes()).max(1).ilog2(),
            None => bits(access, tiles.1),
        };
        let least = narrowest.entry(*tiles).or_insert(bits);
        *least = bits.min(*least);
    }
    for (tiles, bits) in narrowest {
        let most = widest.entry(tiles).or_default();
        *most = bits.max(*most);
    }
    widest
}

/// Log2 of the neighbours of words, where they are to be read in long rows, of tiles that vectors load what stands beside these by.
fn beside_rows(
    func: &Func,
    accesses: &[(Inst, Tiles, MemoryAccess)],
    target: &Target,
    bits: &dyn Fn(&MemoryAccess, usize) -> u32,
) -> BTreeMap<Tiles, u32> {
    let dtype = |access: &MemoryAccess| func.ty(access.base).pointee().map(|(dtype, _)| dtype);
    let bytes = |(_, (shape, _), access): &(Inst, Tiles, MemoryAccess)| {
        let bytes = dtype(access).map_or(0, |dtype| dtype.bytes());
        shape.elements() as i64 * i64::from(bytes)
    };
    let Some(least) = target.gpu.row_bytes else {
        return BTreeMap::new();
    };
    if accesses.iter().all(|it| bytes(it) < least) {
        return BTreeMap::new();
    }
    let slow = reread_rows(func, target)
        .into_iter()
        .filter(|(_, row)| row.is_slow);
    let rows: BTreeSet<Inst> = slow.map(|(load, _)| load).collect();
    let of_rows = accesses.iter().filter(|it| rows.contains(&it.0));
    let found = of_rows.filter_map(|(_, tiles, row)| {
        let others = accesses.iter().filter(|(inst, other, _)| {
            other == tiles && !rows.contains(inst) && matches!(func.op(*inst), Op::Load(_))
        });
        let whole = |access: &MemoryAccess| MemoryAccess {
            mask: None,
            ..*access
        };
        let widest = others
            .map(|(_, (_, axis), access)| bits(&whole(access), *axis))
            .max()?;
        let word = (WORD / dtype(row)?.bytes()).max(1).ilog2();
        Some((*tiles, widest.min(word)))
    });
    found.collect()
}
