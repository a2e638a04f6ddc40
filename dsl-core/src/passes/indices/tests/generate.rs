//! Random functions of indices, masks and scalars, with loops and branches.

use crate::builder::Builder;
use crate::ir::{
    Axis, BinaryOp, CompareOp, DType, Func, Inst, Literal, Op, Region, Shape, Stage, Type, Value,
    op,
};
use crate::random::Random;

const TYPES: [DType; 6] = [
    DType::I64,
    DType::U64,
    DType::I32,
    DType::U32,
    DType::I8,
    DType::U8,
];

/// Makes functions of tiles of one shape at a time, and of scalars.
struct Generator {
    random: Random,
    builder: Builder,
    pool: Vec<Value>,
}

impl Generator {
    fn some(&mut self, fits: impl Fn(Type) -> bool) -> Option<Value> {
        let mut found = self.pool.clone();
        found.retain(|&value| fits(self.builder.ty(value)));
        (!found.is_empty()).then(|| self.random.pick(&found))
    }

    fn number(&mut self, dtype: DType) -> Literal {
        let few = self.random.between(-3, 9);
        let bits = self.random.pick(&[4, dtype.bits() as usize]);
        let power = 1_i64 << self.random.below(bits);
        let number = match self.random.below(6) {
            0 => power,
            1 => power.wrapping_sub(1),
            2 => power.wrapping_neg(),
            3 => self.random.bits() as i64,
            _ => few,
        };
        Literal::from_bits(dtype, number as u64 & dtype.mask())
    }

    /// A tile, or a constant like it.
    fn operand(&mut self, ty: Type) -> Value {
        let dtype = ty.dtype().expect("is a number");
        let found = self.some(|other| other == ty);
        match found {
            Some(found) if !self.random.one_in(3) => found,
            Some(_) | None => {
                let scalar = self.some(|other| other == Type::scalar(dtype));
                match scalar.filter(|_| self.random.one_in(2)) {
                    Some(scalar) if !ty.is_scalar() => self.builder.splat(scalar, ty.shape),
                    Some(_) | None => {
                        let literal = self.number(dtype);
                        self.builder.filled(literal, ty.shape)
                    }
                }
            }
        }
    }

    fn step(&mut self, depth: usize) {
        let Some(x) = self.some(|ty| ty.dtype().is_some()) else {
            return;
        };
        let ty = self.builder.ty(x);
        let dtype = ty.dtype().expect("is a number");
        let made = match self.random.below(12) {
            0 => self.view(x),
            1 => {
                let condition = self.operand(ty.with_dtype(DType::Bool));
                let other = self.operand(ty);
                self.builder.select(condition, x, other)
            }
            2 if dtype != DType::Bool => {
                let to = self.random.pick(&TYPES);
                self.builder.cast(x, to)
            }
            3 | 4 if dtype != DType::Bool => {
                let other = self.operand(ty);
                let op = self.random.pick(&[
                    CompareOp::Lt,
                    CompareOp::Le,
                    CompareOp::Gt,
                    CompareOp::Ge,
                    CompareOp::Eq,
                    CompareOp::Ne,
                ]);
                let [a, b] = self.either(x, other);
                self.builder.compare(op, a, b)
            }
            5 if depth > 0 => return self.nest(depth - 1),
            _ => {
                let other = self.operand(ty);
                let [a, b] = self.either(x, other);
                let op = if dtype == DType::Bool {
                    self.random.pick(&[BinaryOp::And, BinaryOp::Or])
                } else {
                    self.random.pick(&[
                        BinaryOp::Add,
                        BinaryOp::Add,
                        BinaryOp::Sub,
                        BinaryOp::Mul,
                        BinaryOp::Mul,
                        BinaryOp::Div,
                        BinaryOp::Rem,
                        BinaryOp::Minimum,
                        BinaryOp::Maximum,
                        BinaryOp::And,
                        BinaryOp::Or,
                        BinaryOp::Xor,
                        BinaryOp::Shl,
                        BinaryOp::Shr,
                    ])
                };
                self.builder.binary(op, a, b)
            }
        };
        self.pool.push(made);
    }

    fn either(&mut self, a: Value, b: Value) -> [Value; 2] {
        if self.random.one_in(3) {
            [b, a]
        } else {
            [a, b]
        }
    }

    fn view(&mut self, x: Value) -> Value {
        let shape = self.builder.ty(x).shape;
        let rank = shape.rank();
        if rank == 0 {
            return self.builder.splat(x, Shape::new(&[8]).expect("is a shape"));
        }
        let axis = self.random.below(rank);
        let op = match self.random.below(5) {
            0 if rank < 3 => Op::ExpandDims(op::ExpandDims {
                x,
                axis: Axis(axis as u8),
            }),
            1 => Op::Flip(op::Flip {
                x,
                axis: Axis(axis as u8),
            }),
            2 => {
                let mut permutation: Vec<u32> = (0..rank as u32).collect();
                self.random.shuffle(&mut permutation);
                Op::Transpose(op::Transpose { x, permutation })
            }
            3 => {
                let extents: &[&[usize]] = &[&[32], &[4, 8], &[16, 2], &[2, 4, 4]];
                let shape = Shape::new(self.random.pick(extents)).expect("is a shape");
                if shape.elements() != self.builder.ty(x).shape.elements() {
                    return x;
                }
                let ty = self.builder.ty(x).with_shape(shape);
                return self.builder.declared(Op::Reshape(op::Reshape { x }), ty);
            }
            _ => {
                let grown: Vec<usize> = (0..rank)
                    .map(|axis| match shape.extent(axis) {
                        1 => 4,
                        extent => extent,
                    })
                    .collect();
                let ty = self.builder.ty(x);
                let ty = ty.with_shape(Shape::new(&grown).expect("is a shape"));
                return self
                    .builder
                    .declared(Op::Broadcast(op::Broadcast { x }), ty);
            }
        };
        self.builder.value(op)
    }

    /// Steps in a region of their own, of which a value like each of `types` comes out.
    fn inside(&mut self, region: Region, types: &[Type], depth: usize, first: &[Value]) {
        let pool = self.pool.clone();
        let outer = self.builder.enter(region);
        self.pool.extend(self.builder.parameters(region));
        for _ in 0..3 {
            self.step(depth);
        }
        let mut values = first.to_vec();
        for &ty in types {
            values.push(self.operand(ty));
        }
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.builder.enter(outer);
        self.pool = pool;
    }

    fn nest(&mut self, depth: usize) {
        let count = 1 + self.random.below(2);
        let init: Vec<Value> = (0..count)
            .filter_map(|_| self.some(|ty| ty.dtype().is_some()))
            .collect();
        let types: Vec<Type> = init.iter().map(|&value| self.builder.ty(value)).collect();
        let inst = match self.random.below(3) {
            0 => {
                let condition = self.operand(Type::scalar(DType::Bool));
                let [on_true, on_false] = [0; 2].map(|_| self.builder.new_region(&[]));
                for region in [on_true, on_false] {
                    self.inside(region, &types, depth, &[]);
                }
                let op = Op::If(op::If {
                    condition,
                    on_true,
                    on_false,
                });
                self.builder.emit(op, &types)
            }
            1 => {
                let lower = self.random.between(-2, 2);
                let step = self.random.between(1, 3);
                let [lower, upper] = [lower, lower + 5].map(|it| self.builder.index(it));
                let carried = [&[Type::INDEX], &types[..]].concat();
                let body = self.builder.new_region(&carried);
                self.inside(body, &types, depth, &[]);
                let op = Op::For(op::For {
                    lower,
                    upper,
                    init,
                    step,
                    stages: 1,
                    body,
                });
                self.builder.emit(op, &types)
            }
            _ => self.repeat(&init, &types, depth),
        };
        self.pool.extend(self.builder.results(inst));
    }

    fn repeat(&mut self, init: &[Value], types: &[Type], depth: usize) -> Inst {
        // A counter, which ends it, comes first.
        let zero = self.builder.index(0);
        let init = [&[zero], init].concat();
        let carried = [&[Type::INDEX], types].concat();
        let [before, body] = [0; 2].map(|_| self.builder.new_region(&carried));
        let [tested, counted] = [before, body].map(|region| {
            let outer = self.builder.enter(region);
            let counter = self.builder.parameters(region)[0];
            let number = self.builder.index(if region == before { 4 } else { 1 });
            let made = if region == before {
                vec![self.builder.lt(counter, number), counter]
            } else {
                vec![self.builder.add(counter, number)]
            };
            self.builder.enter(outer);
            made
        });
        self.inside(before, types, depth, &tested);
        self.inside(body, types, depth, &counted);
        let op = Op::While(op::While { init, before, body });
        self.builder.emit(op, &carried)
    }
}

/// Makes a function, and numbers for its scalars.
pub(super) fn generate(seed: u64) -> (Func, Vec<u64>) {
    let mut generator = Generator {
        random: Random::new(seed),
        builder: Builder::new("f", Stage::Block),
        pool: Vec::new(),
    };
    let mut arguments = Vec::new();
    for dtype in TYPES {
        let argument = generator.builder.scalar_parameter(dtype.name(), dtype);
        generator.pool.push(argument);
        arguments.push(generator.number(dtype).bits);
    }
    for (argument, bits) in arguments.iter_mut().enumerate() {
        if generator.random.one_in(2) {
            generator.builder.func_mut().parameters[argument].divisor = 4;
            *bits &= !3;
        }
    }
    let start = generator.random.pick(&[0, 0, 1, 16, -32]);
    for (extent, start) in [(32, start), (8, 0)] {
        let end = start + extent;
        let arange = generator
            .builder
            .value(Op::Arange(op::Arange { start, end }));
        generator.pool.push(arange);
        for _ in 0..2 {
            let dtype = generator.random.pick(&TYPES[2..]);
            let narrow = generator.builder.cast(arange, dtype);
            let by = generator.random.pick(&[1, 1, 2, 4, 5, 8, 12]);
            let by = generator.builder.bits_like(narrow, dtype, by);
            let narrow = generator.builder.mul(narrow, by);
            generator.pool.push(narrow);
        }
    }
    for _ in 0..14 {
        generator.step(2);
    }
    (
        generator.builder.finish().expect("is well typed"),
        arguments,
    )
}
