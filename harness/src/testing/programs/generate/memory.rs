//! Loads and stores that stay in bounds, and stores that no other program touches.

use exactile_core::ir::{
    Access, AtomicOp, Cache, DType, Literal, Op, Parameter, Scope, Shape, Space, Type, Value, op,
};

use super::super::arguments::Contents;
use super::super::target::Structure;
use super::super::values::Fill;
use super::Generator;

/// Memory that the program only reads.
#[derive(Clone, Copy)]
pub(super) struct Input {
    pub(super) value: Value,
    dtype: DType,
    length: usize,
}

/// Memory that the program writes. Each use takes a new range behind those before.
#[derive(Clone, Copy)]
pub(super) struct Output {
    pub(super) value: Value,
    argument: usize,
    pub(super) dtype: DType,
    pub(super) length: usize,
    /// Its contents before the launch.
    pub(super) fill: Fill,
}

/// A range of memory that belongs to one program.
pub(super) struct Segment {
    pub(super) base: Value,
    /// The scalar element offset at which this program's range starts.
    pub(super) start: Value,
}

impl Generator {
    fn pointer_parameter(&mut self, prefix: &str, dtype: DType, access: Access) -> Value {
        let name = format!("{prefix}{}", self.arguments.len());
        let mut parameter = Parameter::new(&name, access);
        parameter.divisor = self.random.pick(&[1, 16, 64]);
        self.builder
            .parameter(parameter, Type::pointer(dtype, Space::Global))
    }

    /// Memory of at least `length` elements to read.
    pub(super) fn input(&mut self, dtype: DType, length: usize) -> Input {
        let mut known = self.inputs.iter().copied();
        let known = known.rfind(|input| input.dtype == dtype && input.length >= length);
        if let Some(input) = known
            && self.random.one_in(2)
        {
            return input;
        }
        let slack = self.random.pick(&[0, 0, 0, 5]);
        let fill = Fill::random(&mut self.random);
        let input = self.new_input(dtype, length + slack, fill);
        self.inputs.push(input);
        input
    }

    pub(super) fn new_input(&mut self, dtype: DType, length: usize, fill: Fill) -> Input {
        let value = self.pointer_parameter("x", dtype, Access::Read);
        let contents = Contents::random(&mut self.random, dtype, Access::Read, length, fill);
        self.arguments.push(contents);
        Input {
            value,
            dtype,
            length,
        }
    }

    /// A load of a whole tile from memory of its own, which holds numbers of this kind.
    pub(super) fn filled_load(&mut self, dtype: DType, shape: Shape, fill: Fill) -> Value {
        let input = self.new_input(dtype, shape.elements(), fill);
        let offsets = self.index_tile(shape);
        self.loaded(input.value, offsets, None, None)
    }

    /// Offsets that are affine in the coordinates and the program, and how many elements they
    /// span from 0.
    fn affine(&mut self, shape: Shape) -> (Value, usize) {
        let mut strides: Vec<i64> = shape.strides().iter().map(|&it| it as i64).collect();
        match self.random.below(5) {
            0 => self.random.shuffle(&mut strides),
            1 => strides.iter_mut().for_each(|stride| *stride *= 2),
            2 if !strides.is_empty() => {
                let axis = self.random.below(strides.len());
                strides[axis] = self.random.between(-3, 3);
            }
            _ => {}
        }
        let mut low = 0;
        let mut high = 0;
        for (axis, &stride) in strides.iter().enumerate() {
            let reach = stride * (shape.extent(axis) as i64 - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        let step = self.random.pick(&[0, shape.elements() as i64, high + 1, 3]);
        let first = self.random.pick(&[0, 0, 0, 1, 16]) - low;
        let step_value = self.builder.index(step);
        let scaled = self.builder.mul(self.program, step_value);
        let first_value = self.builder.index(first);
        let start = self.builder.add(scaled, first_value);
        let offsets = self.strided_tile(shape, &strides, start);
        let last = first + high + step * (self.programs() as i64 - 1);
        (offsets, last as usize + 1)
    }

    /// Offsets below a power of two that jump about, and that power.
    pub(super) fn scattered(&mut self, shape: Shape, depth: u32) -> (Value, usize) {
        let length = 1 << self.random.between(0, 8);
        if self.random.one_in(2) {
            let dtype = self.random.pick(&[DType::I64, DType::I32, DType::U8]);
            let below = (length as u64).min(1 << (dtype.bits() - 1));
            let (at, needed) = self.affine(shape);
            let indices = self.new_input(dtype, needed, Fill::Below(below));
            let loaded = self.loaded(indices.value, at, None, None);
            return (self.builder.cast(loaded, DType::I64), length);
        }
        let index = if self.random.one_in(2) {
            self.make(DType::I64, shape, depth)
        } else {
            self.index_tile(shape)
        };
        let factor = self.random.between(0, 9) * 2 + 1;
        let factor = self.integers(factor, shape);
        let product = self.builder.mul(index, factor);
        let limit = self.integers(length as i64 - 1, shape);
        (self.builder.and(product, limit), length)
    }

    /// A load of this kind.
    pub(super) fn load(
        &mut self,
        dtype: DType,
        shape: Shape,
        kind: Structure,
        depth: u32,
    ) -> Value {
        let masked = kind != Structure::Load;
        let deeper = depth.saturating_sub(1);
        let (offsets, input, mut mask) = match self.random.below(if masked { 7 } else { 5 }) {
            0..=3 => {
                let (offsets, length) = self.affine(shape);
                (offsets, self.input(dtype, length), None)
            }
            4 => {
                let (offsets, length) = self.scattered(shape, deeper);
                (offsets, self.input(dtype, length), None)
            }
            5 => {
                let (offsets, length) = self.affine(shape);
                let short = 1 + self.random.below(length);
                let input = self.input(dtype, short);
                (offsets, input, Some(self.below_length(offsets, input)))
            }
            _ => {
                let offsets = self.make(DType::I64, shape, deeper);
                let input = self.input(dtype, 8);
                let zero = self.integers(0, shape);
                let not_negative = self.builder.ge(offsets, zero);
                let below = self.below_length(offsets, input);
                (offsets, input, Some(self.builder.and(not_negative, below)))
            }
        };
        if masked && (mask.is_none() || self.random.one_in(4)) {
            let more = self.mask(shape, deeper);
            mask = Some(match mask {
                Some(mask) => self.builder.and(mask, more),
                None => more,
            });
        }
        let other = (kind == Structure::LoadOther).then(|| self.make(dtype, shape, deeper));
        self.loaded(input.value, offsets, mask, other)
    }

    /// A load with a hint for caches or none.
    pub(super) fn loaded(
        &mut self,
        base: Value,
        offsets: Value,
        mask: Option<Value>,
        other: Option<Value>,
    ) -> Value {
        let cache = self.cache(Cache::of_loads);
        self.builder.value(Op::Load(op::Load {
            base,
            offsets,
            mask,
            other,
            cache,
        }))
    }

    /// A store with a hint for caches or none.
    fn stored(&mut self, base: Value, offsets: Value, value: Value, mask: Option<Value>) {
        let cache = self.cache(Cache::of_stores);
        let store = op::Store {
            base,
            offsets,
            value,
            mask,
            cache,
        };
        self.builder.emit(Op::Store(store), &[]);
    }

    /// A hint for caches that such an access may have, sometimes.
    pub(super) fn cache(&mut self, admits: fn(Cache) -> bool) -> Option<Cache> {
        if !self.random.one_in(4) {
            return None;
        }
        let all = Cache::ALL.iter().copied();
        let hints: Vec<Cache> = all.filter(|&cache| admits(cache)).collect();
        Some(self.random.pick(&hints))
    }

    /// A load of another row in each iteration of a loop: what pipelines start ahead.
    pub(super) fn row(
        &mut self,
        dtype: DType,
        shape: Shape,
        index: Value,
        (first, last): (i64, i64),
    ) -> Value {
        let strides: Vec<i64> = shape.strides().iter().map(|&it| it as i64).collect();
        let elements = shape.elements() as i64;
        let distance = self.random.pick(&[elements, elements, 1, elements + 16]);
        let length = ((last - first) * distance + elements) as usize;
        let lowest = self.builder.index(first);
        let steps = self.builder.sub(index, lowest);
        let factor = self.builder.index(distance);
        let start = self.builder.mul(steps, factor);
        let offsets = self.strided_tile(shape, &strides, start);
        let masked = self.random.one_in(3);
        let short = if masked {
            1 + self.random.below(length)
        } else {
            length
        };
        let input = self.input(dtype, short);
        let mask = masked.then(|| self.below_length(offsets, input));
        let other = (masked && self.random.one_in(2)).then(|| self.make(dtype, shape, 0));
        self.loaded(input.value, offsets, mask, other)
    }

    /// `offsets < length of input`, the length being a parameter or a constant.
    fn below_length(&mut self, offsets: Value, input: Input) -> Value {
        let shape = self.builder.ty(offsets).shape;
        let length = input.length as i64;
        let limit = if self.random.one_in(4) {
            self.integers(length, shape)
        } else {
            let scalar = self.scalar_parameter(Literal::from_bits(DType::I64, length as u64));
            self.builder.splat(scalar, shape)
        };
        self.builder.lt(offsets, limit)
    }

    /// Memory of so many elements of its own to write.
    pub(super) fn written(&mut self, dtype: DType, length: usize) -> Value {
        let index = self.new_output(dtype);
        self.outputs[index].length += length;
        self.outputs[index].value
    }

    /// `width` elements of a writable argument that only this program touches.
    pub(super) fn segment(&mut self, dtype: DType, width: usize) -> Segment {
        let known = self
            .outputs
            .iter()
            .rposition(|output| output.dtype == dtype);
        let index = match known {
            Some(index) if self.random.one_in(2) => index,
            Some(_) | None => self.new_output(dtype),
        };
        let output = self.outputs[index];
        self.outputs[index].length += width * self.programs();
        let width = self.builder.index(width as i64);
        let scaled = self.builder.mul(self.program, width);
        let first = self.builder.index(output.length as i64);
        Segment {
            base: output.value,
            start: self.builder.add(scaled, first),
        }
    }

    pub(super) fn new_output(&mut self, dtype: DType) -> usize {
        let value = self.pointer_parameter("y", dtype, Access::ReadWrite);
        self.outputs.push(Output {
            value,
            argument: self.arguments.len(),
            dtype,
            length: 0,
            fill: Fill::Edges,
        });
        self.arguments
            .push(Contents::Scalar(Literal::from_bits(dtype, 0)));
        self.outputs.len() - 1
    }

    /// Memory of zeros of its own to write.
    pub(super) fn cleared(&mut self, dtype: DType, length: usize) -> Value {
        let value = self.pointer_parameter("y", dtype, Access::ReadWrite);
        let (random, access) = (&mut self.random, Access::ReadWrite);
        let contents = Contents::random(random, dtype, access, length, Fill::Zeros);
        self.arguments.push(contents);
        value
    }

    /// Gives every output its contents, now that its length is known.
    pub(super) fn fill_outputs(&mut self) {
        for output in self.outputs.clone() {
            let (dtype, length) = (output.dtype, output.length);
            let random = &mut self.random;
            let contents = Contents::random(random, dtype, Access::ReadWrite, length, output.fill);
            self.arguments[output.argument] = contents;
        }
    }

    /// Each element's place in a range of [`Self::width`] elements, nearly always all different.
    fn places(&mut self, shape: Shape, start: Value) -> Value {
        let elements = shape.elements() as i64;
        let mut strides: Vec<i64> = shape.strides().iter().map(|&it| it as i64).collect();
        match self.random.below(11) {
            9 | 10 => self.scalar_places(shape, strides, start),
            // Equal places: the highest element wins.
            8 if self.random.one_in(2) => {
                let index = self.index_tile(shape);
                let amount = self.random.between(1, 3);
                let amount = self.integers(amount, shape);
                let shared = self.builder.shr(index, amount);
                let start = self.builder.splat(start, shape);
                self.builder.add(start, shared)
            }
            1 => {
                strides.iter_mut().for_each(|stride| *stride *= 2);
                self.strided_tile(shape, &strides, start)
            }
            2 => {
                strides.iter_mut().for_each(|stride| *stride = -*stride);
                let last = self.builder.index(elements - 1);
                let start = self.builder.add(start, last);
                self.strided_tile(shape, &strides, start)
            }
            _ => self.distinct_places(shape, start),
        }
    }

    /// Each element's place in a range of as many elements, all different.
    pub(super) fn distinct_places(&mut self, shape: Shape, start: Value) -> Value {
        let elements = shape.elements() as i64;
        let mut strides: Vec<i64> = shape.strides().iter().map(|&it| it as i64).collect();
        match self.random.below(7) {
            0 => {
                let mut stride = 1;
                let mut axes: Vec<usize> = (0..shape.rank()).collect();
                self.random.shuffle(&mut axes);
                for axis in axes {
                    strides[axis] = stride;
                    stride *= shape.extent(axis) as i64;
                }
                self.strided_tile(shape, &strides, start)
            }
            1 | 2 => {
                let index = self.index_tile(shape);
                let random = self.random.between(0, elements - 1);
                let mixed = if self.random.one_in(2) {
                    let bits = self.integers(random, shape);
                    self.builder.xor(index, bits)
                } else {
                    let factor = self.integers(2 * random + 1, shape);
                    let product = self.builder.mul(index, factor);
                    let limit = self.integers(elements - 1, shape);
                    self.builder.and(product, limit)
                };
                let start = self.builder.splat(start, shape);
                self.builder.add(start, mixed)
            }
            _ => self.strided_tile(shape, &strides, start),
        }
    }

    /// Rows and columns that scalars keep apart, or let meet.
    fn scalar_places(&mut self, shape: Shape, mut strides: Vec<i64>, start: Value) -> Value {
        let last = |axis: usize| shape.extent(axis) as i64 - 1;
        if !strides.is_empty() && self.random.one_in(2) {
            let axis = self.random.below(strides.len());
            let others: i64 = (0..strides.len())
                .filter(|&other| other != axis)
                .map(|other| strides[other] * last(other))
                .sum();
            let room = Self::width(shape) as i64 - 1 - others;
            strides[axis] = match (self.random.below(3), last(axis)) {
                // Beyond what code relies on; no element is that far away.
                (2, 0) => self.random.pick(&[1 << 41, i64::MIN, i64::MAX]),
                (2, last) => self.random.pick(&[1, -1]) * (room / last),
                _ => self.random.between(-2, 2),
            };
        }
        let reaches = strides.iter().enumerate();
        let low: i64 = reaches
            .map(|(axis, stride)| (stride * last(axis)).min(0))
            .sum();
        let first = self.builder.index(-low);
        let start = self.builder.add(start, first);
        self.scalar_strided_tile(shape, &strides, start)
    }

    /// The elements that [`Self::places`] needs at most.
    pub(super) fn width(shape: Shape) -> usize {
        2 * shape.elements()
    }

    /// Stores `value` where nothing else does.
    pub(super) fn store(&mut self, value: Value, masked: bool) {
        let ty = self.builder.ty(value);
        let Some(dtype) = ty.dtype() else {
            return;
        };
        let segment = self.segment(dtype, Self::width(ty.shape));
        let offsets = self.places(ty.shape, segment.start);
        let mask = masked.then(|| self.store_mask(offsets, segment.start));
        self.stored(segment.base, offsets, value, mask);
    }

    /// A random mask, or all places below some limit.
    fn store_mask(&mut self, offsets: Value, start: Value) -> Value {
        let shape = self.builder.ty(offsets).shape;
        if self.random.one_in(2) {
            return self.mask(shape, 1);
        }
        let elements = shape.elements() as i64;
        let count = self.random.between(0, elements + 1);
        let count = self.scalar_parameter(Literal::from_bits(DType::I64, count as u64));
        let end = self.builder.add(start, count);
        let end = self.builder.splat(end, shape);
        self.builder.lt(offsets, end)
    }

    /// A value that was stored in one order and loaded in another.
    pub(super) fn through_memory(&mut self, ty: Type, depth: u32) -> Value {
        let Some(dtype) = ty.dtype() else {
            return self.builder.poison();
        };
        let value = self.make(dtype, ty.shape, depth);
        let segment = self.segment(dtype, Self::width(ty.shape));
        let rounds = self.random.pick(&[1, 1, 2]);
        let mut loaded = value;
        for _ in 0..rounds {
            let to = self.places(ty.shape, segment.start);
            self.stored(segment.base, to, loaded, None);
            let op = self.random.pick(AtomicOp::ALL);
            if op.combines() && op.admits(dtype) && !op.rounds(dtype) && self.random.one_in(3) {
                let offsets = self.places(ty.shape, segment.start);
                self.combine(op, segment.base, offsets, loaded, Scope::ALL);
            }
            let from = self.places(ty.shape, segment.start);
            loaded = self.loaded(segment.base, from, None, None);
        }
        self.scope.push(loaded);
        loaded
    }
}
