//! Elements on demand: what a tile holds at an index, computed there.

use super::index::{Coordinate, Index, Scalar};
use super::lowerer::{Binding, Inline, Lowerer};
use crate::ir::index_map::Position;
use crate::ir::{BinaryOp, DType, IndexMap, Inst, Literal, Op, Type, Value, op};

/// The elements of a tile at the lanes of an index.
#[derive(Clone, Debug)]
pub(super) enum Pulled {
    /// One number for all lanes.
    Uniform(Scalar),
    /// `i64` numbers `base + lanes[lane]`.
    Affine(Scalar, Vec<i64>),
    /// A vector.
    Vector(Value),
}

impl Lowerer<'_> {
    /// The elements of `value` at `index`.
    pub(super) fn pull(&mut self, value: Value, index: &Index) -> Pulled {
        if index.lanes > 1 && index.is_uniform() {
            return self.pull(value, &index.lane(0));
        }
        let key = (value, index.clone());
        if let Some(known) = self.memo.iter().rev().find_map(|scope| scope.get(&key)) {
            return known.clone();
        }
        let binding = self.bindings.get(&value);
        let pulled = match binding.expect("broken invariant: a value is lowered before its uses") {
            Binding::Scalar(scalar) => return Pulled::Uniform(*scalar),
            Binding::Buffer(buffer) => {
                let buffer = *buffer;
                self.load_buffer(&buffer, index)
            }
            Binding::Inline(inst, inline) => {
                let (inst, inline) = (*inst, *inline);
                self.pull_inst(inst, inline, index)
            }
        };
        let pulled = self.normal(pulled);
        if let Some(scope) = self.memo.last_mut() {
            scope.insert(key, pulled.clone());
        }
        pulled
    }

    /// Lanes that are all equal become one number.
    fn normal(&mut self, pulled: Pulled) -> Pulled {
        match pulled {
            Pulled::Affine(base, lanes) if lanes.iter().all(|&lane| lane == lanes[0]) => {
                Pulled::Uniform(self.add(base, Scalar::Known(lanes[0])))
            }
            Pulled::Affine(..) | Pulled::Uniform(_) | Pulled::Vector(_) => pulled,
        }
    }

    /// The one element of a scalar or of a tile at a single position.
    pub(super) fn pull_scalar(&mut self, value: Value, index: &Index) -> Scalar {
        let pulled = self.pull(value, index);
        self.lane(&pulled, 0)
    }

    /// The elements that an instruction makes, under its own source line: a check in it names that.
    pub(super) fn pull_inst(&mut self, inst: Inst, inline: Inline<'_>, index: &Index) -> Pulled {
        let outer = self.builder.loc().clone();
        self.builder.set_loc(self.source.inst(inst).loc.clone());
        let result = self.source.inst(inst).results[0];
        let pulled = match inline {
            Inline::Constant(literal) => Pulled::Uniform(self.literal(literal)),
            Inline::Arange(op) => {
                let coordinate = &index.coordinates[0];
                let base = self.add(coordinate.base, Scalar::Known(op.start));
                Pulled::Affine(base, coordinate.lanes.clone())
            }
            Inline::Splat(x) => self.pull(x, &scalar_index()),
            Inline::Shape(op) => {
                let x = op.x();
                let map = op.map(&self.shape(x), &self.shape(result));
                let before = self.before(&map, index);
                self.pull(x, &before)
            }
            Inline::Load(op) => self.load(inst, op, index),
            Inline::Gather(op) => self.gather(inst, op, index),
            Inline::Computed => {
                let op = self.source.op(inst);
                let operands = op.operands().into_iter();
                let operands = operands
                    .map(|operand| (self.pull(operand, index), self.dtype(operand)))
                    .collect();
                self.apply(op, self.dtype(result), operands, index.lanes)
            }
        };
        self.builder.set_loc(outer);
        pulled
    }

    /// Where the elements at an index are in the tile that a map leads to.
    pub(super) fn before(&mut self, map: &IndexMap, index: &Index) -> Index {
        let positions = map.positions().into_iter().rev();
        let coordinate = |position| self.position(index, &position, map.from_bits());
        let mut coordinates: Vec<Coordinate> = positions.map(coordinate).collect();
        coordinates.reverse();
        Index {
            coordinates,
            lanes: index.lanes,
        }
    }

    /// An elementwise op on elements; `operands` come with their data types.
    pub(super) fn apply(
        &mut self,
        op: &Op,
        result: DType,
        operands: Vec<(Pulled, DType)>,
        lanes: usize,
    ) -> Pulled {
        if let (Op::Binary(op::Binary { op, .. }), [(a, DType::I64), (b, DType::I64)]) =
            (op, &operands[..])
            && let Some(folded) = self.index_arithmetic(*op, a, b)
        {
            return self.normal(folded);
        }
        let uniform = operands
            .iter()
            .all(|(operand, _)| matches!(operand, Pulled::Uniform(_)));
        let width = if uniform { 1 } else { lanes };
        let mut values = operands
            .into_iter()
            .map(|(operand, dtype)| self.vector(&operand, dtype, width))
            .collect::<Vec<Value>>()
            .into_iter();
        let mut op = op.clone();
        op.map_operands(&mut |operand| values.next().unwrap_or(operand));
        let inst = self.builder.emit(op, &[Type::vector(result, width)]);
        let value = self.builder.results(inst)[0];
        if uniform {
            Pulled::Uniform(Scalar::Emitted(value))
        } else {
            Pulled::Vector(value)
        }
    }

    /// Sums, differences and products of indices, kept as a base and constants for each lane.
    fn index_arithmetic(&mut self, op: BinaryOp, a: &Pulled, b: &Pulled) -> Option<Pulled> {
        let parts = |pulled: &Pulled| match pulled {
            Pulled::Uniform(base) => Some((*base, Vec::new())),
            Pulled::Affine(base, lanes) => Some((*base, lanes.clone())),
            Pulled::Vector(_) => None,
        };
        let ((a, a_lanes), (b, b_lanes)) = (parts(a)?, parts(b)?);
        let combine = |f: fn(i64, i64) -> i64| -> Vec<i64> {
            let lanes = a_lanes.len().max(b_lanes.len());
            let lane = |lanes: &[i64], at: usize| lanes.get(at).copied().unwrap_or(0);
            (0..lanes)
                .map(|at| f(lane(&a_lanes, at), lane(&b_lanes, at)))
                .collect()
        };
        let (base, lanes) = match op {
            BinaryOp::Add => (self.add(a, b), combine(i64::wrapping_add)),
            BinaryOp::Sub => (self.sub(a, b), combine(i64::wrapping_sub)),
            BinaryOp::Mul => {
                let scale = |lanes: &[i64], by: i64| {
                    lanes.iter().map(|lane| lane.wrapping_mul(by)).collect()
                };
                let lanes: Vec<i64> = match (a, b) {
                    (_, Scalar::Known(by)) if b_lanes.is_empty() => scale(&a_lanes, by),
                    (Scalar::Known(by), _) if a_lanes.is_empty() => scale(&b_lanes, by),
                    _ if a_lanes.is_empty() && b_lanes.is_empty() => Vec::new(),
                    _ => return None,
                };
                (self.mul(a, b), lanes)
            }
            BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Minimum
            | BinaryOp::Maximum
            | BinaryOp::Minnum
            | BinaryOp::Maxnum
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => return None,
        };
        if lanes.is_empty() {
            return Some(Pulled::Uniform(base));
        }
        Some(Pulled::Affine(base, lanes))
    }

    /// The elements as one lane value of `lanes` elements.
    pub(super) fn vector(&mut self, pulled: &Pulled, dtype: DType, lanes: usize) -> Value {
        let shape = Type::vector(dtype, lanes).shape;
        match pulled {
            Pulled::Vector(value) => *value,
            Pulled::Uniform(scalar) => {
                let value = self.value(*scalar);
                self.builder.splat(value, shape)
            }
            Pulled::Affine(base, own) => {
                let elements = own
                    .iter()
                    .map(|&lane| self.constant(Literal::from_bits(DType::I64, lane as u64)))
                    .collect();
                let own = self.builder.value(Op::Vector(op::Vector { elements }));
                if *base == Scalar::Known(0) {
                    return own;
                }
                let base = self.value(*base);
                let base = self.builder.splat(base, shape);
                self.builder.add(base, own)
            }
        }
    }

    /// One lane of the elements.
    pub(super) fn lane(&mut self, pulled: &Pulled, lane: usize) -> Scalar {
        match pulled {
            Pulled::Uniform(scalar) => *scalar,
            Pulled::Affine(base, own) => self.add(*base, Scalar::Known(own[lane])),
            Pulled::Vector(vector) => {
                let index = lane as i64;
                Scalar::Emitted(self.builder.value(Op::Extract(op::Extract {
                    vector: *vector,
                    index,
                })))
            }
        }
    }

    /// The position along an axis that is made of digits of others.
    fn position(&mut self, index: &Index, position: &Position, extents: &[u32]) -> Coordinate {
        let fixed = position.fixed.cast_signed();
        let mut made = Coordinate {
            base: Scalar::Known(0),
            lanes: vec![fixed; index.lanes],
        };
        for digit in &position.digits {
            let from = &index.coordinates[digit.axis];
            let base = match digit.count == extents[digit.axis] {
                true => from.base,
                false => self.bits(from.base, digit.low, digit.count),
            };
            let part = self.mul(base, Scalar::Known(1 << digit.at));
            made.base = self.add(made.base, part);
            let mask = (1 << digit.count) - 1;
            for (lane, own) in made.lanes.iter_mut().zip(&from.lanes) {
                *lane += (own >> digit.low & mask) << digit.at;
            }
        }
        let flipped = position.flipped.cast_signed();
        let own = made.lanes.iter().fold(0, |bits, lane| bits | lane);
        for lane in &mut made.lanes {
            *lane ^= flipped & own;
        }
        made.base = self.xor(made.base, flipped & !own);
        made
    }
}

/// The position of a scalar.
pub(super) fn scalar_index() -> Index {
    Index {
        coordinates: Vec::new(),
        lanes: 1,
    }
}
