//! Sorts: a bitonic network on vectors of lines in scratch memory.
//!
//! A line is the layout of a worker: its vectors are registers, so they hold the lowest bits of the index
//! and the lanes the highest, which are compared least. Nearly all comparisons are between whole
//! vectors, up to three bits of the vector number in one pass over memory. At the end lanes and vectors
//! change places.
//!
//! Of 64-bit integers no minimum is one instruction of AVX2, but of floats it is: integers that are known to be
//! no wider than about 62 bits, as a 32-bit key with its index is, are sorted as floats.

use super::index::Scalar;
use super::lowerer::{Binding, Buffer, Lowerer};
use super::pull::Pulled;
use super::sort_pass::Pass;
use crate::ir::index_map::dim_bits;
use crate::ir::{DType, IndexMap, Inst, Op, Shape, Type, Value, op};
use crate::layout::LinearLayout;
use crate::layout::sorting::{Halving, Meeting, SortStep, SortSteps};
use crate::lower::ordered::lesser;
use crate::passes::indices::Indices;
use crate::passes::ranges::Range;

/// What integers have added as bits of `f64`: those within [`AS_FLOATS`] become normal numbers above zero, whose order
/// is theirs.
const FLOAT_OFFSET: i64 = 1 << 62;
const AS_FLOATS: Range = Range::new((1 << 52) - (1 << 62), (1 << 62) - (1 << 52) - 1);

/// The line, or the few short ones in a vector, being sorted.
pub(super) struct Line {
    pub buffers: Vec<Buffer>,
    pub keys: usize,
    pub lanes: usize,
    /// Where it starts.
    start: Scalar,
    /// Bits of the vector number.
    pub vertical: u32,
    /// Whether integers are there as floats.
    as_floats: bool,
}

impl Line {
    /// Elements of the vectors that hold it.
    fn span(&self) -> i64 {
        (self.lanes as i64) << self.vertical
    }
}

/// The steps that sort lines of `extent` elements in vectors, of which as many as there are lanes are
/// in one vector, and keep the first `kept`.
pub(super) fn steps_of_lines(extent: usize, lanes: usize, kept: usize) -> Vec<SortStep> {
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
        let as_floats = self.sorts_as_floats(&sources);
        let buffers: Vec<Buffer> = sources
            .iter()
            .map(|&source| {
                let dtype = match as_floats {
                    true => DType::F64,
                    false => self.dtype(source),
                };
                let buffer = self.allocate(dtype, lined);
                self.fill(&buffer, &[source], &mut |this, index| {
                    let before = this.before(&map, index);
                    let pulled = this.pull(source, &before);
                    match as_floats {
                        true => this.floats_of(&pulled, index.lanes),
                        false => pulled,
                    }
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
        self.sort_lines(&buffers, (keys as usize, as_floats), extent, &outputs);
        let results = self.source.inst(inst).results.clone();
        for (&result, lines) in results.iter().zip(&outputs) {
            let buffer = self.tile_of_lines(lines, &permutation, self.shape(result));
            self.bindings.insert(result, Binding::Buffer(buffer));
        }
    }

    /// Whether what is sorted is one integer that is in order as the bits of an `f64`.
    fn sorts_as_floats(&self, sources: &[Value]) -> bool {
        let &[source] = sources else { return false };
        let indices = || self.indices.get_or_init(|| Indices::of(self.source));
        let range = || indices().range(source);
        self.dtype(source) == DType::I64 && range().is_some_and(|it| it.is_within(AS_FLOATS))
    }

    fn floats_of(&mut self, pulled: &Pulled, lanes: usize) -> Pulled {
        let integers = self.vector(pulled, DType::I64, lanes);
        let offset = self.float_offset(lanes);
        let bits = self.builder.add(integers, offset);
        Pulled::Vector(self.builder.bitcast(bits, DType::F64))
    }

    fn integers_of(&mut self, floats: Value) -> Value {
        let lanes = self.builder.ty(floats).shape.elements();
        let offset = self.float_offset(lanes);
        let bits = self.builder.bitcast(floats, DType::I64);
        self.builder.sub(bits, offset)
    }

    fn float_offset(&mut self, lanes: usize) -> Value {
        let offset = self.value(Scalar::Known(FLOAT_OFFSET));
        self.splats(&[offset], lanes)[0]
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

    fn sort_lines(
        &mut self,
        buffers: &[Buffer],
        (keys, as_floats): (usize, bool),
        extent: usize,
        outputs: &[Buffer],
    ) {
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
                as_floats,
            };
            this.network(&mut line, &steps);
            let shift = (extent / kept).trailing_zeros();
            let to = this.bits(start, shift, 62 - shift);
            this.write_line(&line, (extent, kept), to, outputs);
        });
    }

    /// Runs `body` with the multiples of `step` below `extent`.
    pub(super) fn each(&mut self, extent: i64, step: i64, body: &mut dyn FnMut(&mut Self, Scalar)) {
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
                SortStep::Exchange(_) => {
                    let pass = Pass::of(steps);
                    self.compare(line, &pass);
                    rest = &steps[pass.meetings.len()..];
                }
                SortStep::Halve(meeting, None) => self.halve_lanes(line, meeting),
                SortStep::Halve(_, Some(bit)) => self.halve_vectors(line, *bit),
                SortStep::Move(..) => unreachable!("broken invariant: a worker has no warps"),
            }
            steps = rest;
        }
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
                    let vectors_of = group.iter().map(|element| match line.as_floats {
                        true => this.integers_of(element[source]),
                        false => element[source],
                    });
                    let vectors_of = vectors_of.collect();
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
    pub(super) fn blended(
        &mut self,
        line: &Line,
        first: &[Value],
        second: &[Value],
        bit: u32,
    ) -> Vec<Value> {
        let lanes = line.lanes as u32;
        let index = |lane: u32| lane + (lane >> bit & 1) * lanes;
        let indices: Vec<u32> = (0..lanes).map(index).collect();
        self.lanes(first, second, &indices)
    }

    /// Lanes exchanged with those whose numbers differ in `mask`.
    pub(super) fn permuted(&mut self, line: &Line, element: &[Value], mask: u32) -> Vec<Value> {
        let indices: Vec<u32> = (0..line.lanes as u32).map(|lane| lane ^ mask).collect();
        self.lanes(element, element, &indices)
    }

    pub(super) fn read(&mut self, line: &Line, start: Scalar, place: i64) -> Vec<Value> {
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

    pub(super) fn write(&mut self, line: &Line, start: Scalar, place: i64, element: &[Value]) {
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
