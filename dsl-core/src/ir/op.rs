//! The op enum, generated from the tables, with everything that follows from a row.

use super::field::{Field, FieldReader, FieldWriter, ReadError, Values};
use super::ops::for_each_op;
use super::{
    Approximate, AtomicOp, Axis, BinaryOp, CompareOp, Direction, Function, Indices, Literal, Order,
    Precision, RawOp, Region, SortOrder, Stage, TernaryOp, UnaryOp, Value,
};

/// A property of an op that passes ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(non_camel_case_types, reason = "spelled as in the op table")]
pub enum Trait {
    /// No effect but its results; may be removed, repeated or moved.
    pure,
    /// Works on each element alone.
    elementwise,
    /// Makes each element of one element of each operand, at the same place or another, and of its own
    /// place: what an elementwise op, a shape op or a source of indices does.
    pointwise,
    /// Reads memory.
    reads,
    /// Writes memory or orders accesses.
    writes,
    /// All lanes of the warp must execute it together.
    convergent,
    /// Ends a region.
    terminator,
}

/// How the types of the results follow from an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(non_camel_case_types, reason = "spelled as in the op table")]
pub enum Rule {
    /// Stated where the op is made; checked against the operands.
    declared,
    /// No result.
    none,
    /// `i64`.
    index,
    /// `i32`.
    index32,
    /// `bool`.
    condition,
    /// The type of the first operand.
    like_first,
    /// `bool` in the shape of the first operand.
    compare,
    /// `end - start` indices.
    arange,
    /// The type of both alternatives.
    select,
    /// One more axis.
    expand_dims,
    /// Permuted axes.
    transpose,
    /// The pointee in the shape of the offsets.
    load,
    /// No result; the operands must agree.
    store,
    /// The sources without the axis.
    reduce,
    /// The types of the sources.
    scan,
    /// The sources with a shorter axis.
    sort,
    /// The accumulator's type.
    dot,
    /// `i32` for each bin.
    histogram,
    /// The number in the shape of the indices.
    gather,
    /// The types of the carried values.
    carried,
    /// The types that the first region yields.
    yielded,
    /// The element of a vector.
    extract,
    /// A vector of the elements.
    vector,
    /// As many elements as indices.
    shuffle_vector,
}

macro_rules! define_op {
    ($($(#[doc = $doc:literal])* $Variant:ident $mnemonic:literal { $($field:ident : $Kind:ty),* $(,)? }
        -> $rule:ident in [$($stage:ident)*] is [$($trait:ident)*];)*) => {
        /// What an instruction does.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Op {
            /// An elementwise op of one operand.
            Unary { #[doc = "the op"] op: UnaryOp, #[doc = "the operand"] x: Value },
            /// An elementwise op of two operands.
            Binary { #[doc = "the op"] op: BinaryOp, #[doc = "left"] lhs: Value, #[doc = "right"] rhs: Value },
            /// An elementwise op of three operands.
            Ternary { #[doc = "the op"] op: TernaryOp, #[doc = "first"] a: Value, #[doc = "second"] b: Value, #[doc = "third"] c: Value },
            /// An elementwise comparison.
            Compare { #[doc = "the op"] op: CompareOp, #[doc = "left"] lhs: Value, #[doc = "right"] rhs: Value },
            /// An elementwise op of two operands, as the machine has it.
            Raw { #[doc = "the op"] op: RawOp, #[doc = "left"] lhs: Value, #[doc = "right"] rhs: Value },
            /// An elementwise function that has a definition over primitives.
            Function { #[doc = "the function"] op: Function, #[doc = "the operand"] x: Value },
            /// An elementwise function of the device's own.
            Approximate { #[doc = "the function"] op: Approximate, #[doc = "the operand"] x: Value },
            $($(#[doc = $doc])* $Variant { $(#[doc = "See the op's documentation."] $field: $Kind),* }),*
        }

        /// Row data of the ops with their own shape: mnemonic, documentation, stages.
        pub const STRUCTURAL: &[(&str, &str, &[Stage])] = &[
            $(($mnemonic, concat!($($doc),*), &[$(super::stage!($stage)),*])),*
        ];

        impl Op {
            /// The name in the text form.
            pub fn mnemonic(&self) -> &'static str {
                match self {
                    Self::Unary { op, .. } => op.mnemonic(),
                    Self::Binary { op, .. } => op.mnemonic(),
                    Self::Ternary { op, .. } => op.mnemonic(),
                    Self::Compare { op, .. } => op.mnemonic(),
                    Self::Raw { op, .. } => op.mnemonic(),
                    Self::Function { op, .. } => op.mnemonic(),
                    Self::Approximate { op, .. } => op.mnemonic(),
                    $(Self::$Variant { .. } => $mnemonic),*
                }
            }

            /// How the result types follow.
            pub fn rule(&self) -> Rule {
                match self {
                    Self::Unary { .. } | Self::Binary { .. } | Self::Ternary { .. } => Rule::like_first,
                    Self::Raw { .. } | Self::Function { .. } | Self::Approximate { .. } => Rule::like_first,
                    Self::Compare { .. } => Rule::compare,
                    $(Self::$Variant { .. } => Rule::$rule),*
                }
            }

            /// Whether the op has the property.
            pub fn is(&self, asked: Trait) -> bool {
                match self {
                    Self::Unary { .. } | Self::Binary { .. } | Self::Ternary { .. } | Self::Compare { .. }
                    | Self::Raw { .. } | Self::Function { .. } | Self::Approximate { .. } => {
                        matches!(asked, Trait::pure | Trait::elementwise | Trait::pointwise)
                    }
                    $(Self::$Variant { .. } => [$(Trait::$trait),*].contains(&asked)),*
                }
            }

            /// Whether the op is legal in functions of `stage`.
            pub fn is_legal_in(&self, stage: Stage) -> bool {
                match self {
                    Self::Function { .. } => stage == Stage::Block,
                    Self::Raw { .. } => stage == Stage::Lane,
                    Self::Unary { .. } | Self::Binary { .. } | Self::Ternary { .. } | Self::Compare { .. }
                    | Self::Approximate { .. } => true,
                    $(Self::$Variant { .. } => [$(super::stage!($stage)),*].contains(&stage)),*
                }
            }

            /// Calls `visit` with each operand, in the order of the text form.
            pub fn visit_operands(&self, visit: &mut dyn FnMut(Value)) {
                match self {
                    Self::Unary { x, .. } | Self::Function { x, .. } | Self::Approximate { x, .. } => visit(*x),
                    Self::Binary { lhs, rhs, .. } | Self::Compare { lhs, rhs, .. } | Self::Raw { lhs, rhs, .. } => { visit(*lhs); visit(*rhs); }
                    Self::Ternary { a, b, c, .. } => { visit(*a); visit(*b); visit(*c); }
                    $(Self::$Variant { $($field),* } => { $(Field::values($field, visit);)* let _ = &visit; }),*
                }
            }

            /// Replaces each operand.
            pub fn map_operands(&mut self, map: &mut dyn FnMut(Value) -> Value) {
                match self {
                    Self::Unary { x, .. } | Self::Function { x, .. } | Self::Approximate { x, .. } => *x = map(*x),
                    Self::Binary { lhs, rhs, .. } | Self::Compare { lhs, rhs, .. } | Self::Raw { lhs, rhs, .. } => { *lhs = map(*lhs); *rhs = map(*rhs); }
                    Self::Ternary { a, b, c, .. } => { *a = map(*a); *b = map(*b); *c = map(*c); }
                    $(Self::$Variant { $($field),* } => { $(Field::map_values($field, map);)* let _ = &map; }),*
                }
            }

            /// Calls `visit` with each region.
            pub fn visit_regions(&self, visit: &mut dyn FnMut(Region)) {
                match self {
                    Self::Unary { .. } | Self::Binary { .. } | Self::Ternary { .. } | Self::Compare { .. }
                    | Self::Raw { .. } | Self::Function { .. } | Self::Approximate { .. } => {}
                    $(Self::$Variant { $($field),* } => { $(Field::regions($field, visit);)* let _ = &visit; }),*
                }
            }

            /// Replaces each region.
            pub fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
                match self {
                    Self::Unary { .. } | Self::Binary { .. } | Self::Ternary { .. } | Self::Compare { .. }
                    | Self::Raw { .. } | Self::Function { .. } | Self::Approximate { .. } => {}
                    $(Self::$Variant { $($field),* } => { $(Field::map_regions($field, map);)* let _ = &map; }),*
                }
            }

            /// Writes the fields.
            pub fn write_fields(&self, writer: &mut dyn FieldWriter) {
                match self {
                    Self::Unary { .. } | Self::Binary { .. } | Self::Ternary { .. } | Self::Compare { .. }
                    | Self::Raw { .. } | Self::Function { .. } | Self::Approximate { .. } => {
                        self.visit_operands(&mut |value| writer.operand(value));
                    }
                    $(Self::$Variant { $($field),* } => { $(Field::write($field, stringify!($field), writer);)* let _ = &writer; }),*
                }
            }

            #[expect(clippy::redundant_closure_call, reason = "`?` ends the reading of one op")]
            /// Reads the fields of the op named `mnemonic`; `None` when there is no such op.
            pub fn read(mnemonic: &str, reader: &mut dyn FieldReader) -> Option<Result<Self, ReadError>> {
                if let Some(op) = UnaryOp::from_mnemonic(mnemonic) {
                    return Some(reader.operand().map(|x| Self::Unary { op, x }));
                }
                if let Some(op) = Function::from_mnemonic(mnemonic) {
                    return Some(reader.operand().map(|x| Self::Function { op, x }));
                }
                if let Some(op) = Approximate::from_mnemonic(mnemonic) {
                    return Some(reader.operand().map(|x| Self::Approximate { op, x }));
                }
                if let Some(op) = BinaryOp::from_mnemonic(mnemonic) {
                    return Some(read_pair(reader).map(|(lhs, rhs)| Self::Binary { op, lhs, rhs }));
                }
                if let Some(op) = RawOp::from_mnemonic(mnemonic) {
                    return Some(read_pair(reader).map(|(lhs, rhs)| Self::Raw { op, lhs, rhs }));
                }
                if let Some(op) = CompareOp::from_mnemonic(mnemonic) {
                    return Some(read_pair(reader).map(|(lhs, rhs)| Self::Compare { op, lhs, rhs }));
                }
                if let Some(op) = TernaryOp::from_mnemonic(mnemonic) {
                    return Some(read_pair(reader).and_then(|(a, b)| {
                        reader.operand().map(|c| Self::Ternary { op, a, b, c })
                    }));
                }
                match mnemonic {
                    $($mnemonic => Some((|| Ok(Self::$Variant { $($field: <$Kind as Field>::read(stringify!($field), reader)?),* }))()),)*
                    _ => None,
                }
            }
        }
    };
}

fn read_pair(reader: &mut dyn FieldReader) -> Result<(Value, Value), ReadError> {
    Ok((reader.operand()?, reader.operand()?))
}

for_each_op!(define_op);

impl Op {
    /// The operands, in the order of the text form.
    pub fn operands(&self) -> Vec<Value> {
        let mut operands = Vec::new();
        self.visit_operands(&mut |value| operands.push(value));
        operands
    }

    /// Whether checked launches check what the op accesses: each such op is a site.
    pub fn is_checked(&self) -> bool {
        matches!(
            self,
            Self::Load { .. }
                | Self::Store { .. }
                | Self::AtomicReduce { .. }
                | Self::Gather { .. }
        )
    }

    /// The regions, in the order of the text form.
    pub fn regions(&self) -> Vec<Region> {
        let mut regions = Vec::new();
        self.visit_regions(&mut |region| regions.push(region));
        regions
    }
}

/// The mnemonic of every op, scalar families first.
pub fn all_mnemonics() -> Vec<&'static str> {
    let unary = UnaryOp::ALL.iter().map(|op| op.mnemonic());
    let binary = BinaryOp::ALL.iter().map(|op| op.mnemonic());
    let ternary = TernaryOp::ALL.iter().map(|op| op.mnemonic());
    let compare = CompareOp::ALL.iter().map(|op| op.mnemonic());
    let raw = RawOp::ALL.iter().map(|op| op.mnemonic());
    let functions = Function::ALL.iter().map(|op| op.mnemonic());
    let approximate = Approximate::ALL.iter().map(|op| op.mnemonic());
    let structural = STRUCTURAL.iter().map(|row| row.0);
    unary
        .chain(binary)
        .chain(ternary)
        .chain(compare)
        .chain(raw)
        .chain(functions)
        .chain(approximate)
        .chain(structural)
        .collect()
}
