//! Loops and branches.

use exactile_core::ir::{BinaryOp, CompareOp, DType, Literal, Op, Shape, Type, Value, op};

use super::super::target::{Combine, Target};
use super::super::values::{Fill, literal};
use super::Generator;

/// By how many programs the number of trips differs: a power of two.
const TURNS: usize = 4;

impl Generator {
    /// Runs `fill` inside a branch or a loop of its own.
    pub(super) fn wrapped(&mut self, fill: impl FnOnce(&mut Self)) {
        let op = if self.random.one_in(2) {
            let condition = self.condition();
            self.nesting += 1;
            let filled = self.region(&[], |generator, _| {
                fill(generator);
                Vec::new()
            });
            let empty = self.region(&[], |_, _| Vec::new());
            let swap = self.random.one_in(3);
            let (on_true, on_false) = if swap {
                (empty, filled)
            } else {
                (filled, empty)
            };
            Op::If(op::If {
                condition,
                on_true,
                on_false,
            })
        } else {
            let (lower, upper, step, _) = self.bounds();
            self.nesting += 1;
            let body = self.region(&[Type::INDEX], |generator, _| {
                fill(generator);
                Vec::new()
            });
            Op::For(op::For {
                lower,
                upper,
                init: Vec::new(),
                step,
                stages: 1,
                body,
            })
        };
        self.nesting -= 1;
        self.builder.emit(op, &[]);
    }

    /// A scalar that differs from program to program more often than not.
    pub(super) fn condition(&mut self) -> Value {
        match self.random.below(3) {
            0 => {
                let limit = self.builder.index(1);
                self.builder.lt(self.program, limit)
            }
            1 => {
                let one = self.builder.index(1);
                let odd = self.builder.and(self.program, one);
                self.builder.eq(odd, one)
            }
            _ => self.make(DType::Bool, Shape::SCALAR, 2),
        }
    }

    /// The linear index of the program, below [`TURNS`].
    fn turn(&mut self) -> Value {
        if self.programs() <= TURNS {
            return self.program;
        }
        let last = self.builder.index(TURNS as i64 - 1);
        self.builder.and(self.program, last)
    }

    /// Bounds and step of a loop, and between which numbers its index stays.
    pub(super) fn bounds(&mut self) -> (Value, Value, i64, (i64, i64)) {
        let first = self.random.between(-3, 3);
        let step = self.random.between(1, 3);
        let reach = self.random.between(-1, 6);
        let lower = self.builder.index(first);
        let upper = match self.random.below(3) {
            0 => self.builder.index(first + reach),
            1 => {
                let end = Literal::from_bits(DType::I64, (first + reach) as u64);
                self.scalar_parameter(end)
            }
            _ => {
                let most = self.builder.index(first + reach.min(3));
                let turn = self.turn();
                self.builder.add(turn, most)
            }
        };
        let last = first + reach.max(1).max(self.programs().min(TURNS) as i64 + 2);
        (lower, upper, step, (first, last))
    }

    /// The types of carried values beside the one that is wanted.
    fn companions(&mut self) -> Vec<Type> {
        let count = self.random.pick(&[0, 0, 1, 2]);
        let palette = self.palette.clone();
        (0..count)
            .map(|_| {
                let shape = self.random.pick(&palette);
                let shape = if self.random.one_in(2) {
                    Shape::SCALAR
                } else {
                    shape
                };
                Type::tile(self.random.pick(DType::ALL), shape)
            })
            .collect()
    }

    fn make_all(&mut self, types: &[Type], depth: u32) -> Vec<Value> {
        let types = types.iter();
        types
            .filter_map(|ty| ty.dtype().map(|dtype| self.make(dtype, ty.shape, depth)))
            .collect()
    }

    /// The next values of a loop: most combine the present one with something.
    fn next_values(&mut self, carried: &[Value], depth: u32) -> Vec<Value> {
        let mut next = Vec::new();
        for &value in carried {
            let ty = self.builder.ty(value);
            let Some(dtype) = ty.dtype() else {
                continue;
            };
            let made = self.make(dtype, ty.shape, depth);
            next.push(match self.any_op(dtype) {
                Some(Target::Binary(op, _)) => self.builder.binary(op, value, made),
                Some(_) if self.random.one_in(3) => made,
                Some(_) | None => {
                    let condition = self.make(DType::Bool, ty.shape, depth);
                    self.builder.select(condition, made, value)
                }
            });
        }
        // Values that trade places find lowerings that assign one after the other.
        if let [first, second, ..] = next[..]
            && self.builder.ty(first) == self.builder.ty(second)
        {
            next.swap(0, 1);
        }
        next
    }

    /// A carried value, or what is made of extreme elements where that compares with the value in some way.
    fn passing(&mut self, dtype: DType, value: Value, depth: u32) -> Value {
        let shape = self.builder.ty(value).shape;
        let ops = [
            BinaryOp::Maximum,
            BinaryOp::Minimum,
            BinaryOp::Maxnum,
            BinaryOp::Minnum,
        ];
        let count = if dtype.is_float() { 4 } else { 2 };
        let combine = Combine::Op(self.random.pick(&ops[..count]));
        let mut extreme = self.reduce(combine, dtype, shape, depth);
        // Nothing else uses it.
        self.scope.retain(|&it| it != extreme);
        if self.random.one_in(2) {
            let other = self.constant(dtype, shape);
            extreme = self.any_binary(dtype, extreme, other);
        }
        let passes = self.random.pick(CompareOp::ALL);
        let passes = self.builder.compare(passes, extreme, value);
        self.builder.select(passes, extreme, value)
    }

    pub(super) fn for_loop(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let mut types = vec![Type::tile(dtype, shape)];
        types.extend(self.companions());
        if self.random.one_in(4) {
            types.push(types[0]);
        }
        let (lower, upper, step, indices) = self.bounds();
        let mut init = self.make_all(&types, depth);
        let passes = shape.rank() > 0 && dtype != DType::Bool && self.random.one_in(5);
        if passes {
            init[0] = self.constant(dtype, shape);
        }
        self.nesting += 1;
        let parameters: Vec<Type> = std::iter::once(Type::INDEX).chain(types).collect();
        let body = self.region(&parameters, |generator, values| {
            let mut next = generator.next_values(&values[1..], depth);
            if passes {
                next[0] = generator.passing(dtype, values[1], depth);
                return next;
            }
            if generator.random.one_in(3) {
                let row = if generator.random.one_in(3) {
                    generator.row_of_branch(dtype, shape, values[0], indices)
                } else {
                    generator.row(dtype, shape, values[0], indices)
                };
                next[0] = match generator.any_op(dtype) {
                    Some(Target::Binary(op, _)) => generator.builder.binary(op, next[0], row),
                    Some(_) | None => row,
                };
            }
            next
        });
        self.nesting -= 1;
        let stages = self.random.between(0, 4);
        let op = Op::For(op::For {
            lower,
            upper,
            init,
            step,
            stages,
            body,
        });
        let inst = self.builder.emit(op, &[]);
        let results = self.builder.results(inst).to_vec();
        self.scope.extend(&results);
        results[0]
    }

    /// A row that a branch in a loop loads, or one of two.
    fn row_of_branch(
        &mut self,
        dtype: DType,
        shape: Shape,
        index: Value,
        indices: (i64, i64),
    ) -> Value {
        let condition = if self.random.one_in(2) {
            let limit = self.random.between(indices.0, indices.1);
            let limit = self.builder.index(limit);
            self.builder.lt(index, limit)
        } else {
            self.condition()
        };
        self.nesting += 1;
        let otherwise = self.random.one_in(2);
        let on_true = self.region(&[], |generator, _| {
            vec![generator.row(dtype, shape, index, indices)]
        });
        let on_false = self.region(&[], |generator, _| match otherwise {
            true => vec![generator.row(dtype, shape, index, indices)],
            false => vec![generator.make(dtype, shape, 1)],
        });
        self.nesting -= 1;
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let inst = self.builder.emit(op, &[]);
        self.builder.results(inst)[0]
    }

    pub(super) fn while_loop(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let mut types = vec![Type::INDEX];
        types.extend(self.companions());
        types.push(Type::tile(dtype, shape));
        let mut init = vec![self.builder.index(0)];
        init.extend(self.make_all(&types[1..], depth));
        let trips = self.random.between(0, 5);
        let limit = if self.random.one_in(2) {
            let trips = self.builder.index(trips.min(3));
            let turn = self.turn();
            self.builder.add(trips, turn)
        } else {
            self.scalar_parameter(Literal::from_bits(DType::I64, trips as u64))
        };
        self.nesting += 1;
        let before = self.region(&types, |generator, values| {
            let mut condition = generator.builder.lt(values[0], limit);
            if generator.random.one_in(3) {
                let more = generator.make(DType::Bool, Shape::SCALAR, depth);
                condition = generator.builder.and(condition, more);
            }
            let mut yielded = vec![condition];
            yielded.extend(values);
            if generator.random.one_in(3) {
                let last = generator.next_values(&values[values.len() - 1..], depth);
                yielded.truncate(values.len());
                yielded.extend(last);
            }
            yielded
        });
        let body = self.region(&types, |generator, values| {
            let one = generator.builder.index(1);
            let mut yielded = vec![generator.builder.add(values[0], one)];
            yielded.extend(generator.next_values(&values[1..], depth));
            yielded
        });
        self.nesting -= 1;
        let inst = self
            .builder
            .emit(Op::While(op::While { init, before, body }), &[]);
        let results = self.builder.results(inst).to_vec();
        self.scope.extend(&results);
        results[results.len() - 1]
    }

    pub(super) fn branch(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let mut types = vec![Type::tile(dtype, shape)];
        types.extend(self.companions());
        let condition = self.condition();
        self.nesting += 1;
        let [on_true, on_false] = [0; 2].map(|_| {
            self.region(&[], |generator, _| {
                let values = generator.make_all(&types, depth);
                if generator.random.one_in(4) {
                    generator.store(values[0], false);
                }
                values
            })
        });
        self.nesting -= 1;
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let inst = self.builder.emit(op, &[]);
        let results = self.builder.results(inst).to_vec();
        self.scope.extend(&results);
        results[0]
    }

    /// A literal for loops and reductions that keeps numbers in an everyday range.
    pub(super) fn everyday(&mut self, dtype: DType) -> Value {
        let literal = literal(&mut self.random, dtype, Fill::Moderate);
        self.builder.filled(literal, Shape::SCALAR)
    }
}
