//! `dot` by fused multiply-adds: operands in shared memory, a block of the result in each lane.
//!
//! Both operands lie in shared memory with k as the slow index, so that a lane reads its rows of `a`
//! and its columns of `b` for one k as vectors. The k bits that lanes of a load of `a` usually hold
//! are added to its row bits, which spreads its transposing stores over the banks.

use std::ops::Range;

use super::registers::{Registers, grouped, owners};
use super::tile::{Scope, Tile};
use super::{Lowering, Result};
use crate::ir::index_map::dim_bits;
use crate::ir::operand::is_multiplied_in_fragments;
use crate::ir::{DType, Inst, Literal, Op, Precision, Type, Value, op};
use crate::layout::matrix::apply;
use crate::layout::{LinearLayout, ThreadMap};
use crate::lower::combine::multiply_add;

/// Log2 of the most steps of k that are written out; more steps are a loop.
const UNROLLED_BITS: u32 = 5;

/// Log2 of the most multiply-adds of a lane that are written out, of all parts of a product together: products
/// of `f32` run slower with half as many.
const WRITTEN_BITS: u32 = 10;

/// The same in code for programs at an edge, of which there are few: code costs time to compile.
const EDGE_UNROLLED_BITS: u32 = 3;

/// Steps of k whose operands one instruction reads.
const TOGETHER: u64 = 2;

/// An operand in shared memory, as lanes read it for one k.
struct Operand {
    base: Value,
    dtype: DType,
    /// The part of the offset that depends on the thread.
    map: ThreadMap,
    /// What the offset of each access adds to that.
    reads: Vec<u32>,
    /// For each distinct register of the accumulator its element of what is read.
    places: Vec<u32>,
    /// What each bit of k adds to the offset.
    steps: Vec<u64>,
    /// Log2 of the elements of one access.
    vector_bits: u32,
}

/// Where a block of steps begins.
struct Start {
    /// What it adds to every offset.
    added: Value,
    /// What it adds by exclusive or (`i32`), and the bits that this may have, where places of rows move with k.
    mixed: Option<(Value, u32)>,
}

impl Lowering<'_> {
    pub(super) fn dot(&mut self, result: Value, op: &op::Dot) -> Result<()> {
        if is_multiplied_in_fragments(self.block, op) {
            return self.tensor_dot(result, op);
        }
        if op.precision.is_chain(self.dtype(op.a)?) {
            return self.fused_dot(result, op);
        }
        // Of what is no chain, fragments have taken all but 8-bit floats, and a pass makes `Cut` only of what groups of warps share.
        let message = "a GPU computes `dot` with precision `hopper` of 8-bit floats by groups of four warps: \
                       tiles of 64 rows, 8 columns and 128 products or more, no batch, 4 warps or more, and operands \
                       that fit in shared memory";
        let note = "take such tiles and warps; or precision `ieee`, or `f16` operands, which have other bits";
        Err(self.error(message).note(note))
    }

    fn fused_dot(&mut self, result: Value, op: &op::Dot) -> Result<()> {
        self.check_precision(op.precision)?;
        let op::Dot {
            a, b, accumulator, ..
        } = *op;
        let dtype = self.dtype(result)?;
        let bits = |value: Value| dim_bits(&self.block.ty(value).shape);
        let (dims, inner) = (bits(result), bits(a).len() - 1);
        let (rows, columns, steps) = (dims[inner - 1], dims[inner], bits(a)[inner]);
        let batch: u32 = dims[..inner - 1].iter().sum();
        let layout = self.layout(result);
        let accumulators = self.get(accumulator);
        let accumulators = self.distinct(&accumulators, &layout);
        let tiles = [a, b].map(|value| self.tile(value));
        let base_a = self.shared(dtype, 1 << (batch + rows + steps));
        let base_b = self.shared(dtype, 1 << (batch + columns + steps));
        let places_a = left_places(rows, steps, batch);
        let places_b = right_places(columns, steps, batch);
        self.stage(&tiles[0], base_a, dtype, &places_a);
        self.stage(&tiles[1], base_b, dtype, &places_b);
        self.barrier();
        // An index of the accumulator has bits of columns, of rows and of the batch, lowest first.
        let row_places = [&vec![0; columns as usize], &places_a[steps as usize..]].concat();
        let (of_columns, others) = places_b.split_at(columns as usize);
        let (of_steps, of_batch) = others.split_at(steps as usize);
        let column_places = [of_columns, &vec![0; rows as usize], of_batch].concat();
        let vector_bytes = self.target.vector_bytes;
        let reader = |base, places: &[u64], steps: &[u64]| {
            operand(&layout, base, dtype, vector_bytes, places, steps)
        };
        let left = reader(base_a, &row_places, &places_a[..steps as usize]);
        let right = reader(base_b, &column_places, of_steps);
        let sums = self.steps(&[left, right], accumulators, steps);
        let sums = match op.precision {
            Precision::Ieee => {
                let zero = Literal::from_f64(dtype, 0.0);
                let zero = self.builder.filled(zero, self.builder.ty(sums).shape);
                self.builder.add(sums, zero)
            }
            Precision::Hopper | Precision::Cut => sums,
        };
        self.bind(result, Registers::of(sums, &layout));
        Ok(())
    }

    /// Stores a tile to shared memory; `places` gives the offset that each flat index bit adds.
    fn stage(&mut self, tile: &Tile, base: Value, dtype: DType, places: &[u64]) {
        let layout = &tile.layout;
        let (map, registers) = place_map(layout, places);
        let columns = place_columns(layout.register_columns(), places);
        let others: u32 = map.support();
        // Register bits that hold the lowest offset bits make a vector.
        let mut vector = Vec::new();
        for bit in 0..(self.target.vector_bytes / dtype.bytes()).ilog2() {
            let holders: Vec<usize> = (0..columns.len())
                .filter(|&column| columns[column] >> bit & 1 == 1)
                .collect();
            match holders.as_slice() {
                &[holder] if columns[holder] == 1 << bit && others >> bit & 1 == 0 => {
                    vector.push(1_u32 << holder);
                }
                _ => break,
            }
        }
        let owner = self.all_zero(layout.free_bits());
        let taken: u32 = vector.iter().sum();
        let firsts = (0..layout.registers()).filter(|register| register & taken == 0);
        let firsts: Vec<u32> = firsts.collect();
        let in_vector =
            |first: u32| (0..1_u32 << vector.len()).map(move |element| (first, element));
        let chosen = firsts
            .iter()
            .flat_map(|&first| in_vector(first))
            .map(|(first, element)| {
                let bits = vector.iter().enumerate();
                bits.filter(|(bit, _)| element >> bit & 1 == 1)
                    .fold(first, |sum, (_, r)| sum | r)
            });
        let chosen: Vec<u32> = chosen.collect();
        let places: Vec<u32> = firsts
            .iter()
            .map(|&first| registers[first as usize])
            .collect();
        let op = Op::LaneStore(op::LaneStore {
            base,
            offset: self.thread_offsets(&map, &places),
            value: self.pick(&tile.registers, &chosen),
            mask: self.owned_mask(None, owner, firsts.len()),
            align: i64::from(dtype.bytes()) << vector.len(),
            cache: None,
        });
        self.builder.emit(op, &[]);
    }

    /// All steps of k in ascending order.
    fn steps(&mut self, operands: &[Operand; 2], accumulator: Value, steps: u32) -> Value {
        let most = match self.at_edge {
            true => EDGE_UNROLLED_BITS,
            false => UNROLLED_BITS,
        };
        let sums = self.builder.ty(accumulator).shape.elements().ilog2();
        let written = WRITTEN_BITS.saturating_sub(sums + self.part_bits());
        let unrolled = most.min(written).max(1);
        if steps <= unrolled {
            return self.unrolled(operands, accumulator, steps, None);
        }
        let types = [Type::INDEX, self.builder.ty(accumulator)];
        let body = self.builder.new_region(&types);
        let outer = self.builder.enter(body);
        self.scopes.push(Scope::default());
        let parameters = self.builder.parameters(body);
        let block = parameters[0];
        let sum = self.unrolled(operands, parameters[1], unrolled, Some(block));
        let values = vec![sum];
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        let op = Op::For(op::For {
            lower: self.builder.index(0),
            upper: self.builder.index(1 << (steps - unrolled)),
            init: vec![accumulator],
            step: 1,
            stages: 1,
            body,
        });
        let inst = self.builder.emit(op, &[]);
        self.builder.results(inst)[0]
    }

    /// Log2 of the parts of products that shared memory does not hold at once: each goes on from the sums of another one.
    fn part_bits(&self) -> u32 {
        let goes_on = |inst: Inst| {
            let Op::Dot(op) = self.block.op(inst) else {
                return false;
            };
            let made = self.definitions[op.accumulator];
            made.is_some_and(|made| matches!(self.block.op(made), Op::Dot(_)))
        };
        let insts = self.block.all_insts().into_iter();
        (1 + insts.filter(|&inst| goes_on(inst)).count()).ilog2()
    }

    /// So many steps of k as `bits` is the logarithm of, starting at a multiple `block` of their number.
    fn unrolled(
        &mut self,
        operands: &[Operand; 2],
        accumulator: Value,
        bits: u32,
        block: Option<Value>,
    ) -> Value {
        let starts = operands
            .each_ref()
            .map(|operand| self.block_start(operand, block, bits));
        let (mut sum, count) = (accumulator, 1_u64 << bits);
        let together = TOGETHER.min(count);
        for first in (0..count).step_by(together as usize) {
            let steps = first..first + together;
            let left = self.operand_at(&operands[0], steps.clone(), starts[0].as_ref());
            let right = self.operand_at(&operands[1], steps, starts[1].as_ref());
            for step in 0..together as u32 {
                let left = self.step_of(&operands[0], left, step);
                let right = self.step_of(&operands[1], right, step);
                sum = multiply_add(&mut self.builder, left, right, sum);
            }
        }
        sum
    }

    /// What each register of the accumulator takes of the operands of some steps for one of them.
    fn step_of(&mut self, operand: &Operand, steps: Value, step: u32) -> Value {
        let first = (step * operand.reads.len() as u32) << operand.vector_bits;
        let places: Vec<u32> = operand.places.iter().map(|place| first + place).collect();
        self.elements(steps, &places)
    }

    /// Where a block of steps begins; `bits` is the logarithm of their number.
    fn block_start(&mut self, operand: &Operand, block: Option<Value>, bits: u32) -> Option<Start> {
        let (block, steps) = (block?, operand.steps.get(bits as usize..)?);
        let highest = |step: u64| 1_u64 << step.ilog2();
        let stride = self.builder.index(highest(*steps.first()?) as i64);
        let mixed = steps.iter().map(|&step| step ^ highest(step));
        let mixed = mixed.fold(0, |all, it| all | it);
        let added = self.builder.mul(block, stride);
        let mixed = (mixed != 0).then(|| {
            // Bits of k lie where they are in k.
            let k = self.builder.cast(block, DType::I32);
            let times = self.builder.int32(1 << bits);
            let (k, mask) = (self.builder.mul(k, times), self.builder.int32(mixed as i32));
            (self.builder.and(k, mask), mixed as u32)
        });
        Some(Start { added, mixed })
    }

    /// The elements that a lane needs of an operand for some steps.
    fn operand_at(&mut self, operand: &Operand, steps: Range<u64>, start: Option<&Start>) -> Value {
        let places = steps.map(|step| apply(&operand.steps, step) as u32);
        let reads = places.flat_map(|place| operand.reads.iter().map(move |read| read ^ place));
        let reads: Vec<u32> = reads.collect();
        let mut offset = match start.and_then(|start| start.mixed) {
            Some((mixed, bits)) => {
                let thread = self.thread_value(&operand.map);
                let thread = self.builder.xor(thread, mixed);
                self.mixed_offsets(thread, operand.map.support() | bits, &reads)
            }
            None => self.thread_offsets(&operand.map, &reads),
        };
        if let Some(start) = start {
            let start = self.repeated(start.added, reads.len());
            offset = self.builder.add(offset, start);
        }
        let lanes = 1_usize << operand.vector_bits;
        let op = Op::LaneLoad(op::LaneLoad {
            base: operand.base,
            offset,
            mask: None,
            other: None,
            align: i64::from(operand.dtype.bytes()) * lanes as i64,
            cache: None,
        });
        let ty = Type::vector(operand.dtype, reads.len() * lanes);
        self.builder.declared(op, ty)
    }
}

/// Where `a[m, k]` lies, for each bit of its flat index (k bits first): k slow, and its bits 2 to 4
/// also added to the row bits 2 to 4 where there are so many; then the bits of the batch.
fn left_places(rows: u32, steps: u32, batch: u32) -> Vec<u64> {
    let swizzled = |bit: u32| (2..5).contains(&bit) && bit < rows;
    let step = |bit: u32| 1_u64 << (rows + bit) | u64::from(swizzled(bit)) << bit;
    (0..steps)
        .map(step)
        .chain((0..rows).map(|bit| 1 << bit))
        .chain((rows + steps..rows + steps + batch).map(|bit| 1 << bit))
        .collect()
}

/// Where `b[k, n]` lies, for each bit of its flat index: row-major.
fn right_places(columns: u32, steps: u32, batch: u32) -> Vec<u64> {
    (0..columns + steps + batch).map(|bit| 1 << bit).collect()
}

fn place_columns(columns: &[u64], places: &[u64]) -> Vec<u32> {
    columns
        .iter()
        .map(|&column| apply(places, column) as u32)
        .collect()
}

/// The offset of each element of a layout: the part of the thread and that of each register.
fn place_map(layout: &LinearLayout, places: &[u64]) -> (ThreadMap, Vec<u32>) {
    let map = ThreadMap {
        lane: place_columns(layout.lane_columns(), places),
        warp: place_columns(layout.warp_columns(), places),
    };
    let columns: Vec<u64> = place_columns(layout.register_columns(), places)
        .into_iter()
        .map(u64::from)
        .collect();
    let registers = (0..layout.registers())
        .map(|register| apply(&columns, u64::from(register)) as u32)
        .collect();
    (map, registers)
}

/// How lanes read an operand for the accumulator's registers; `places` gives the offset that each
/// flat index bit of the accumulator adds.
fn operand(
    layout: &LinearLayout,
    base: Value,
    dtype: DType,
    vector_bytes: u32,
    places: &[u64],
    steps: &[u64],
) -> Operand {
    let (map, registers) = place_map(layout, places);
    let columns = place_columns(layout.register_columns(), places);
    let most = (vector_bytes / dtype.bytes()).ilog2();
    let support = map.support();
    let step_bits = steps.iter().fold(0, |bits, &step| bits | step);
    let whole = |bit: &u32| {
        let held = columns
            .iter()
            .filter(|&&column| column >> bit & 1 == 1)
            .count();
        columns.contains(&(1 << bit))
            && held == 1
            && support >> bit & 1 == 0
            && step_bits >> bit & 1 == 0
    };
    let vector_bits = (0..most).take_while(whole).count() as u32;
    let low = (1_u32 << vector_bits) - 1;
    let own: Vec<u32> = owners(layout)
        .into_iter()
        .map(|register| registers[register as usize])
        .collect();
    let (firsts, groups) = grouped(own.iter().map(|place| place & !low));
    let reads = firsts.iter().map(|&at| own[at as usize] & !low);
    let places = own.iter().zip(&groups);
    Operand {
        base,
        dtype,
        map,
        reads: reads.collect(),
        places: places
            .map(|(place, group)| group << vector_bits | place & low)
            .collect(),
        steps: steps.to_vec(),
        vector_bits,
    }
}
