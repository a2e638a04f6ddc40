//! The op enum, generated from the tables, with everything that follows from a row.

use super::field::{Field, FieldReader, FieldWriter, ReadError, Values};
use super::ops::for_each_op;
use super::{
    Accepts, AtomicOp, Axis, BinaryOp, Bits, Cache, CompareOp, Direction, Indices, Literal,
    MemoryOrder, NumberFormat, Order, Precision, RawOp, Region, RoleRegions, Scope, SortOrder,
    Stage, TernaryOp, UnaryOp, Value,
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

/// How many results an op has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(non_camel_case_types, reason = "spelled as in the op table")]
pub enum Results {
    /// None.
    none,
    /// One, whose type follows from the operands.
    one,
    /// One, whose type is stated where the op is made and checked against the operands.
    stated,
    /// One for each source.
    sources,
    /// One for each accumulator.
    held,
    /// One for each carried value.
    carried,
    /// One for each value that the first region yields.
    yielded,
}

/// The fields of an op, in the order of the text form.
trait Fields {
    fn visit_operands(&self, visit: &mut dyn FnMut(Value));
    fn map_operands(&mut self, map: &mut dyn FnMut(Value) -> Value);
    fn visit_regions(&self, visit: &mut dyn FnMut(Region));
    fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region);
    fn write(&self, writer: &mut dyn FieldWriter);
}

/// A struct for each op with its own shape, and the enum of all ops.
macro_rules! define_structs {
    (families { $($(#[doc = $family_doc:literal])* $Family:ident($Which:ty) { $($family_field:ident),* } -> $family_results:ident;)* }
        $($(#[doc = $doc:literal])* $Variant:ident $mnemonic:literal { $($field:ident : $Kind:ty),* $(,)? }
        -> $results:ident is [$($trait:ident)*];)*) => {
        /// What an instruction does.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Op {
            $($(#[doc = $family_doc])* $Family($Family),)*
            $($(#[doc = $doc])* $Variant($Variant)),*
        }

        $(
            $(#[doc = $family_doc])*
            #[derive(Clone, PartialEq, Eq, Hash, Debug)]
            pub struct $Family {
                #[doc = "Which one."]
                pub op: $Which,
                $(#[doc = "An operand."] pub $family_field: Value),*
            }

            impl $Family {
                fn read(mnemonic: &str, reader: &mut dyn FieldReader) -> Option<Result<Op, ReadError>> {
                    let op = <$Which>::from_mnemonic(mnemonic)?;
                    let mut read = || Ok(Op::$Family(Self { op, $($family_field: reader.operand()?),* }));
                    Some(read())
                }
            }

            impl Fields for $Family {
                fn visit_operands(&self, visit: &mut dyn FnMut(Value)) {
                    $(visit(self.$family_field);)*
                }
                fn map_operands(&mut self, map: &mut dyn FnMut(Value) -> Value) {
                    $(self.$family_field = map(self.$family_field);)*
                }
                fn visit_regions(&self, _visit: &mut dyn FnMut(Region)) {}
                fn map_regions(&mut self, _map: &mut dyn FnMut(Region) -> Region) {}
                fn write(&self, writer: &mut dyn FieldWriter) {
                    $(writer.operand(self.$family_field);)*
                }
            }
        )*

        $(
            $(#[doc = $doc])*
            #[derive(Clone, PartialEq, Eq, Hash, Debug)]
            pub struct $Variant { $(#[doc = "See the op's documentation."] pub $field: $Kind),* }

            impl $Variant {
                fn read(reader: &mut dyn FieldReader) -> Result<Op, ReadError> {
                    let _ = &reader;
                    Ok(Op::$Variant(Self { $($field: Field::read(stringify!($field), reader)?),* }))
                }
            }

            impl Fields for $Variant {
                fn visit_operands(&self, visit: &mut dyn FnMut(Value)) {
                    let _ = &visit;
                    $(Field::values(&self.$field, visit);)*
                }
                fn map_operands(&mut self, map: &mut dyn FnMut(Value) -> Value) {
                    let _ = &map;
                    $(Field::map_values(&mut self.$field, map);)*
                }
                fn visit_regions(&self, visit: &mut dyn FnMut(Region)) {
                    let _ = &visit;
                    $(Field::regions(&self.$field, visit);)*
                }
                fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
                    let _ = &map;
                    $(Field::map_regions(&mut self.$field, map);)*
                }
                fn write(&self, writer: &mut dyn FieldWriter) {
                    let _ = &writer;
                    $(Field::write(&self.$field, stringify!($field), writer);)*
                }
            }
        )*

        impl Op {
            fn fields(&self) -> &dyn Fields {
                match self {
                    $(Self::$Family(it) => it,)*
                    $(Self::$Variant(it) => it),*
                }
            }

            fn fields_mut(&mut self) -> &mut dyn Fields {
                match self {
                    $(Self::$Family(it) => it,)*
                    $(Self::$Variant(it) => it),*
                }
            }

            /// Calls `visit` with each region.
            // Asked of each instruction by every walk, and most ops have none.
            pub fn visit_regions(&self, visit: &mut dyn FnMut(Region)) {
                match self {
                    $(Self::$Family(it) => it.visit_regions(visit),)*
                    $(Self::$Variant(it) => it.visit_regions(visit)),*
                }
            }

            fn row(&self) -> (&'static str, Results, &'static [Trait]) {
                const ELEMENTWISE: &[Trait] = &[Trait::pure, Trait::elementwise, Trait::pointwise];
                match self {
                    $(Self::$Family(it) => (it.op.mnemonic(), Results::$family_results, ELEMENTWISE),)*
                    $(Self::$Variant(_) => ($mnemonic, Results::$results, &[$(Trait::$trait),*])),*
                }
            }

            /// The data types of the operands, all of one type, of an op of a family; `None` for others.
            pub fn accepts(&self) -> Option<Accepts> {
                match self {
                    $(Self::$Family(it) => Some(it.op.accepts()),)*
                    $(Self::$Variant(_) => None),*
                }
            }

            /// Reads the fields of the op named `mnemonic`; `None` when there is no such op.
            pub fn read(mnemonic: &str, reader: &mut dyn FieldReader) -> Option<Result<Self, ReadError>> {
                match mnemonic {
                    $($mnemonic => Some($Variant::read(reader)),)*
                    _ => None$(.or_else(|| $Family::read(mnemonic, reader)))*,
                }
            }
        }
    };
}

/// A view of [`Op`] that has some of its variants only.
macro_rules! define_view {
    ($(#[doc = $doc:literal])* $View:ident $method:ident [$($Family:ident)*] [$($Inner:ident $inner:ident)*]
        $($(#[doc = $row:literal])* $Variant:ident $mnemonic:literal { $($field:ident : $Kind:ty),* $(,)? }
        -> $results:ident is [$($trait:ident)*];)*) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        #[expect(missing_docs, reason = "the variants of `Op`")]
        pub enum $View<'a> {
            $($Inner($Inner<'a>),)*
            $($Family(&'a $Family),)*
            $($Variant(&'a $Variant),)*
        }

        impl Op {
            $(#[doc = $doc])*
            pub fn $method(&self) -> Option<$View<'_>> {
                match self {
                    $(Self::$Family(it) => Some($View::$Family(it)),)*
                    $(Self::$Variant(it) => Some($View::$Variant(it)),)*
                    _ => None$(.or_else(|| self.$inner().map($View::$Inner)))*,
                }
            }
        }
    };
}

macro_rules! rows {
    ($($(#[doc = $doc:literal])* $Variant:ident $mnemonic:literal { $($fields:tt)* }
        -> $results:ident is [$($trait:ident)*];)*) => {
        &[$(($mnemonic, concat!($($doc),*))),*]
    };
}

type Rows = &'static [(&'static str, &'static str)];

macro_rules! define_op {
    (elementwise { $($elementwise:tt)* } shape { $($shape:tt)* } place { $($place:tt)* }
        slot { $($slot:tt)* } order { $($order:tt)* } derived { $($derived:tt)* }
        map { $($map:tt)* } combine { $($combine:tt)* }
        both { $($both:tt)* } control { $($control:tt)* } block { $($block:tt)* }
        accumulator { $($accumulator:tt)* } tensor { $($tensor:tt)* } lane { $($lane:tt)* }
        warp { $($warp:tt)* } transfer { $($transfer:tt)* } worker { $($worker:tt)* }) => {
        define_structs! {
            families {
                /// An elementwise op of one operand.
                Unary(UnaryOp) { x } -> one;
                /// An elementwise op of two operands.
                Binary(BinaryOp) { lhs, rhs } -> one;
                /// An elementwise op of three operands.
                Ternary(TernaryOp) { a, b, c } -> one;
                /// An elementwise comparison.
                Compare(CompareOp) { lhs, rhs } -> one;
                /// An elementwise op of two operands, as the machine has it.
                Raw(RawOp) { lhs, rhs } -> one;
                /// An elementwise function that has a definition over primitives.
                Function(super::Function) { x } -> one;
                /// An elementwise function of the device's own.
                Approximate(super::Approximate) { x } -> one;
            }
            $($elementwise)* $($shape)* $($place)* $($slot)* $($order)* $($derived)* $($map)* $($combine)* $($both)* $($control)* $($block)*
            $($accumulator)* $($tensor)* $($lane)* $($warp)* $($transfer)* $($worker)*
        }
        define_view! {
            /// The op as one that works on each element alone, in either stage; `None` for others.
            Elementwise elementwise [Unary Binary Ternary Compare Approximate] [] $($elementwise)*
        }
        define_view! {
            /// The op as one that gives a tile the elements of another; `None` for others.
            ShapeOp shape [] [] $($shape)* $($place)*
        }
        define_view! {
            /// The op as one that a pass makes others of before it is lowered; `None` for others.
            Derived derived [Function] [AccumulatorOp accumulator TensorOp tensor]
                $($derived)* $($map)*
        }
        define_view! {
            /// The op as one of elements by a region that says what it makes of them; `None` for others.
            ElementOp element [] [] $($map)* $($combine)*
        }
        define_view! {
            /// The op as one that decides which of its regions run; `None` for others.
            Control control [] [] $($control)*
        }
        define_view! {
            /// The op as one on accumulators, which a pass expands; `None` for others.
            AccumulatorOp accumulator [] [] $($accumulator)*
        }
        define_view! {
            /// The op as one of tensors and their tiles, which a pass expands; `None` for others.
            TensorOp tensor [] [] $($tensor)*
        }
        define_view! {
            /// The op as one of the block stage; `None` for those of lanes only.
            BlockOp block [] [Elementwise elementwise ShapeOp shape Derived derived]
                $($both)* $($control)* $($combine)* $($block)*
        }
        define_view! {
            /// The op as one on slots of shared memory; `None` for others.
            SlotOp slot [] [] $($slot)*
        }
        define_view! {
            /// The op as one that makes lanes wait for copies or for each other; `None` for others.
            OrderOp order [] [] $($order)*
        }
        define_view! {
            /// The op as one of the schedule stage; `None` for those that passes replace before, and those of
            /// lanes only.
            ScheduleOp schedule [] [Elementwise elementwise ShapeOp shape SlotOp slot OrderOp order]
                $($both)* $($control)* $($combine)* $($block)*
        }
        define_view! {
            /// The op as one of tiles, of the block or the schedule stage; `None` for those of lanes only.
            TileOp tile [] [Elementwise elementwise ShapeOp shape Derived derived SlotOp slot OrderOp order]
                $($both)* $($control)* $($combine)* $($block)*
        }
        define_view! {
            /// The op as one of the lanes of a GPU, which a CPU does not have; `None` for others.
            WarpOp warp [] [OrderOp order] $($warp)*
        }
        define_view! {
            /// The op as one by which warps with different roles, and bulk copies, work together; `None` for
            /// others.
            TransferOp transfer [] [] $($transfer)*
        }
        define_view! {
            /// The op as one of a worker of a CPU, which a GPU does not have; `None` for others.
            WorkerOp worker [] [] $($worker)*
        }
        define_view! {
            /// The op as one of the lane stage; `None` for those of tiles only.
            LaneOp lane [Raw] [Elementwise elementwise WarpOp warp TransferOp transfer WorkerOp worker]
                $($both)* $($control)* $($lane)*
        }

        /// Mnemonic and documentation of the ops of [`ShapeOp`] of the block stage.
        pub const SHAPE_OPS: Rows = rows! { $($shape)* };

        /// Mnemonic and documentation of the ops of [`Derived`] that are of no other view.
        pub const DERIVED_OPS: Rows = rows! { $($derived)* $($map)* };

        /// Mnemonic and documentation of the ops of [`SlotOp`].
        pub const SLOT_OPS: Rows = rows! { $($slot)* };

        /// Mnemonic and documentation of the ops of [`OrderOp`].
        pub const ORDER_OPS: Rows = rows! { $($order)* };

        /// Mnemonic and documentation of the ops of [`WarpOp`] alone.
        pub const WARP_OPS: Rows = rows! { $($warp)* };

        /// Mnemonic and documentation of the ops of [`TransferOp`].
        pub const TRANSFER_OPS: Rows = rows! { $($transfer)* };

        /// Mnemonic and documentation of the ops of [`WorkerOp`].
        pub const WORKER_OPS: Rows = rows! { $($worker)* };

        /// Mnemonic and documentation of the ops with their own shape, and their stages.
        pub const STRUCTURAL: &[(&[Stage], Rows)] = &[
            (Stage::ALL, rows! { $($both)* $($control)* $($elementwise)* }),
            (&[Stage::Block, Stage::Schedule], rows! { $($shape)* $($combine)* $($block)* }),
            (&[Stage::Schedule], rows! { $($place)* }),
            (&[Stage::Schedule], SLOT_OPS),
            (&[Stage::Schedule, Stage::Lane], ORDER_OPS),
            (&[Stage::Block], rows! { $($derived)* $($map)* $($accumulator)* $($tensor)* }),
            (&[Stage::Lane], rows! { $($lane)* }),
            (&[Stage::Lane], WARP_OPS),
            (&[Stage::Lane], TRANSFER_OPS),
            (&[Stage::Lane], WORKER_OPS),
        ];
    };
}

for_each_op!(define_op);

impl Op {
    /// The name in the text form.
    pub fn mnemonic(&self) -> &'static str {
        self.row().0
    }

    /// How many results there are.
    pub fn results(&self) -> Results {
        self.row().1
    }

    /// Whether the op has the property.
    pub fn is(&self, asked: Trait) -> bool {
        self.row().2.contains(&asked)
    }

    /// Whether the op is legal in functions of `stage`.
    pub fn is_legal_in(&self, stage: Stage) -> bool {
        match stage {
            Stage::Block => self.block().is_some() && !matches!(self, Self::Convert(_)),
            Stage::Schedule => self.schedule().is_some(),
            Stage::Lane => self.lane().is_some(),
        }
    }

    /// Calls `visit` with each operand, in the order of the text form.
    pub fn visit_operands(&self, visit: &mut dyn FnMut(Value)) {
        self.fields().visit_operands(visit);
    }

    /// Replaces each operand.
    pub fn map_operands(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        self.fields_mut().map_operands(map);
    }

    /// Replaces each region.
    pub fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
        self.fields_mut().map_regions(map);
    }

    /// Writes the fields.
    pub fn write_fields(&self, writer: &mut dyn FieldWriter) {
        self.fields().write(writer);
    }

    /// The operands, in the order of the text form.
    pub fn operands(&self) -> Vec<Value> {
        let mut operands = Vec::new();
        self.visit_operands(&mut |value| operands.push(value));
        operands
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
    let functions = super::Function::ALL.iter().map(|op| op.mnemonic());
    let approximate = super::Approximate::ALL.iter().map(|op| op.mnemonic());
    let structural = STRUCTURAL
        .iter()
        .flat_map(|(_, rows)| rows.iter().map(|row| row.0));
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
