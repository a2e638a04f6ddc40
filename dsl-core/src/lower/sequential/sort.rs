//! Sorts: a bitonic network on vectors of lines in scratch memory.
//!
//! A line is the layout of a worker: its vectors are registers, so they hold the lowest bits of the index
//! and the lanes the highest, which are compared least. Nearly all comparisons are between whole
//! vectors, up to three bits of the vector number in one pass over memory. At the end lanes and vectors
//! change places.

use super::index::Scalar;
use super::lowerer::{Binding, Buffer, Lowerer};
use crate::ir::index_map::dim_bits;
use crate::ir::{IndexMap, Inst, Op, Shape, Type, Value, op};
use crate::layout::sorting::{Halving, Meeting, SortStep, SortSteps};
use crate::layout::{Holder, LinearLayout};
use crate::lower::ordered::{lesser, ordered};

/// Bits of the vector number that are compared in one pass over memory.
const PASS_BITS: u32 = 3;

/// The line, or the few short ones in a vector, being sorted.
struct Line {
    buffers: Vec<Buffer>,
    keys: usize,
    lanes: usize,
    /// Where it starts.
    start: Scalar,
    /// Bits of the vector number.
    vertical: u32,
}

impl Line {
    /// Elements of the vectors that hold it.
    fn span(&self) -> i64 {
        (self.lanes as i64) << self.vertical
    }
}

/// The steps that sort lines of `extent` elements in vectors, of which as many as there are lanes are
/// in one vector, and keep the first `kept`.
fn steps_of_lines(extent: usize, lanes: usize, kept: usize) -> Vec<SortStep> {
    let (axis, lane) = (extent.ilog2(), lanes.ilog2());
    let lines = lane.saturating_sub(axis);
    let column = |bit: u32| 1 << bit;
    let layout = LinearLayout::new(
        vec![lines, axis],
        (lane..lines + axis).map(column).collect(),
        (0..lane).map(column).collect(),
        Vec::new(),
    );
    let layout = layout.expect("broken invariant: each bit of a line has one holder");
    let plan = SortSteps::plan(&layout, 1, kept.ilog2(), Halving::Doubled);
    let plan = plan.expect("broken invariant: lines have an axis");
    plan.expect("broken invariant: no bits are mixed").steps
}

/// The next steps that one pass over memory does: the bits of the vector number in which vectors that
/// meet differ. The first step may mirror bits below those that the pass is about.
fn pass(steps: &[SortStep]) -> Vec<u32> {
    let mut meetings = steps.iter().map(|step| match step {
        SortStep::Exchange(meeting) if meeting.lanes == 0 => meeting.registers,
        SortStep::Exchange(_) | SortStep::Halve(..) | SortStep::Move(..) => 0,
    });
    let first: Vec<u32> = meetings.by_ref().take(1).collect();
    let low = lowest(&first);
    let fits = |bits: &u32| {
        bits >> low != 0 && bits >> low << low == *bits && bits >> low >> PASS_BITS == 0
    };
    first.into_iter().chain(meetings.take_while(fits)).collect()
}

/// The lowest bit of the vector number that a pass is about.
fn lowest(meetings: &[u32]) -> u32 {
    (meetings[0].ilog2() + 1).saturating_sub(PASS_BITS)
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
                self.fill(&buffer, &[source], &mut |this, index| {
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
        self.fill(&buffer, &[], &mut |this, index| {
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
        let steps = steps_of_lines(extent, lanes, kept);
        let step = extent.max(lanes) as i64;
        self.each(elements as i64, step, &mut |this, start| {
            let mut line = Line {
                buffers: buffers.to_vec(),
                keys,
                lanes,
                start,
                vertical: (extent / lanes).max(1).ilog2(),
            };
            this.network(&mut line, &steps);
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

    fn network(&mut self, line: &mut Line, mut steps: &[SortStep]) {
        while let Some((step, mut rest)) = steps.split_first() {
            match step {
                SortStep::Exchange(meeting) if meeting.lanes == 0 => {
                    let meetings = pass(steps);
                    self.compare_vectors(line, &meetings);
                    rest = &steps[meetings.len()..];
                }
                SortStep::Exchange(meeting) => self.compare_lanes(line, meeting),
                SortStep::Halve(meeting, None) => self.halve_lanes(line, meeting),
                SortStep::Halve(_, Some(bit)) => self.halve_vectors(line, *bit),
                SortStep::Move(..) => unreachable!("broken invariant: a worker has no warps"),
            }
            steps = rest;
        }
    }

    /// Compares vectors in groups that one pass has in registers. Where the first step mirrors bits below
    /// those that differ in a group, the upper half of the group is in the mirror image.
    fn compare_vectors(&mut self, line: &Line, meetings: &[u32]) {
        let low = lowest(meetings);
        let high = meetings.iter().fold(0, |bits, other| bits | other).ilog2() + 1;
        let mirrored = meetings[0] >> low << low != meetings[0];
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
                let start = |vector: i64| if vector < half { lower } else { upper };
                let place = |vector: i64| (vector * unit) << low;
                let mut group: Vec<Vec<Value>> = (0..2 * half)
                    .map(|vector| this.read(line, start(vector), place(vector)))
                    .collect();
                for differ in meetings.iter().map(|registers| registers >> low) {
                    for lower in 0..group.len() {
                        let upper = lower ^ differ as usize;
                        if lower >> differ.ilog2() & 1 == 0 {
                            let (a, b) = (&group[lower], &group[upper]);
                            let (first, second) = ordered(&mut this.builder, line.keys, a, b);
                            (group[lower], group[upper]) = (first, second);
                        }
                    }
                }
                for (vector, element) in (0..).zip(&group) {
                    this.write(line, start(vector), place(vector), element);
                }
            });
        });
    }

    /// Compares vectors, or each with its mirror image, along a bit of the lane.
    fn compare_lanes(&mut self, line: &Line, meeting: &Meeting) {
        let Holder::Lane(bit) = meeting.holder else {
            unreachable!("broken invariant: elements of different lanes are ordered by a lane")
        };
        self.pairs(line, meeting, &mut |this, own, other| {
            let turned = this.permuted(line, other, meeting.lanes);
            let (lesser, greater) = ordered(&mut this.builder, line.keys, own, &turned);
            let first = this.blended(line, &lesser, &greater, bit);
            let second = this.blended(line, &greater, &lesser, bit);
            [first, this.permuted(line, &second, meeting.lanes)]
        });
    }

    /// Replaces each vector and its mirror image among the vectors of the line, or, if only lanes meet,
    /// each vector alone, which is then both.
    fn pairs(
        &mut self,
        line: &Line,
        meeting: &Meeting,
        replace: &mut dyn FnMut(&mut Self, &[Value], &[Value]) -> [Vec<Value>; 2],
    ) {
        let unit = line.lanes as i64;
        let apart = meeting.registers != 0;
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

    /// Keeps the lesser elements of lanes that meet, in both of them.
    fn halve_lanes(&mut self, line: &Line, meeting: &Meeting) {
        self.pairs(line, meeting, &mut |this, own, other| {
            let turned = this.permuted(line, other, meeting.lanes);
            let first = lesser(&mut this.builder, line.keys, own, &turned);
            let second = this.permuted(line, &first, meeting.lanes);
            [first, second]
        });
    }

    /// Keeps the lesser of two neighbouring runs of `2^kept` vectors, one of them mirrored.
    fn halve_vectors(&mut self, line: &mut Line, kept: u32) {
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
            _ => (unit.min(kept), block * kept / vectors),
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
    fn blended(&mut self, line: &Line, first: &[Value], second: &[Value], bit: u32) -> Vec<Value> {
        let lanes = line.lanes as u32;
        let index = |lane: u32| lane + (lane >> bit & 1) * lanes;
        let indices: Vec<u32> = (0..lanes).map(index).collect();
        self.lanes(first, second, &indices)
    }

    /// Lanes exchanged with those whose numbers differ in `mask`.
    fn permuted(&mut self, line: &Line, element: &[Value], mask: u32) -> Vec<Value> {
        let indices: Vec<u32> = (0..line.lanes as u32).map(|lane| lane ^ mask).collect();
        self.lanes(element, element, &indices)
    }

    fn read(&mut self, line: &Line, start: Scalar, place: i64) -> Vec<Value> {
        let at = self.add(line.start, start);
        let offset = self.add(at, Scalar::Known(place));
        let offset = self.value(offset);
        let loaded = line.buffers.iter().map(|buffer| {
            let op = Op::LaneLoad(op::LaneLoad {
                base: buffer.pointer,
                offset,
                mask: None,
                other: None,
                align: line.lanes as i64 * i64::from(buffer.dtype.bytes()),
                cache: None,
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

    fn put(&mut self, buffer: &Buffer, offset: Scalar, value: Value, lanes: usize) {
        let offset = self.value(offset);
        let op = Op::LaneStore(op::LaneStore {
            base: buffer.pointer,
            offset,
            value,
            mask: None,
            align: lanes as i64 * i64::from(buffer.dtype.bytes()),
            cache: None,
        });
        self.builder.emit(op, &[]);
    }
}
