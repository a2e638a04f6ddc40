//! Tiles that lanes read an iteration before their products take them, as soon as the registers of the last ones are free: a
//! multiprocessor then multiplies while it reads, and the slot of an iteration is free from its beginning on.

use std::collections::{BTreeMap, BTreeSet};

use super::super::read_back::read_back;
use super::{Own, Pipeliner, before_end};
use crate::ir::{CompareOp, Func, Inst, Layout, Literal, Op, Type, Value, op};
use crate::passes::rewrite::replace_uses;

/// The most registers of a lane for what a loop carries, tiles that are read included: others are for addresses.
const MOST_REGISTERS: usize = 226;

/// The most of them where tiles of two iterations are among them: they are then read before the products, and moved behind them.
const FEW_REGISTERS: usize = 192;

/// When an iteration reads the tiles of the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// Before its own products, into registers of their own.
    First,
    /// Behind them.
    Late,
}

/// A tile that is read from slots.
struct Read {
    buffer: Value,
    tile: Value,
    ty: Type,
    layout: Option<Layout>,
}

impl Pipeliner {
    /// When tiles may be read an iteration ahead: nothing but tiles that lanes read in another layout than they copy them runs
    /// ahead, in every iteration, and lanes have registers to carry them.
    pub(super) fn may_read_ahead(&self, slot: Value) -> Option<Reads> {
        let mut rings = self.rings.values();
        if !rings.all(|ring| ring.moved.is_some()) {
            return None;
        }
        let mut func = self.func().clone();
        read_back(&mut func, &self.rings, &self.buffers, (self.body, slot));
        let reads = self.reads(&func);
        let registers = |value: Value| {
            let dtype = func.ty(value).dtype();
            let bytes = dtype.map_or(0, |dtype| dtype.bytes() as usize);
            let layout = func.layout(value).map(|layout| func.linear(layout));
            layout.map_or(0, |layout| layout.registers() as usize) * bytes.div_ceil(4)
        };
        let carried = func.region(self.body).parameters.iter();
        let held: usize = carried.map(|&it| registers(it)).sum();
        let read: usize = reads.iter().map(|read| registers(read.tile)).sum();
        let buffers: BTreeSet<Value> = self.buffers.values().copied().collect();
        let all = reads.len() == buffers.len();
        let reads = match held + 2 * read <= FEW_REGISTERS {
            true => Reads::First,
            false => Reads::Late,
        };
        (all && held + read <= MOST_REGISTERS).then_some(reads)
    }

    /// The tiles that every iteration reads from slots of this loop.
    fn reads(&self, func: &Func) -> Vec<Read> {
        let insts = func.region(self.body).insts.iter();
        let read = |&inst: &Inst| {
            let Op::SlotLoad(op) = func.op(inst) else {
                return None;
            };
            let mut own = self.buffers.values();
            let tile = func.inst(inst).results[0];
            own.any(|&buffer| buffer == op.buffer).then(|| Read {
                buffer: op.buffer,
                tile,
                ty: func.ty(tile),
                layout: func.layout(tile),
            })
        };
        insts.filter_map(read).collect()
    }

    /// Makes the reads of an iteration those of the next one, of which it carries the tiles. Returns what reads the first tiles
    /// before the loop, and what reads those of the next iteration, each with the tiles.
    pub(super) fn read_ahead(
        &mut self,
        (op, own): (&op::For, Own),
    ) -> [(Vec<Inst>, Vec<Value>); 2] {
        let reads = self.reads(self.func());
        let tiles: BTreeSet<Value> = reads.iter().map(|read| read.tile).collect();
        let index = self.func().region(self.body).parameters[0];
        let (first, (init, limit)) = self.apart(|this| {
            this.wait(this.distance - 1);
            this.builder.emit(Op::Barrier(op::Barrier {}), &[]);
            let init = this.first_tiles(op, &reads);
            (init, before_end(&mut this.builder, op.upper, op.step))
        });
        let later = self.apart(|this| {
            // The last iteration reads its own slot again, which nothing fills any more, and nobody uses the result.
            let runs = this.builder.compare(CompareOp::Lt, index, limit);
            let following = this.following(own);
            let slot = this.builder.select(runs, following.slot, own.slot);
            this.tiles(&reads, slot)
        });
        let carried: BTreeMap<Value, Value> = reads
            .iter()
            .map(|read| (read.tile, self.carry(read.ty, read.layout)))
            .collect();
        let func = self.builder.func_mut();
        let mut insts = std::mem::take(&mut func.region_mut(self.body).insts);
        insts.retain(|&inst| !func.inst(inst).results.iter().any(|it| tiles.contains(it)));
        func.region_mut(self.body).insts = insts;
        replace_uses(func, &|value| carried.get(&value).copied().unwrap_or(value));
        [(first, init), later]
    }

    /// The tiles of the first iteration, or zeros where there is none.
    fn first_tiles(&mut self, op: &op::For, reads: &[Read]) -> Vec<Value> {
        let condition = self.builder.compare(CompareOp::Lt, op.lower, op.upper);
        let slot = self.builder.int32(0);
        let on_true = self.yielding(|this| this.tiles(reads, slot));
        let on_false = self.yielding(|this| reads.iter().map(|read| this.zeros(read)).collect());
        let branch = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let types: Vec<Type> = reads.iter().map(|read| read.ty).collect();
        let inst = self.builder.emit(branch, &types);
        let results = self.func().inst(inst).results.clone();
        for (&result, read) in results.iter().zip(reads) {
            self.builder.func_mut().set_layout(result, read.layout);
        }
        results
    }

    fn tiles(&mut self, reads: &[Read], slot: Value) -> Vec<Value> {
        let load = |read: &Read| {
            let op = op::SlotLoad {
                buffer: read.buffer,
                slot,
                start: None,
            };
            let tile = self.builder.declared(Op::SlotLoad(op), read.ty);
            self.builder.func_mut().set_layout(tile, read.layout);
            tile
        };
        reads.iter().map(load).collect()
    }

    fn zeros(&mut self, read: &Read) -> Value {
        let dtype = read.ty.dtype();
        let dtype = dtype.expect("broken invariant: a tile is of numbers");
        let zero = self
            .builder
            .filled(Literal::from_bits(dtype, 0), read.ty.shape);
        self.builder.func_mut().set_layout(zero, read.layout);
        zero
    }
}
