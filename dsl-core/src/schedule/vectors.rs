//! How many neighbours a lane has of tiles in memory, as the accesses to tiles of each shape would have it.

use std::collections::{BTreeMap, BTreeSet};

use super::runs::slow_runs;
use crate::ir::{Func, Inst, MemoryAccess, Shape};
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
