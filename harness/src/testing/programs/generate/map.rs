//! Functions of elements, some of which branch, and inline PTX in them.

use exactile_core::ir::{CompareOp, DType, Op, Shape, Type, Value, op};

use super::Generator;

impl Generator {
    /// What a function of two numbers gives for the elements of two tiles, the first of its two results.
    pub(super) fn map(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let dtypes = [dtype, self.random.pick(DType::ALL)];
        let sources = dtypes.map(|it| self.make(it, wanted, depth)).to_vec();
        let outside = self.outside(dtype, depth);
        let outer = self.combiner.replace(self.scope.len());
        let body = self.region(&dtypes.map(Type::scalar), |generator, values| {
            let other = outside.unwrap_or_else(|| generator.everyday(dtype));
            let mixed = generator.mix(values[0], other);
            let mixed = generator.moved(dtype, mixed);
            let first = match generator.random.one_in(2) {
                true => mixed,
                false => generator.chosen(dtype, values[0], mixed),
            };
            vec![first, values[1]]
        });
        self.combiner = outer;
        let types = dtypes.map(|it| Type::tile(it, wanted));
        let inst = self
            .builder
            .emit(Op::Map(op::Map { sources, body }), &types);
        let results = self.builder.results(inst).to_vec();
        self.scope.push(results[1]);
        results[0]
    }

    /// A branch by whether two numbers differ.
    fn chosen(&mut self, dtype: DType, a: Value, b: Value) -> Value {
        let differ = self.builder.compare(CompareOp::Ne, a, b);
        let [on_true, on_false] = [(a, b), (b, a)].map(|(lhs, rhs)| {
            self.region(&[], |generator, _| {
                vec![generator.any_binary(dtype, lhs, rhs)]
            })
        });
        let branch = Op::If(op::If {
            condition: differ,
            on_true,
            on_false,
        });
        let inst = self.builder.emit(branch, &[Type::scalar(dtype)]);
        self.builder.results(inst)[0]
    }

    /// The number by inline PTX that moves it, where it has a register.
    fn moved(&mut self, dtype: DType, x: Value) -> Value {
        let bits = dtype.bits();
        if bits < 16 || self.random.one_in(2) {
            return x;
        }
        self.builder.value(Op::InlinePtx(op::InlinePtx {
            meaning: vec![x],
            operands: vec![x],
            result: 0,
            text: format!("mov.b{bits} $0, $1;"),
        }))
    }
}
