//! Accumulators over the tiles of loops.

use exactile_core::ir::{Axis, BinaryOp, DType, Element, Op, Region, Shape, Type, Value, op};

use super::Generator;

/// Accumulators that go together: their types, and whether each combine is a sum.
struct Held {
    values: Vec<Value>,
    types: Vec<Type>,
    sums: bool,
}

impl Generator {
    /// What accumulators of this type and shape hold.
    pub(super) fn total(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let held = self.held(dtype, shape, depth);
        self.total_of(&held)
    }

    fn total_of(&mut self, held: &Held) -> Value {
        let combine = self.combine_held(held);
        let accumulators = held.values.clone();
        let op = Op::Total(op::Total {
            accumulators,
            combine,
        });
        self.several(op)
    }

    /// The prefixes of a tile of this type after what accumulators hold.
    pub(super) fn prefixes(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let axis = self.random.below(shape.rank());
        let mut held = self.held(dtype, shape.without(axis), depth);
        let types = held.types.iter();
        let types: Vec<DType> = types.filter_map(|ty| ty.dtype()).collect();
        let sources = types.iter().map(|&it| self.make(it, shape, depth));
        let sources = sources.collect();
        let combine = self.combine_held(&held);
        let prefixes = self.several(Op::Prefixes(op::Prefixes {
            accumulators: held.values.clone(),
            sources,
            axis: Axis(axis as u8),
            combine,
        }));
        if self.random.one_in(2) {
            held.values = self.with_subtree(&held, &held.values, depth);
            let total = self.total_of(&held);
            self.store(total, false);
        }
        prefixes
    }

    /// An op with a result for each accumulator, of which the first counts.
    fn several(&mut self, op: Op) -> Value {
        let inst = self.builder.emit(op, &[]);
        let results = self.builder.results(inst).to_vec();
        self.scope.extend(&results[1..]);
        if let Some(&last) = results[1..].last() {
            self.store(last, false);
        }
        results[0]
    }

    /// Accumulators of this type and others, most of them those of a loop.
    fn held(&mut self, dtype: DType, shape: Shape, depth: u32) -> Held {
        let mut dtypes = vec![dtype];
        let sums = self.random.one_in(2) && dtype != DType::Bool;
        if !sums && self.random.one_in(2) {
            dtypes.push(self.random.pick(DType::ALL));
        }
        let levels = self.random.between(1, 6) as u8;
        let mut held = Held {
            values: Vec::new(),
            types: dtypes.iter().map(|&it| Type::tile(it, shape)).collect(),
            sums,
        };
        for &dtype in &dtypes {
            let element = Element::Accumulator(dtype, levels);
            let op = Op::Accumulator(op::Accumulator {});
            let value = self.builder.declared(op, Type { element, shape });
            held.values.push(value);
        }
        if self.random.one_in(3) {
            held.values = self.with_subtree(&held, &held.values, depth);
        }
        if self.nesting < 2 {
            held.values = self.through_loop(&held);
        }
        held
    }

    /// What a loop makes of accumulators.
    fn through_loop(&mut self, held: &Held) -> Vec<Value> {
        let (lower, upper, step, _) = self.bounds();
        let branches = self.random.one_in(3);
        let types = held.values.iter().map(|&it| self.builder.ty(it));
        let types: Vec<Type> = std::iter::once(Type::INDEX).chain(types).collect();
        self.nesting += 1;
        let body = self.region(&types, |generator, parameters| {
            let values = &parameters[1..];
            match branches {
                true => generator.with_subtree_in_branch(held, values),
                false => generator.with_subtree(held, values, 1),
            }
        });
        self.nesting -= 1;
        let op = Op::For(op::For {
            lower,
            upper,
            init: held.values.clone(),
            step,
            stages: 1,
            body,
        });
        let inst = self.builder.emit(op, &[]);
        self.builder.results(inst).to_vec()
    }

    fn with_subtree(&mut self, held: &Held, values: &[Value], depth: u32) -> Vec<Value> {
        let subtrees = held.types.iter().map(|ty| {
            let dtype = ty.dtype().unwrap_or(DType::F32);
            self.make(dtype, ty.shape, depth)
        });
        let subtrees = subtrees.collect();
        let combine = self.combine_held(held);
        let inst = self.builder.emit(
            Op::Accumulate(op::Accumulate {
                accumulators: values.to_vec(),
                subtrees,
                combine,
            }),
            &[],
        );
        self.builder.results(inst).to_vec()
    }

    /// The accumulators with a subtree more in one branch.
    fn with_subtree_in_branch(&mut self, held: &Held, values: &[Value]) -> Vec<Value> {
        let condition = self.condition();
        let on_true = self.region(&[], |generator, _| generator.with_subtree(held, values, 0));
        let on_false = self.region(&[], |_, _| values.to_vec());
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let types: Vec<Type> = values.iter().map(|&it| self.builder.ty(it)).collect();
        let inst = self.builder.emit(op, &types);
        self.builder.results(inst).to_vec()
    }

    /// A combine of the elements of accumulators.
    fn combine_held(&mut self, held: &Held) -> Region {
        let elements = held.types.iter();
        let elements: Vec<Type> = elements.map(|ty| ty.with_shape(Shape::SCALAR)).collect();
        let (count, sums) = (elements.len(), held.sums);
        self.combiner(&elements, |generator, values| {
            let pairs = values[..count].iter().zip(&values[count..]);
            let combined = pairs.map(|(&lower, &higher)| match sums {
                true => generator.builder.binary(BinaryOp::Add, lower, higher),
                false => generator.mix(lower, higher),
            });
            combined.collect()
        })
    }
}
