//! The registers of a tile as one lane value: a vector that holds each distinct register once.
//!
//! Registers are equal where a tile repeats elements, as a splat or a broadcast does. So a view costs
//! nothing: it changes which element of the vector each register is. Where an op needs its operands
//! side by side, vectors are shuffled.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Lowering;
use crate::builder::Builder;
use crate::ir::{BinaryOp, DType, Literal, Op, Type, Value, op};
use crate::layout::LinearLayout;

/// One lane value for all registers of a layout.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    /// A scalar, or a vector.
    value: Value,
    /// For each register its element of the value.
    places: Rc<[u32]>,
}

impl Registers {
    /// Registers that are elements of `value`.
    pub(super) fn new(value: Value, places: impl Into<Rc<[u32]>>) -> Self {
        Self {
            value,
            places: places.into(),
        }
    }

    /// So many registers that all hold a scalar.
    pub(super) fn uniform(value: Value, count: usize) -> Self {
        Self::new(value, vec![0; count])
    }

    /// The registers of a layout of which `value` holds each distinct one, as [`Lowering::distinct`]
    /// gives it.
    pub(super) fn of(value: Value, layout: &LinearLayout) -> Self {
        Self::new(value, layout.without_register_copies().1)
    }

    /// The number of registers.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// For each register its element of the value.
    pub(super) fn places(&self) -> &[u32] {
        &self.places
    }

    /// The first register of each element of the value that registers are.
    pub(super) fn first_of_each(&self) -> Vec<u32> {
        let mut seen = BTreeSet::new();
        let registers = (0..).zip(self.places.iter());
        let first = registers.filter(|(_, place)| seen.insert(**place));
        first.map(|(register, _)| register).collect()
    }

    /// Registers of which each is one of these.
    pub(super) fn renamed(&self, sources: &[u32]) -> Self {
        let places = sources
            .iter()
            .map(|&register| self.places[register as usize]);
        Self {
            value: self.value,
            places: places.collect(),
        }
    }
}

/// The first of each group of equal keys, and for each key the number of its group. All keys are kept
/// where there is no vector of so many elements.
pub(super) fn grouped<K: Ord>(keys: impl IntoIterator<Item = K>) -> (Vec<u32>, Vec<u32>) {
    let mut known: BTreeMap<K, u32> = BTreeMap::new();
    let (mut firsts, mut groups) = (Vec::new(), Vec::new());
    for (at, key) in (0..).zip(keys) {
        let next = firsts.len() as u32;
        let group = *known.entry(key).or_insert(next);
        if group == next {
            firsts.push(at);
        }
        groups.push(group);
    }
    if firsts.len().is_power_of_two() {
        return (firsts, groups);
    }
    let all: Vec<u32> = (0..groups.len() as u32).collect();
    (all.clone(), all)
}

/// The registers that hold each element of a lane once, in ascending order.
pub(super) fn owners(layout: &LinearLayout) -> Vec<u32> {
    let free = layout.free_bits().register;
    let all = 0..layout.registers();
    all.filter(|register| register & free == 0).collect()
}

impl Lowering<'_> {
    /// A scalar or vector of some registers.
    pub(super) fn pick(&mut self, registers: &Registers, chosen: &[u32]) -> Value {
        let places = chosen
            .iter()
            .map(|&register| registers.places[register as usize]);
        let places: Vec<u32> = places.collect();
        self.elements(registers.value, &places)
    }

    /// A register.
    pub(super) fn register(&mut self, registers: &Registers, register: u32) -> Value {
        self.pick(registers, &[register])
    }

    /// A scalar or vector of each element that registers hold, once.
    pub(super) fn distinct(&mut self, registers: &Registers, layout: &LinearLayout) -> Value {
        self.pick(registers, &owners(layout))
    }

    /// A scalar or vector of some elements of a scalar or vector.
    pub(super) fn elements(&mut self, vector: Value, places: &[u32]) -> Value {
        let ty = self.builder.ty(vector);
        if let &[place] = places {
            return self.element(vector, place);
        }
        if places.iter().all(|&place| place == places[0]) {
            let x = self.element(vector, places[0]);
            return self.repeated(x, places.len());
        }
        if ty.shape.elements() == places.len() && places.iter().copied().eq(0..places.len() as u32)
        {
            return vector;
        }
        self.builder.value(Op::ShuffleVector(op::ShuffleVector {
            a: vector,
            b: vector,
            indices: places.to_vec(),
        }))
    }

    /// A vector of two halves, for each of whose elements its place is given.
    pub(super) fn arranged(&mut self, halves: [(Value, &[u32]); 2]) -> Value {
        let [(a, lower), (b, upper)] = halves;
        let mut indices = vec![0; lower.len() + upper.len()];
        for (index, &place) in (0..).zip(lower.iter().chain(upper)) {
            indices[place as usize] = index;
        }
        if self.builder.ty(a).is_scalar() {
            let elements: Vec<Value> = indices.iter().map(|&it| [a, b][it as usize]).collect();
            return self.vector(&elements);
        }
        self.builder
            .value(Op::ShuffleVector(op::ShuffleVector { a, b, indices }))
    }

    fn element(&mut self, vector: Value, place: u32) -> Value {
        if self.builder.ty(vector).is_scalar() {
            return vector;
        }
        let index = i64::from(place);
        self.builder
            .value(Op::Extract(op::Extract { vector, index }))
    }

    /// A vector of `count` times a scalar; the scalar where `count` is one.
    pub(super) fn repeated(&mut self, x: Value, count: usize) -> Value {
        let ty = self.builder.ty(x);
        let dtype = ty.dtype().unwrap_or(DType::I64);
        self.builder.splat(x, Type::vector(dtype, count).shape)
    }

    /// All elements of a scalar or vector.
    pub(super) fn scalars(&mut self, vector: Value) -> Vec<Value> {
        let count = self.builder.ty(vector).shape.elements() as u32;
        (0..count)
            .map(|place| self.element(vector, place))
            .collect()
    }

    /// A scalar or vector of scalars.
    pub(super) fn vector(&mut self, elements: &[Value]) -> Value {
        match elements {
            &[element] => element,
            elements => self.builder.value(Op::Vector(op::Vector {
                elements: elements.to_vec(),
            })),
        }
    }

    /// A vector of the elements of scalars or vectors of one type, one after the other.
    pub(super) fn joined(&mut self, parts: &[Value]) -> Value {
        if parts.len() == 1 || self.builder.ty(parts[0]).is_scalar() {
            return self.vector(parts);
        }
        let count = 2 * self.builder.ty(parts[0]).shape.elements() as u32;
        let mut pairs = Vec::new();
        for pair in parts.chunks(2) {
            pairs.push(self.builder.value(Op::ShuffleVector(op::ShuffleVector {
                a: pair[0],
                b: pair[1],
                indices: (0..count).collect(),
            })));
        }
        self.joined(&pairs)
    }

    /// Each register as a scalar.
    pub(super) fn split(&mut self, registers: &Registers) -> Vec<Value> {
        let mut known: BTreeMap<u32, Value> = BTreeMap::new();
        let places = registers.places.iter();
        places
            .map(|&place| {
                *known
                    .entry(place)
                    .or_insert_with(|| self.element(registers.value, place))
            })
            .collect()
    }

    /// Registers that hold these scalars.
    pub(super) fn join(&mut self, scalars: &[Value]) -> Registers {
        let (firsts, places) = grouped(scalars.iter().copied());
        let distinct: Vec<Value> = firsts.iter().map(|&at| scalars[at as usize]).collect();
        Registers::new(self.vector(&distinct), places)
    }

    /// What `make` makes of operands side by side, element by element. Registers whose operands are
    /// equal share one result.
    pub(super) fn map(
        &mut self,
        operands: &[&Registers],
        make: impl FnOnce(&mut Builder, &[Value]) -> Value,
    ) -> Registers {
        let count = operands.first().map_or(1, |first| first.count());
        let keys = (0..count).map(|register| -> Vec<u32> {
            let places = operands.iter().map(|operand| operand.places[register]);
            places.collect()
        });
        let (firsts, places) = grouped(keys);
        let aligned: Vec<Value> = operands
            .iter()
            .map(|operand| self.pick(operand, &firsts))
            .collect();
        Registers::new(make(&mut self.builder, &aligned), places)
    }

    /// A scalar or vector of these numbers.
    pub(super) fn literals(&mut self, dtype: DType, numbers: &[u32]) -> Value {
        let ty = Type::vector(dtype, numbers.len());
        if numbers.iter().all(|&number| number == numbers[0]) {
            let literal = Literal::from_bits(dtype, numbers[0].into());
            return self.builder.filled(literal, ty.shape);
        }
        let values = numbers.to_vec();
        self.builder.declared(Op::Places(op::Places { values }), ty)
    }

    /// Both halves of a vector.
    pub(super) fn halves_of(&mut self, vector: Value) -> [Value; 2] {
        let count = self.builder.ty(vector).shape.elements() as u32;
        let lower: Vec<u32> = (0..count / 2).collect();
        let upper: Vec<u32> = (count / 2..count).collect();
        [lower, upper].map(|places| self.elements(vector, &places))
    }

    /// Whether any element of a scalar or vector of conditions holds.
    pub(super) fn any(&mut self, mut conditions: Value) -> Value {
        while !self.builder.ty(conditions).is_scalar() {
            let [lower, upper] = self.halves_of(conditions);
            conditions = self.builder.binary(BinaryOp::Or, lower, upper);
        }
        conditions
    }
}
