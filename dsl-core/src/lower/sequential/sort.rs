//! Sorts: a bitonic network on vectors of lines in scratch memory.
//!
//! Before the first comparison the order of a line is of no account, so the lanes of a vector are
//! the *highest* bits of the index, which are compared least: nearly all comparisons are between
//! whole vectors. At the end lanes and vectors change places. Up to three bits of the index are
//! compared in one pass over memory.

use super::index::Scalar;
use super::lowerer::{Binding, Buffer, Lowerer};
use crate::ir::index_map::dim_bits;
use crate::ir::{IndexMap, Inst, Op, Shape, Type, Value, op};
use crate::lower::ordered::{lesser, ordered};

/// Index bits that are compared in one pass over memory.
const PASS_BITS: u32 = 3;

/// The line, or the few short ones in a vector, being sorted.
struct Line {
    buffers: Vec<Buffer>,
    keys: usize,
    lanes: usize,
    /// Where it starts.
    start: Scalar,
    /// Index bits that count vectors: the lowest ones.
    vertical: u32,
    /// The lane bits that are the other index bits.
    across: Vec<usize>,
}

impl Line {
    /// Elements of the vectors that hold it.
    fn span(&self) -> i64 {
        (self.lanes as i64) << self.vertical
    }

    /// The lanes that differ in the index bits from `vertical` to `bit`.
    fn below(&self, bit: u32) -> usize {
        let count = (bit + 1 - self.vertical) as usize;
        self.across[..count]
            .iter()
            .fold(0, |mask, lane| mask | lane)
    }
}

impl Lowerer<'_> {
    pub(super) fn sort(&mut self, inst: Inst, op: &op::Sort) {
        let op::Sort {
            sources,
            keys,
            axis,
            count,
            ..
        } = op.clone();
        let shape = self.shape(sources[0]);
        let mut permutation: Vec<u32> = (0..shape.rank() as u32).collect();
        let axis = permutation.remove(axis.index());
        permutation.push(axis);
        let dims = permutation.iter().map(|&axis| shape.extent(axis as usize));
        let mut dims: Vec<usize> = dims.collect();
        let extent = shape.extent(axis as usize);
        let lined = Shape::new(&dims).expect("broken invariant: a permuted shape is a shape");
        let map = IndexMap::transpose(dim_bits(&shape), &permutation);
        let buffers: Vec<Buffer> = sources
            .iter()
            .map(|&source| {
                let buffer = self.allocate(self.dtype(source), lined);
                self.fill(&buffer, &mut |this, index| {
                    let before = this.before(&map, index);
                    this.pull(source, &before)
                });
                buffer
            })
            .collect();
        dims[lined.rank() - 1] = count as usize;
        let kept = Shape::new(&dims).expect("broken invariant: a shorter shape is a shape");
        let outputs: Vec<Buffer> = sources
            .iter()
            .map(|&source| self.allocate(self.dtype(source), kept))
            .collect();
        self.sort_lines(&buffers, keys as usize, extent, &outputs);
        let results = self.source.inst(inst).results.clone();
        for (&result, lines) in results.iter().zip(&outputs) {
            let buffer = self.tile_of_lines(lines, &permutation, self.shape(result));
            self.bindings.insert(result, Binding::Buffer(buffer));
        }
    }

    /// The tile whose axes are permuted in `lines`.
    fn tile_of_lines(&mut self, lines: &Buffer, permutation: &[u32], shape: Shape) -> Buffer {
        if permutation.is_sorted() {
            return *lines;
        }
        let mut inverse = vec![0; permutation.len()];
        for (position, &axis) in permutation.iter().enumerate() {
            inverse[axis as usize] = position as u32;
        }
        let map = IndexMap::transpose(dim_bits(&lines.shape), &inverse);
        let buffer = self.allocate(lines.dtype, shape);
        self.fill(&buffer, &mut |this, index| {
            let before = this.before(&map, index);
            this.load_buffer(lines, &before)
        });
        buffer
    }

    fn sort_lines(&mut self, buffers: &[Buffer], keys: usize, extent: usize, outputs: &[Buffer]) {
        let elements = buffers[0].shape.elements();
        let widest = buffers.iter().map(|buffer| buffer.dtype.bytes() as usize);
        let vector_bytes = self.target.vector_bytes as usize;
        let lanes = (vector_bytes / widest.max().unwrap_or(1)).min(elements);
        let kept = outputs[0].shape.extent(outputs[0].shape.rank() - 1);
        let across = lanes.min(extent).trailing_zeros();
        let step = extent.max(lanes) as i64;
        self.each(elements as i64, step, &mut |this, start| {
            let mut line = Line {
                buffers: buffers.to_vec(),
                keys,
                lanes,
                start,
                vertical: extent.trailing_zeros() - across,
                across: (0..across).map(|bit| 1 << bit).collect(),
            };
            this.network(&mut line, extent.trailing_zeros(), kept.trailing_zeros());
            let shift = (extent / kept).trailing_zeros();
            let to = this.bits(start, shift, 62 - shift);
            this.write_line(&line, (extent, kept), to, outputs);
        });
    }

    /// Runs `body` with the multiples of `step` below `extent`.
    fn each(&mut self, extent: i64, step: i64, body: &mut dyn FnMut(&mut Self, Scalar)) {
        if extent <= step {
            return body(self, Scalar::Known(0));
        }
        let bounds = (Scalar::Known(0), Scalar::Known(extent));
        self.count(bounds, step, &[], &mut |this, position, _| {
            body(this, Scalar::Emitted(position));
            Vec::new()
        });
    }

    /// Sorts a line of `2^bits` elements, or finds its first `2^kept`.
    fn network(&mut self, line: &mut Line, bits: u32, kept: u32) {
        let together = PASS_BITS.min(line.vertical).min(kept);
        if together > 0 {
            self.start_passes(line, together);
        }
        for top in together..kept {
            self.merge(line, top, true);
        }
        for _ in kept..bits {
            self.halve(line, kept);
            if kept > 0 {
                self.merge(line, kept - 1, false);
            }
        }
    }

    /// Sorts runs of `2^bits` vectors, lane by lane.
    fn start_passes(&mut self, line: &Line, bits: u32) {
        let unit = line.lanes as i64;
        self.each(line.span(), unit << bits, &mut |this, start| {
            let places: Vec<i64> = (0..1 << bits).map(|vector| vector * unit).collect();
            let mut group: Vec<Vec<Value>> = Vec::new();
            for &place in &places {
                group.push(this.read(line, start, place));
            }
            for top in 0..bits {
                this.compare(line, &mut group, top, true);
                for bit in (0..top).rev() {
                    this.compare(line, &mut group, bit, false);
                }
            }
            for (place, element) in places.into_iter().zip(&group) {
                this.write(line, start, place, element);
            }
        });
    }

    /// Compares vectors of a group whose numbers differ in one bit, or, mirrored, also in all below.
    fn compare(&mut self, line: &Line, group: &mut [Vec<Value>], bit: u32, mirrored: bool) {
        let below = if mirrored { (1 << bit) - 1 } else { 0 };
        for lower in (0..group.len()).filter(|vector| vector >> bit & 1 == 0) {
            let upper = lower ^ (1 << bit) ^ below;
            let (first, second) =
                ordered(&mut self.builder, line.keys, &group[lower], &group[upper]);
            (group[lower], group[upper]) = (first, second);
        }
    }

    /// Sorts blocks of `2^(top + 1)` elements, each of two sorted halves, or, not mirrored, bitonic.
    fn merge(&mut self, line: &Line, top: u32, mirrored: bool) {
        for bit in (line.vertical..=top).rev() {
            self.across_lanes(line, bit, mirrored && bit == top);
        }
        let mut rest = line.vertical.min(top + 1);
        let mut mirrored = mirrored && top < line.vertical;
        while rest > 0 {
            let taken = PASS_BITS.min(rest);
            self.merge_pass(line, (rest - taken, rest), mirrored);
            mirrored = false;
            rest -= taken;
        }
    }

    /// Compares along the bits `low..high` of the vector number, the highest first.
    fn merge_pass(&mut self, line: &Line, (low, high): (u32, u32), mirrored: bool) {
        let unit = line.lanes as i64;
        let half = 1_i64 << (high - low - 1);
        self.each(line.span(), unit << high, &mut |this, block| {
            this.each(unit << low, unit, &mut |this, inner| {
                let lower = this.add(block, inner);
                let upper = match mirrored {
                    true => {
                        let last = this.add(block, Scalar::Known((unit << low) - unit));
                        this.sub(last, inner)
                    }
                    false => lower,
                };
                let place = |vector: i64| match vector < half {
                    true => (lower, (vector * unit) << low),
                    false => (upper, (vector * unit) << low),
                };
                let mut group = Vec::new();
                for vector in 0..2 * half {
                    let (start, place) = place(vector);
                    group.push(this.read(line, start, place));
                }
                for bit in (0..high - low).rev() {
                    this.compare(line, &mut group, bit, mirrored && bit + 1 == high - low);
                }
                for (vector, element) in (0..).zip(&group) {
                    let (start, place) = place(vector);
                    this.write(line, start, place, element);
                }
            });
        });
    }

    /// Compares along an index bit that is a bit of the lane.
    fn across_lanes(&mut self, line: &Line, bit: u32, mirrored: bool) {
        let upper = line.across[(bit - line.vertical) as usize];
        let mask = if mirrored { line.below(bit) } else { upper };
        self.pairs(line, mirrored, &mut |this, own, other| {
            let turned = this.permuted(line, other, mask);
            let (lesser, greater) = ordered(&mut this.builder, line.keys, own, &turned);
            let first = this.blended(line, &lesser, &greater, upper);
            let second = this.blended(line, &greater, &lesser, upper);
            [first, this.permuted(line, &second, mask)]
        });
    }

    /// Replaces each vector and its mirror image among the vectors of the line, or, not mirrored,
    /// each vector alone, which is then both.
    fn pairs(
        &mut self,
        line: &Line,
        mirrored: bool,
        replace: &mut dyn FnMut(&mut Self, &[Value], &[Value]) -> [Vec<Value>; 2],
    ) {
        let unit = line.lanes as i64;
        let apart = mirrored && line.vertical > 0;
        let end = if apart { line.span() / 2 } else { line.span() };
        self.each(end, unit, &mut |this, place| {
            let own = this.read(line, place, 0);
            if !apart {
                let [first, _] = replace(this, &own, &own);
                return this.write(line, place, 0, &first);
            }
            let image = this.sub(Scalar::Known(line.span() - unit), place);
            let other = this.read(line, image, 0);
            let [first, second] = replace(this, &own, &other);
            this.write(line, place, 0, &first);
            this.write(line, image, 0, &second);
        });
    }

    /// Keeps the lesser half of two neighbouring runs of `2^kept` elements.
    fn halve(&mut self, line: &mut Line, kept: u32) {
        if kept >= line.vertical {
            let mask = line.below(kept);
            self.pairs(line, true, &mut |this, own, other| {
                let turned = this.permuted(line, other, mask);
                let first = lesser(&mut this.builder, line.keys, own, &turned);
                let second = this.permuted(line, &first, mask);
                [first, second]
            });
            line.across.remove((kept - line.vertical) as usize);
            return;
        }
        let unit = line.lanes as i64;
        let run = unit << kept;
        self.each(line.span() / 2, run, &mut |this, to| {
            let from = this.mul(to, Scalar::Known(2));
            this.each(run, unit, &mut |this, inner| {
                let lower = this.add(from, inner);
                let own = this.read(line, lower, 0);
                let last = this.add(from, Scalar::Known(2 * run - unit));
                let image = this.sub(last, inner);
                let other = this.read(line, image, 0);
                let first = lesser(&mut this.builder, line.keys, &own, &other);
                let place = this.add(to, inner);
                this.write(line, place, 0, &first);
            });
        });
        line.vertical -= 1;
    }

    /// Puts the line in order of its index.
    fn write_line(
        &mut self,
        line: &Line,
        (extent, kept): (usize, usize),
        to: Scalar,
        outputs: &[Buffer],
    ) {
        let unit = line.lanes;
        let vectors = 1_usize << line.vertical;
        let block = unit.min(vectors);
        // Elements of a line, or of a lane, that are written together.
        let (piece, used) = match vectors {
            1 if kept == extent => (unit, unit),
            1 => (kept, unit),
            _ => (unit.min(kept), block << line.across.len()),
        };
        self.each(
            (vectors * unit) as i64,
            (block * unit) as i64,
            &mut |this, place| {
                let group: Vec<Vec<Value>> = (0..block)
                    .map(|vector| this.read(line, place, (vector * unit) as i64))
                    .collect();
                let column = this.bits(place, unit.trailing_zeros(), 62 - unit.trailing_zeros());
                for (source, output) in outputs.iter().enumerate() {
                    let vectors_of = group.iter().map(|element| element[source]).collect();
                    let turned = this.turned(vectors_of, unit);
                    for first in (0..used).step_by(piece) {
                        let from = match vectors {
                            1 if kept < extent => first / piece * extent,
                            _ => first,
                        };
                        if from >= block * unit {
                            break;
                        }
                        let value = this.slice(turned[from / unit], from % unit, piece);
                        let row = if block < vectors {
                            from / block * vectors
                        } else {
                            first
                        };
                        let offset = this.add(to, column);
                        let offset = this.add(offset, Scalar::Known(row as i64));
                        this.put(output, offset, value, piece);
                    }
                }
            },
        );
    }

    /// Vectors whose lanes have become the high bits of the position: perfect shuffles.
    fn turned(&mut self, mut vectors: Vec<Value>, lanes: usize) -> Vec<Value> {
        let half = vectors.len() / 2;
        for _ in 0..vectors.len().trailing_zeros() {
            let mut next = Vec::new();
            for index in 0..half {
                for first in [0, lanes / 2] {
                    let zipped = (first..first + lanes / 2).flat_map(|lane| [lane, lanes + lane]);
                    next.push(self.builder.value(Op::ShuffleVector(op::ShuffleVector {
                        a: vectors[index],
                        b: vectors[index + half],
                        indices: zipped.map(|lane| lane as u32).collect(),
                    })));
                }
            }
            vectors = next;
        }
        vectors
    }

    /// Lanes of `first` where the bit is zero, of `second` where it is one.
    fn blended(
        &mut self,
        line: &Line,
        first: &[Value],
        second: &[Value],
        bit: usize,
    ) -> Vec<Value> {
        let lanes = line.lanes;
        let index = |lane: usize| if lane & bit == 0 { lane } else { lanes + lane };
        let indices: Vec<u32> = (0..lanes).map(|lane| index(lane) as u32).collect();
        self.shuffled(first, second, &indices)
    }

    /// Lanes exchanged with those whose numbers differ in `mask`.
    fn permuted(&mut self, line: &Line, element: &[Value], mask: usize) -> Vec<Value> {
        let indices: Vec<u32> = (0..line.lanes).map(|lane| (lane ^ mask) as u32).collect();
        self.shuffled(element, element, &indices)
    }

    fn shuffled(&mut self, first: &[Value], second: &[Value], indices: &[u32]) -> Vec<Value> {
        let pairs = first.iter().zip(second);
        let shuffled = pairs.map(|(&a, &b)| {
            let indices = indices.to_vec();
            self.builder
                .value(Op::ShuffleVector(op::ShuffleVector { a, b, indices }))
        });
        shuffled.collect()
    }

    fn read(&mut self, line: &Line, start: Scalar, place: i64) -> Vec<Value> {
        let offset = self.place(line, start, place);
        let loaded = line.buffers.iter().map(|buffer| {
            let op = Op::LaneLoad(op::LaneLoad {
                base: buffer.pointer,
                offset,
                mask: None,
                other: None,
                align: line.lanes as i64 * i64::from(buffer.dtype.bytes()),
            });
            let ty = Type::vector(buffer.dtype, line.lanes);
            self.builder.declared(op, ty)
        });
        loaded.collect()
    }

    fn write(&mut self, line: &Line, start: Scalar, place: i64, element: &[Value]) {
        let at = self.add(line.start, start);
        let offset = self.add(at, Scalar::Known(place));
        for (buffer, &value) in line.buffers.iter().zip(element) {
            self.put(buffer, offset, value, line.lanes);
        }
    }

    fn place(&mut self, line: &Line, start: Scalar, place: i64) -> Value {
        let at = self.add(line.start, start);
        let offset = self.add(at, Scalar::Known(place));
        self.value(offset)
    }

    fn put(&mut self, buffer: &Buffer, offset: Scalar, value: Value, lanes: usize) {
        let offset = self.value(offset);
        let op = Op::LaneStore(op::LaneStore {
            base: buffer.pointer,
            offset,
            value,
            mask: None,
            align: lanes as i64 * i64::from(buffer.dtype.bytes()),
        });
        self.builder.emit(op, &[]);
    }
}
