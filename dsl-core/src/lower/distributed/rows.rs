//! Rows of arrays that bulk copies bring to shared memory. Their pieces of 16 bytes lie there as in memory, so the first warp
//! starts one copy for all that a row has whole, and its lanes bring the ends. All wait for the phase of a barrier that
//! counts the bytes, and at which the first warp arrives once the ends are there.

use super::registers::Registers;
use super::{Lowering, Result};
use crate::ir::index_map::dim_bits;
use crate::ir::operand::piece_bits;
use crate::ir::{DType, Op, Type, Value, op};
use crate::layout::slots::{SlotPlaces, in_order};
use crate::passes::allocate::row_elements;
use crate::schedule::runs::begins_a_piece;
use crate::target::WARP_LANES;

/// A row in shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    memory: Value,
    /// The barrier of its copy.
    word: Value,
    /// Where its first element lies (`i32`).
    first: Value,
    /// Whether that is where a piece begins, in memory as well.
    begins_a_piece: bool,
}

/// Where a row is cut. Places (`i32`) count from where the piece begins in which the row does, in memory and in shared memory.
#[derive(Clone, Copy)]
struct Ends {
    /// That place in memory (`i64`).
    base: Value,
    first: Value,
    /// The first element that the bulk copy brings, or would.
    whole: Value,
    /// The first one behind those.
    rest: Value,
    end: Value,
}

impl Lowering<'_> {
    pub(super) fn copy_row(&mut self, result: Value, op: &op::CopyRow) -> Result<()> {
        let dtype = self.block.ty(result).row();
        let dtype = dtype.expect("broken invariant: this op gives a row");
        let memory = self.in_shared(dtype, row_elements(dtype, op.room));
        let word = self.in_shared(DType::U64, 1);
        let at = self.builder.int32(0);
        self.by_first_warp(|this| {
            let count = 1;
            let init = Op::MbarrierInit(op::MbarrierInit { word, at, count });
            this.builder.emit(init, &[]);
            Ok(())
        })?;
        // Lanes may have used the bytes.
        let used = std::mem::replace(&mut self.uses_shared, true);
        if used {
            self.builder.emit(Op::ProxyFence(op::ProxyFence {}), &[]);
            self.builder.emit(Op::Barrier(op::Barrier {}), &[]);
        }
        let source = self.scalar(op.base);
        let begins_a_piece = begins_a_piece(self.block, &self.indices, op.offsets, dtype);
        let ends = self.ends((op.start, op.count), begins_a_piece, 1 << piece_bits(dtype));
        self.by_first_warp(|this| {
            let copy = Op::CopySpan(op::CopySpan {
                target: memory,
                offset: ends.whole,
                source,
                source_offset: this.in_memory(ends, ends.whole),
                count: this.builder.sub(ends.rest, ends.whole),
                word,
                at,
            });
            this.builder.emit(copy, &[]);
            this.copy_ends((source, memory, dtype), ends);
            let arrive = Op::MbarrierArrive(op::MbarrierArrive { word, at });
            this.builder.emit(arrive, &[]);
            Ok(())
        })?;
        if !used {
            self.builder.emit(Op::Barrier(op::Barrier {}), &[]);
        }
        let first = ends.first;
        let row = Row {
            memory,
            word,
            first,
            begins_a_piece,
        };
        self.rows.insert(result, row);
        self.bind(result, Registers::uniform(memory, 1));
        Ok(())
    }

    /// Where a row is cut, in pieces of so many elements.
    fn ends(&mut self, (start, count): (Value, Value), begins: bool, piece: i64) -> Ends {
        let (start, count) = (self.scalar(start), self.scalar(count));
        let builder = &mut self.builder;
        let (base, first) = if begins {
            (start, builder.int32(0))
        } else {
            let pieces = builder.index(-piece);
            let base = builder.and(start, pieces);
            let first = builder.sub(start, base);
            (base, builder.cast(first, DType::I32))
        };
        let count = builder.cast(count, DType::I32);
        let end = builder.add(first, count);
        let [last, pieces] = [piece - 1, -piece].map(|it| builder.int32(it as i32));
        let up = builder.add(first, last);
        let up = builder.and(up, pieces);
        let whole = builder.minimum(up, end);
        let down = builder.and(end, pieces);
        let rest = builder.maximum(down, whole);
        Ends {
            base,
            first,
            whole,
            rest,
            end,
        }
    }

    /// The offset in memory of a place of a row.
    fn in_memory(&mut self, ends: Ends, place: Value) -> Value {
        let place = self.builder.cast(place, DType::I64);
        self.builder.add(ends.base, place)
    }

    /// The lanes of a warp bring what is in front of the whole pieces of a row, and what is behind them.
    fn copy_ends(&mut self, (source, memory, dtype): (Value, Value, DType), ends: Ends) {
        let half = (WARP_LANES / 2) as i32;
        let lane = self.lane_id();
        let builder = &mut self.builder;
        let [half, last] = [half, half - 1].map(|it| builder.int32(it));
        let in_front = builder.lt(lane, half);
        let number = builder.and(lane, last);
        let from = builder.select(in_front, ends.first, ends.rest);
        let to = builder.select(in_front, ends.whole, ends.end);
        let place = builder.add(from, number);
        let mask = Some(builder.lt(place, to));
        let align = dtype.bytes().into();
        let load = Op::LaneLoad(op::LaneLoad {
            base: source,
            offset: self.in_memory(ends, place),
            mask,
            other: None,
            align,
            cache: None,
        });
        let value = self.builder.declared(load, Type::scalar(dtype));
        let store = Op::LaneStore(op::LaneStore {
            base: memory,
            offset: place,
            value,
            mask,
            align,
            cache: None,
        });
        self.builder.emit(store, &[]);
    }

    fn row(&self, row: Value) -> Row {
        let found = self.rows.get(&row).copied();
        found.expect("broken invariant: a row is copied before its uses")
    }

    pub(super) fn wait_row(&mut self, op: &op::WaitRow) -> Result<()> {
        let word = self.row(op.row).word;
        let [at, phase] = [0; 2].map(|it| self.builder.int32(it));
        let wait = Op::MbarrierWait(op::MbarrierWait { word, at, phase });
        self.builder.emit(wait, &[]);
        Ok(())
    }

    pub(super) fn row_load(&mut self, result: Value, op: &op::RowLoad) -> Result<()> {
        let row = self.row(op.row);
        let (ty, layout) = (self.block.ty(result), self.layout(result));
        let dtype = self.dtype(result)?;
        let places = SlotPlaces::of_elements(&in_order(&dim_bits(&ty.shape)), &layout);
        let most = match row.begins_a_piece {
            true => self.vector_bits_of(&ty, dtype, op),
            false => 0,
        };
        let first = op.at.map_or(row.first, |at| {
            let at = self.scalar(at);
            let at = self.builder.cast(at, DType::I32);
            self.builder.add(row.first, at)
        });
        let vectors = places.vectors(most);
        let starts: Vec<u32> = vectors.iter().map(|vector| vector[0]).collect();
        let all = vectors.concat();
        let mask = op.mask.map(|mask| self.get(mask));
        let other = op.other.map(|other| self.get(other));
        let load = Op::LaneLoad(op::LaneLoad {
            base: row.memory,
            offset: self.placed_offsets(first, &places, (&starts, 0)),
            mask: mask.map(|mask| self.pick(&mask, &starts)),
            other: other.map(|other| self.pick(&other, &all)),
            align: i64::from(dtype.bytes()) * vectors[0].len() as i64,
            cache: None,
        });
        let loaded = self.builder.declared(load, Type::vector(dtype, all.len()));
        let mut places = vec![0; all.len()];
        for (&register, at) in all.iter().zip(0..) {
            places[register as usize] = at;
        }
        self.bind(result, Registers::new(loaded, places));
        Ok(())
    }

    /// Log2 of how many elements of a row are read at once, which have one mask.
    fn vector_bits_of(&self, ty: &Type, dtype: DType, op: &op::RowLoad) -> u32 {
        let most = (self.target.vector_bytes / dtype.bytes()).ilog2();
        let mut long = (0..ty.shape.rank()).filter(|&axis| ty.shape.extent(axis) > 1);
        let masked = op
            .mask
            .map_or(most, |mask| match (long.next(), long.next()) {
                (None, _) => most,
                (Some(axis), None) => self.indices.fact(mask).axis(axis).equal(),
                (Some(_), Some(_)) => 0,
            });
        let aligned = op.at.map_or(most, |at| self.indices.fact(at).divisor());
        most.min(masked).min(aligned)
    }
}
