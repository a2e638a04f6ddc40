//! What ops do with memory.

use std::collections::BTreeMap;

use super::{AtomicOp, Func, Inst, MemoryOrder, Op, Scope, Value, op};

/// The access of an op to memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAccess {
    /// The pointer.
    pub base: Value,
    /// The offsets of the elements.
    pub offsets: Value,
    /// Where the access is made; `None` means everywhere.
    pub mask: Option<Value>,
    /// What is written or combined.
    pub value: Option<Value>,
    /// What happens to memory.
    pub effect: Effect,
}

/// What an access does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Reads it.
    Reads,
    /// Writes it.
    Writes,
    /// Combines with it.
    Combines(AtomicOp),
    /// Combines with it and gives what it held: the order of several decides what each gives.
    Fetches(AtomicOp),
}

impl Effect {
    /// Whether two accesses give the same in either order: reads do, and atomics of one op without a result.
    pub fn commutes(self, other: Effect) -> bool {
        self == other && !matches!(self, Effect::Writes | Effect::Fetches(_))
    }
}

macro_rules! accesses {
    ($($Op:ident: $offsets:ident, $op:ident => $value:expr, $effect:expr;)*) => {
        $(
            impl op::$Op {
                /// The access that the op makes.
                pub fn access(&self) -> MemoryAccess {
                    let $op = self;
                    MemoryAccess {
                        base: $op.base,
                        offsets: $op.$offsets,
                        mask: $op.mask,
                        value: $value,
                        effect: $effect,
                    }
                }
            }
        )*

        impl Op {
            /// The access of a load, a store or an atomic, of a tile or of a lane.
            pub fn access(&self) -> Option<MemoryAccess> {
                match self {
                    $(Op::$Op(op) => Some(op.access()),)*
                    _ => None,
                }
            }
        }
    };
}

accesses! {
    Load: offsets, op => None, Effect::Reads;
    CopyLanes: offsets, op => None, Effect::Reads;
    CopyRun: offsets, op => None, Effect::Reads;
    CopyRow: offsets, op => None, Effect::Reads;
    LaneLoad: offset, op => None, Effect::Reads;
    Store: offsets, op => Some(op.value), Effect::Writes;
    LaneStore: offset, op => Some(op.value), Effect::Writes;
    AtomicReduce: offsets, op => Some(op.value), Effect::Combines(op.op);
    AtomicFetch: offsets, op => Some(op.value), Effect::Fetches(op.op);
    LaneFetch: offset, op => Some(op.value), Effect::Fetches(op.op);
    LaneAtomic: offset, op => Some(op.value), Effect::Combines(op.op);
}

impl Op {
    /// The mask of an access of tiles or of a print, which may have one.
    pub fn mask_mut(&mut self) -> Option<&mut Option<Value>> {
        let (Op::Load(op::Load { mask, .. })
        | Op::TileLoad(op::TileLoad { mask, .. })
        | Op::Store(op::Store { mask, .. })
        | Op::TileStore(op::TileStore { mask, .. })
        | Op::AtomicReduce(op::AtomicReduce { mask, .. })
        | Op::AtomicFetch(op::AtomicFetch { mask, .. })
        | Op::TileAtomic(op::TileAtomic { mask, .. })
        | Op::TileFetch(op::TileFetch { mask, .. })
        | Op::Print(op::Print { mask, .. })) = self
        else {
            return None;
        };
        Some(mask)
    }

    /// What an atomic of tiles orders, and between whom it is one.
    pub fn ordering_mut(&mut self) -> Option<(&mut Option<MemoryOrder>, &mut Option<Scope>)> {
        let (Op::AtomicReduce(op::AtomicReduce { order, scope, .. })
        | Op::AtomicFetch(op::AtomicFetch { order, scope, .. })
        | Op::TileAtomic(op::TileAtomic { order, scope, .. })
        | Op::TileFetch(op::TileFetch { order, scope, .. })) = self
        else {
            return None;
        };
        Some((order, scope))
    }

    /// How an atomic orders the accesses of its program.
    pub fn memory_order(&self) -> Option<MemoryOrder> {
        let (Op::AtomicReduce(op::AtomicReduce { order, .. })
        | Op::AtomicFetch(op::AtomicFetch { order, .. })) = self
        else {
            return None;
        };
        *order
    }

    /// The tensor, the origin and the mask of an access to a tile of a tensor.
    fn tile_place(&self) -> Option<(Value, &[Value], Option<Value>)> {
        let (Op::TileLoad(op::TileLoad {
            tensor,
            origin,
            mask,
            ..
        })
        | Op::TileStore(op::TileStore {
            tensor,
            origin,
            mask,
            ..
        })
        | Op::TileAtomic(op::TileAtomic {
            tensor,
            origin,
            mask,
            ..
        })
        | Op::TileFetch(op::TileFetch {
            tensor,
            origin,
            mask,
            ..
        })) = self
        else {
            return None;
        };
        Some((*tensor, origin, *mask))
    }

    /// Whether checked launches check what an op of tiles accesses or asserts: each such op is a site.
    pub fn is_checked(&self) -> bool {
        self.tile().is_some() && self.placed_by().is_some()
    }

    /// What decides which elements an op accesses, of memory or of a tile, or whether an assertion holds; `None`
    /// for ops of which nothing is checked.
    pub fn placed_by(&self) -> Option<Vec<Value>> {
        if let Op::Assert(op) = self {
            return Some(vec![op.condition]);
        }
        if let Op::Gather(op) = self {
            return Some(vec![op.indices]);
        }
        if let Some((tensor, origin, mask)) = self.tile_place() {
            let origin = origin.iter().copied();
            return Some(origin.chain(mask).chain([tensor]).collect());
        }
        let access = self.access()?;
        Some(access.mask.into_iter().chain([access.offsets]).collect())
    }
}

impl Func {
    /// The pointer to the memory that an op accesses, at offsets or in a tile of a tensor.
    pub fn accessed(&self, inst: Inst) -> Option<Value> {
        if let Some(access) = self.op(inst).access() {
            return Some(access.base);
        }
        let (tensor, ..) = self.op(inst).tile_place()?;
        self.all_insts().into_iter().find_map(|inst| {
            let Op::Tensor(op) = self.op(inst) else {
                return None;
            };
            self.inst(inst).results.contains(&tensor).then_some(op.base)
        })
    }

    /// Whether a program of a checked launch may end at one of the ops of this function. Tiles of tensors that lie in their memory
    /// are accessed without checks.
    pub fn may_end_at(&self, op: &Op) -> bool {
        let lies = |access: MemoryAccess| self.is_tiled(access.base);
        op.is_checked() && !op.access().is_some_and(lies)
    }

    /// The number of each access that is checked, in program order: the `site` of its errors. One that
    /// [`Self::keep_sites`] has numbered keeps its number, so that an error is the same whichever copy finds
    /// it.
    pub fn access_sites(&self) -> BTreeMap<Inst, u32> {
        let checked = self.all_insts().into_iter();
        let checked = checked.filter(|&inst| self.op(inst).is_checked());
        let numbered = (0..).zip(checked);
        numbered
            .map(|(next, inst)| (inst, self.inst(inst).site.unwrap_or(next)))
            .collect()
    }

    /// Keeps the numbers of accesses, for a pass that copies them.
    pub fn keep_sites(&mut self) {
        for (inst, site) in self.access_sites() {
            self.inst_mut(inst).site = Some(site);
        }
    }
}
