//! The slots of loads that run ahead: of a lane's own, those of runs, those from which a product reads its operand, or those from
//! which lanes read a tile in another layout than they copy it.

use std::collections::BTreeMap;

use crate::ir::index_map::dim_bits;
use crate::ir::numbers::filling;
use crate::ir::{Func, Inst, Layout, Literal, Op, Region, Type, Value, op};
use crate::layout::group::inner_axis;
use crate::layout::shared::{read_together, shared_slot};
use crate::layout::slots::{in_order, own_slot};
use crate::layout::{Conversion, ConversionLimits, LinearLayout, Point};
use crate::passes::indices::Indices;
use crate::target::Target;

/// The least that lanes read at once from slots that others fill, in bytes.
const LEAST_READ: u32 = 8;

/// What a buffer is made of: the type of the tile in a slot, and the slot's layout.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Slots {
    pub(super) ty: Type,
    pub(super) layout: LinearLayout,
    /// Where lanes have places of their own, the layout of the tile that says whose they are.
    own: Option<Layout>,
    /// Elements that a lane copies at once, as is known of the load.
    pub(super) count: i64,
    /// Whether they hold runs.
    pub(super) of_runs: bool,
}

/// What follows a load whose tile goes nowhere but to a slot that a product reads.
#[derive(Clone, Copy)]
pub(super) struct Fed {
    /// What stores it there, or waits for the copy of a box.
    pub(super) store: Inst,
    pub(super) dot: Inst,
    /// The buffer that it is stored to.
    pub(super) buffer: Value,
}

/// The slots of a load.
pub(super) struct Ring {
    pub(super) slots: Slots,
    pub(super) fed: Option<Fed>,
    /// Where the run begins that the load reads, and how many elements it has.
    pub(super) run: Option<[Value; 2]>,
    /// What brings the tile to the layout in which lanes read it.
    pub(super) moved: Option<Inst>,
}

impl Ring {
    /// Whether lanes read what others have copied.
    pub(super) fn is_shared(&self) -> bool {
        self.fed.is_some() || self.run.is_some() || self.moved.is_some()
    }
}

/// What uses the values of a function, and where instructions stand.
pub(super) struct Uses<'a> {
    func: &'a Func,
    indices: &'a Indices,
    target: &'a Target,
    users: BTreeMap<Value, Vec<Inst>>,
    regions: BTreeMap<Inst, Region>,
}

impl<'a> Uses<'a> {
    pub(super) fn new(func: &'a Func, indices: &'a Indices, target: &'a Target) -> Self {
        let mut users: BTreeMap<Value, Vec<Inst>> = BTreeMap::new();
        let mut regions = BTreeMap::new();
        for region in func.all_regions() {
            for &inst in &func.region(region).insts {
                regions.insert(inst, region);
                for operand in func.op(inst).operands() {
                    users.entry(operand).or_default().push(inst);
                }
            }
        }
        Self {
            func,
            indices,
            target,
            users,
            regions,
        }
    }

    /// The slots for what a load gives; `None` where its accesses are too narrow for copies.
    pub(super) fn ring(&self, load: Inst, run: Option<[Value; 2]>) -> Option<Ring> {
        let func = self.func;
        if let Op::CopyBox(op) = func.op(load) {
            return self.boxed(load, op);
        }
        if let Some(run) = run {
            return Some(self.of_run(load, run));
        }
        let tile = func.op(load).access()?;
        let result = func.inst(load).results[0];
        let layout = func.linear(func.layout(result)?);
        let (dtype, _) = func.ty(tile.base).pointee()?;
        let (_, vector) = tile.copied_vectors(func, self.indices, layout, self.target);
        let bytes = dtype.bytes() << vector.len();
        if !self.target.gpu.copy_bytes.contains(&bytes.into()) {
            return None;
        }
        let whole = bytes == self.target.vector_bytes;
        let contiguous = tile.order(func, self.indices).first().copied();
        let in_place = |fed: &Fed| {
            let layout = func.layout(fed.buffer);
            let inner = layout.and_then(|layout| inner_axis(func.linear(layout), dtype));
            whole && inner.is_some() && inner == contiguous
        };
        let fed = self.fed(load).filter(in_place);
        let limits = ConversionLimits::new(dtype.bytes(), self.target);
        let moved = self.moved(load, (layout, &vector), &limits);
        let layout = match (fed.and_then(|fed| func.layout(fed.buffer)), moved) {
            (Some(layout), _) => func.linear(layout).clone(),
            (None, Some((_, read))) => shared_slot((layout, &vector), read, &limits),
            (None, None) => own_slot(layout, &vector),
        };
        let moved = moved.map(|(convert, _)| convert);
        let ty = func.ty(result);
        Some(Ring {
            slots: Slots {
                ty,
                layout,
                own: func
                    .layout(result)
                    .filter(|_| fed.is_none() && moved.is_none()),
                count: 1 << vector.len(),
                of_runs: false,
            },
            fed,
            run: None,
            moved,
        })
    }

    /// The slots for a box of which the copy is waited for at once.
    fn boxed(&self, copy: Inst, op: &op::CopyBox) -> Option<Ring> {
        let func = self.func;
        let users = self.users.get(&op.buffer)?;
        let mut others = users.iter().copied().filter(|&user| user != copy);
        let (Some(store), Some(dot), None) = (others.next(), others.next(), others.next()) else {
            return None;
        };
        let together = [store, dot]
            .iter()
            .all(|it| self.regions[it] == self.regions[&copy]);
        let waits = matches!(func.op(store), Op::WaitBox(_));
        let (dtype, _) = func.ty(op.buffer).buffer()?;
        let layout = func.linear(func.layout(op.buffer)?).clone();
        (together && waits && self.settles(dot)).then(|| Ring {
            slots: Slots {
                ty: func.ty(op.buffer).with_dtype(dtype),
                layout,
                own: None,
                count: 1,
                of_runs: false,
            },
            fed: Some(Fed {
                store,
                dot,
                buffer: op.buffer,
            }),
            run: None,
            moved: None,
        })
    }

    fn of_run(&self, load: Inst, run: [Value; 2]) -> Ring {
        let ty = self.func.ty(self.func.inst(load).results[0]);
        Ring {
            slots: Slots {
                ty,
                layout: in_order(&dim_bits(&ty.shape)),
                own: None,
                count: 1,
                of_runs: true,
            },
            fed: None,
            run: Some(run),
            moved: None,
        }
    }

    /// The conversion that alone uses a load whose tile lies as here, and the layout that it brings the tile to. It is one through
    /// shared memory, no element is copied by two lanes, and lanes read 8 bytes or more at once: narrower reads are more instructions
    /// than a conversion has.
    fn moved(
        &self,
        load: Inst,
        (layout, vector): (&LinearLayout, &[u32]),
        limits: &ConversionLimits,
    ) -> Option<(Inst, &LinearLayout)> {
        let func = self.func;
        let &[convert] = &self.users.get(&func.inst(load).results[0])?[..] else {
            return None;
        };
        let Op::Convert(_) = func.op(convert) else {
            return None;
        };
        let read = func.linear(func.layout(func.inst(convert).results[0])?);
        let plan = Conversion::plan(layout, read, limits).ok()?;
        let columns = layout.register_columns();
        let copied: Vec<u64> = vector.iter().map(|&bit| columns[bit as usize]).collect();
        let at_once = limits.element_bytes << read_together(&copied, read).len();
        let held_once = layout.free_bits() == Point::default();
        let is_moved = matches!(plan, Conversion::Shared(_))
            && held_once
            && at_once >= LEAST_READ
            && self.regions[&convert] == self.regions[&load]
            && other_of(func, load).is_none();
        is_moved.then_some((convert, read))
    }

    fn fed(&self, load: Inst) -> Option<Fed> {
        let func = self.func;
        let &[store] = &self.users.get(&func.inst(load).results[0])?[..] else {
            return None;
        };
        let Op::SlotStore(op::SlotStore { buffer, .. }) = *func.op(store) else {
            return None;
        };
        let users = self.users.get(&buffer)?;
        let mut others = users.iter().copied().filter(|&user| user != store);
        let (Some(dot), None) = (others.next(), others.next()) else {
            return None;
        };
        let together = [store, dot]
            .iter()
            .all(|it| self.regions[it] == self.regions[&load]);
        let fed = together && self.settles(dot) && other_of(func, load).is_none();
        fed.then_some(Fed { store, dot, buffer })
    }

    /// Whether an instruction is a product for which nothing else is waited, and which is waited for at once.
    fn settles(&self, dot: Inst) -> bool {
        let Op::DotSlots(op) = self.func.op(dot) else {
            return false;
        };
        let region = &self.func.region(self.regions[&dot]).insts;
        let begun = region.iter().any(|&inst| {
            let begins = matches!(self.func.op(inst), Op::Pend(_));
            begins && self.func.inst(inst).results[0] == op.accumulator
        });
        let users = self.users.get(&self.func.inst(dot).results[0]);
        let user = users.and_then(|users| users.first());
        begun && user.is_some_and(|&user| matches!(self.func.op(user), Op::Settle(_)))
    }
}

/// The mask of a load, and what stands for masked elements if that is not zero.
pub(super) fn other_of(func: &Func, load: Inst) -> Option<(Value, Value)> {
    let Op::Load(op) = func.op(load) else {
        return None;
    };
    let definitions = func.definitions();
    let is_zero = |value: Value| {
        let op = |value: Value| {
            let inst = definitions.get(value).copied().flatten();
            inst.map(|inst| func.op(inst))
        };
        filling(value, op).is_some_and(Literal::is_positive_zero)
    };
    op.mask.zip(op.other).filter(|&(_, other)| !is_zero(other))
}
