//! What a random program must contain: one op on one data type, the unit of coverage.

use exactile_core::ir::op::{
    AccumulatorOp, BlockOp, DERIVED_OPS, Derived, Elementwise, SHAPE_OPS, TensorOp,
};
use exactile_core::ir::{
    AtomicOp, BinaryOp, Class, CompareOp, DType, Func, Function, Inst, Region, TernaryOp, UnaryOp,
    Value, op,
};
use exactile_core::semantics::reduction::only_op;

/// How the region of a reduction or a scan combines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Combine {
    /// By this op alone, lower operand left.
    Op(BinaryOp),
    /// By any other function of one source.
    Closure,
    /// Several sources together.
    Several,
}

/// Ops of a combining region that are worth a row of their own.
const COMBINERS: &[BinaryOp] = &[
    BinaryOp::Add,
    BinaryOp::Mul,
    BinaryOp::Minimum,
    BinaryOp::Maximum,
    BinaryOp::Minnum,
    BinaryOp::Maxnum,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Sub,
];

/// Ops of a scan's region that are worth a row of their own: each has its own neutral operand, or none.
const SCANNERS: &[BinaryOp] = &[
    BinaryOp::Add,
    BinaryOp::Mul,
    BinaryOp::Minimum,
    BinaryOp::Maxnum,
    BinaryOp::And,
    BinaryOp::Xor,
    BinaryOp::Sub,
];

/// An op that is not elementwise arithmetic, as far as coverage tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Structure {
    /// `constant`.
    Constant,
    /// `select`.
    Select,
    /// `splat`.
    Splat,
    /// The op of this name that gives the elements of tiles at other places.
    Move(&'static str),
    /// `load` without a mask.
    Load,
    /// `load` with a mask.
    LoadMasked,
    /// `load` with a mask and `other`.
    LoadOther,
    /// `store` without a mask.
    Store,
    /// `store` with a mask.
    StoreMasked,
    /// `tile_load`.
    TileLoad,
    /// `tile_store`.
    TileStore,
    /// `atomic_reduce` by this op, or `tile_atomic`.
    Atomic(AtomicOp),
    /// `for` that carries a scalar first.
    ForScalar,
    /// `for` that carries a tile first.
    ForTile,
    /// `while`, by the last value it carries.
    While,
    /// `if`, by its first result.
    If,
    /// `reduce`, by its first source.
    Reduce(Combine),
    /// `scan`, by its first source.
    Scan(Combine),
    /// `accumulate`, by its first subtree, and the total.
    Accumulate,
    /// `prefixes`, by its first tile.
    Prefixes,
    /// `sort`, by its first source.
    Sort,
    /// `dot` or `dot_promoted`, by their operands.
    Dot,
    /// `histogram`, by its source.
    Histogram,
    /// `gather`.
    Gather,
    /// `arange`.
    Arange,
    /// `atomic_fetch` by this op, or `tile_fetch`, of memory that no other program touches.
    Fetch(AtomicOp),
    /// `assert` of what holds.
    Assert,
    /// `print`, by one program.
    Print,
    /// `program_id`.
    ProgramId,
    /// `num_programs`.
    NumPrograms,
}

impl Structure {
    const ALL: &[Self] = &[
        Self::Constant,
        Self::Select,
        Self::Splat,
        Self::Load,
        Self::LoadMasked,
        Self::LoadOther,
        Self::Store,
        Self::StoreMasked,
        Self::TileLoad,
        Self::TileStore,
        Self::ForScalar,
        Self::ForTile,
        Self::While,
        Self::If,
        Self::Reduce(Combine::Closure),
        Self::Reduce(Combine::Several),
        Self::Scan(Combine::Closure),
        Self::Scan(Combine::Several),
        Self::Accumulate,
        Self::Prefixes,
        Self::Sort,
        Self::Dot,
        Self::Histogram,
        Self::Gather,
        Self::Arange,
        Self::Assert,
        Self::Print,
        Self::ProgramId,
        Self::NumPrograms,
    ];

    fn admits(self, dtype: DType) -> bool {
        match self {
            Self::Dot => dtype != DType::Bool,
            Self::Assert => dtype == DType::Bool,
            Self::Arange | Self::ProgramId | Self::NumPrograms => dtype == DType::I64,
            Self::Reduce(Combine::Op(op)) | Self::Scan(Combine::Op(op)) => {
                op.accepts().admits(dtype)
            }
            Self::Histogram => matches!(dtype.class(), Class::Signed | Class::Unsigned),
            Self::Atomic(op) => op.combines() && op.admits(dtype),
            Self::Fetch(op) => op.admits(dtype),
            Self::Constant
            | Self::Select
            | Self::Splat
            | Self::Move(_)
            | Self::Load
            | Self::LoadMasked
            | Self::LoadOther
            | Self::Gather
            | Self::Store
            | Self::StoreMasked
            | Self::TileLoad
            | Self::TileStore
            | Self::ForScalar
            | Self::ForTile
            | Self::While
            | Self::If
            | Self::Sort
            | Self::Accumulate
            | Self::Prefixes
            | Self::Print
            | Self::Reduce(Combine::Closure | Combine::Several)
            | Self::Scan(Combine::Closure | Combine::Several) => true,
        }
    }

    fn name(self) -> String {
        let name = match self {
            Self::Constant => "constant",
            Self::Select => "select",
            Self::Splat => "splat",
            Self::Move(name) => name,
            Self::Load => "load",
            Self::LoadMasked => "load mask",
            Self::LoadOther => "load mask other",
            Self::Store => "store",
            Self::StoreMasked => "store mask",
            Self::TileLoad => "tile_load",
            Self::TileStore => "tile_store",
            Self::Atomic(op) => return format!("atomic {}", op.word()),
            Self::Fetch(op) => return format!("fetch {}", op.word()),
            Self::ForScalar => "for scalar",
            Self::ForTile => "for tile",
            Self::While => "while",
            Self::If => "if",
            Self::Reduce(Combine::Op(op)) => return format!("reduce {}", op.mnemonic()),
            Self::Reduce(Combine::Closure) => "reduce closure",
            Self::Reduce(Combine::Several) => "reduce several",
            Self::Scan(Combine::Op(op)) => return format!("scan {}", op.mnemonic()),
            Self::Scan(Combine::Closure) => "scan closure",
            Self::Scan(Combine::Several) => "scan several",
            Self::Accumulate => "accumulate",
            Self::Prefixes => "prefixes",
            Self::Sort => "sort",
            Self::Dot => "dot",
            Self::Histogram => "histogram",
            Self::Gather => "gather",
            Self::Arange => "arange",
            Self::Assert => "assert",
            Self::Print => "print",
            Self::ProgramId => "program_id",
            Self::NumPrograms => "num_programs",
        };
        name.to_string()
    }
}

/// One op on one data type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Target {
    /// An elementwise op of one operand.
    Unary(UnaryOp, DType),
    /// An elementwise function.
    Function(Function, DType),
    /// An elementwise op of two operands.
    Binary(BinaryOp, DType),
    /// An elementwise op of three operands.
    Ternary(TernaryOp, DType),
    /// A comparison of operands of this type.
    Compare(CompareOp, DType),
    /// A conversion from the first type to the second.
    Cast(DType, DType),
    /// A reinterpretation of the first type as the second.
    Bitcast(DType, DType),
    /// Any other op.
    Structure(Structure, DType),
}

impl Target {
    /// Every op on every data type that it takes. Approximate ops are left out: two devices need
    /// not agree on them.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for &dtype in DType::ALL {
            let unary = UnaryOp::ALL.iter().filter(|op| op.accepts().admits(dtype));
            all.extend(unary.map(|&op| Self::Unary(op, dtype)));
            let functions = Function::ALL.iter().filter(|op| op.accepts().admits(dtype));
            all.extend(functions.map(|&op| Self::Function(op, dtype)));
            let binary = BinaryOp::ALL.iter().filter(|op| op.accepts().admits(dtype));
            all.extend(binary.map(|&op| Self::Binary(op, dtype)));
            let ternary = TernaryOp::ALL
                .iter()
                .filter(|op| op.accepts().admits(dtype));
            all.extend(ternary.map(|&op| Self::Ternary(op, dtype)));
            let compare = CompareOp::ALL
                .iter()
                .filter(|op| op.accepts().admits(dtype));
            all.extend(compare.map(|&op| Self::Compare(op, dtype)));
            let others = DType::ALL.iter().filter(|&&other| other != dtype);
            all.extend(others.clone().map(|&other| Self::Cast(dtype, other)));
            let same_width = others.filter(|other| other.bits() == dtype.bits());
            all.extend(same_width.map(|&other| Self::Bitcast(dtype, other)));
            let reductions = COMBINERS
                .iter()
                .map(|&op| Structure::Reduce(Combine::Op(op)));
            let atomics = AtomicOp::ALL.iter().map(|&op| Structure::Atomic(op));
            let fetches = AtomicOp::ALL.iter().map(|&op| Structure::Fetch(op));
            let scans = SCANNERS.iter().map(|&op| Structure::Scan(Combine::Op(op)));
            let structures = Structure::ALL.iter().copied();
            let moves = SHAPE_OPS.iter().chain(DERIVED_OPS).map(|row| row.0);
            let moves = moves.filter(|name| !["print", "dot_promoted"].contains(name));
            let structures = structures.chain(moves.map(Structure::Move));
            let structures = structures.chain(reductions).chain(scans);
            let structures = structures.chain(atomics).chain(fetches);
            let structures = structures.filter(|structure| structure.admits(dtype));
            all.extend(structures.map(|structure| Self::Structure(structure, dtype)));
        }
        all
    }

    /// Whether it needs that nothing is guaranteed. Programs use it where one order alone is possible.
    pub fn by_arrival(self) -> bool {
        if let Self::Structure(Structure::Atomic(op), dtype) = self {
            return op.rounds(dtype);
        }
        matches!(self, Self::Structure(Structure::Fetch(_), _))
    }

    /// Whether its bits are left open where nothing is guaranteed.
    pub fn is_relaxed(self) -> bool {
        match self {
            Self::Function(..)
            | Self::Structure(
                Structure::Reduce(_)
                | Structure::Scan(_)
                | Structure::Accumulate
                | Structure::Prefixes,
                _,
            ) => true,
            Self::Structure(..)
            | Self::Unary(..)
            | Self::Binary(..)
            | Self::Ternary(..)
            | Self::Compare(..)
            | Self::Cast(..)
            | Self::Bitcast(..) => false,
        }
    }

    /// The type of the value that the op makes; `None` for a store or an atomic.
    pub fn result(self) -> Option<DType> {
        match self {
            Self::Compare(..) => Some(DType::Bool),
            Self::Structure(Structure::Histogram, _) => Some(DType::I32),
            Self::Structure(Structure::Dot, dtype) => Some(added_in(dtype)),
            Self::Structure(
                Structure::Store
                | Structure::StoreMasked
                | Structure::TileStore
                | Structure::Assert
                | Structure::Print
                | Structure::Atomic(_),
                _,
            ) => None,
            Self::Unary(_, dtype)
            | Self::Function(_, dtype)
            | Self::Binary(_, dtype)
            | Self::Ternary(_, dtype)
            | Self::Cast(_, dtype)
            | Self::Bitcast(_, dtype)
            | Self::Structure(_, dtype) => Some(dtype),
        }
    }

    /// The row of the coverage table.
    pub fn row(self) -> String {
        match self {
            Self::Unary(op, _) => op.mnemonic().to_string(),
            Self::Function(op, _) => op.mnemonic().to_string(),
            Self::Binary(op, _) => op.mnemonic().to_string(),
            Self::Ternary(op, _) => op.mnemonic().to_string(),
            Self::Compare(op, _) => op.mnemonic().to_string(),
            Self::Cast(from, _) => format!("cast {from} to"),
            Self::Bitcast(from, _) => format!("bitcast {from} to"),
            Self::Structure(structure, _) => structure.name(),
        }
    }

    /// The column of the coverage table.
    pub fn column(self) -> DType {
        match self {
            Self::Unary(_, dtype)
            | Self::Function(_, dtype)
            | Self::Binary(_, dtype)
            | Self::Ternary(_, dtype)
            | Self::Compare(_, dtype)
            | Self::Cast(_, dtype)
            | Self::Bitcast(_, dtype)
            | Self::Structure(_, dtype) => dtype,
        }
    }

    /// What `inst` covers; `None` for ops that coverage does not count.
    pub fn of(func: &Func, inst: Inst) -> Option<Self> {
        let data = func.inst(inst);
        let of = |value: Value| func.ty(value).dtype();
        let result = data.results.first().and_then(|&value| of(value));
        let op = data.op.block()?;
        if let BlockOp::Derived(Derived::Function(op)) = op {
            return Some(Self::Function(op.op, result?));
        }
        if let BlockOp::Elementwise(op) = op {
            return match op {
                Elementwise::Unary(op) => Some(Self::Unary(op.op, result?)),
                Elementwise::Binary(op) => Some(Self::Binary(op.op, result?)),
                Elementwise::Ternary(op) => Some(Self::Ternary(op.op, result?)),
                Elementwise::Compare(op) => Some(Self::Compare(op.op, of(op.lhs)?)),
                Elementwise::Cast(op) => Some(Self::Cast(of(op.x)?, result?)),
                Elementwise::Bitcast(op) => Some(Self::Bitcast(of(op.x)?, result?)),
                Elementwise::Select(_) => Some(Self::Structure(Structure::Select, result?)),
                Elementwise::Approximate(_) | Elementwise::InlinePtx(_) => None,
            };
        }
        let moved = data.op.access().and_then(|access| access.value);
        let dtype = moved.or(counted(op)).map_or(result, of);
        let structure = structure(func, op, data.op.mnemonic())?;
        Some(Self::Structure(structure, dtype?))
    }
}

/// The operand whose data type counts, where that is not the result's.
fn counted(op: BlockOp<'_>) -> Option<Value> {
    if let BlockOp::Assert(op) = op {
        return Some(op.condition);
    }
    if let BlockOp::Histogram(op) = op {
        return Some(op.x);
    }
    if let BlockOp::Derived(Derived::Print(op)) = op {
        return Some(op.x);
    }
    if let BlockOp::Derived(Derived::AccumulatorOp(
        AccumulatorOp::Accumulate(op::Accumulate {
            subtrees: values, ..
        })
        | AccumulatorOp::Prefixes(op::Prefixes {
            sources: values, ..
        }),
    )) = op
    {
        return values.first().copied();
    }
    if let BlockOp::Derived(Derived::TensorOp(
        TensorOp::TileStore(op::TileStore { value, .. })
        | TensorOp::TileAtomic(op::TileAtomic { value, .. }),
    )) = op
    {
        return Some(*value);
    }
    if let BlockOp::Dot(op::Dot { a, .. })
    | BlockOp::Derived(Derived::DotPromoted(op::DotPromoted { a, .. })) = op
    {
        return Some(*a);
    }
    if let BlockOp::While(op) = op {
        return op.init.last().copied();
    }
    if let BlockOp::Reduce(op::Reduce { sources, .. }) | BlockOp::Scan(op::Scan { sources, .. }) =
        op
    {
        return sources.first().copied();
    }
    None
}

fn structure(func: &Func, op: BlockOp<'_>, name: &'static str) -> Option<Structure> {
    Some(match op {
        BlockOp::Elementwise(_) | BlockOp::Yield(_) => return None,
        BlockOp::LoadBox(_) | BlockOp::StoreBox(_) => return None,
        BlockOp::Derived(Derived::AccumulatorOp(op)) => match op {
            AccumulatorOp::Accumulator(_) | AccumulatorOp::Total(_) => return None,
            AccumulatorOp::Accumulate(_) => Structure::Accumulate,
            AccumulatorOp::Prefixes(_) => Structure::Prefixes,
        },
        BlockOp::Derived(Derived::TensorOp(op)) => match op {
            TensorOp::Tensor(_) => return None,
            TensorOp::TileLoad(_) => Structure::TileLoad,
            TensorOp::TileStore(_) => Structure::TileStore,
            TensorOp::TileAtomic(op) => Structure::Atomic(op.op),
            TensorOp::TileFetch(op) => Structure::Fetch(op.op),
        },
        BlockOp::Derived(Derived::Print(_)) => Structure::Print,
        BlockOp::Dot(_) | BlockOp::Derived(Derived::DotPromoted(_)) => Structure::Dot,
        BlockOp::ShapeOp(_) | BlockOp::Derived(_) => Structure::Move(name),
        BlockOp::Constant(_) => Structure::Constant,
        BlockOp::Splat(_) => Structure::Splat,
        BlockOp::Load(op::Load { mask: None, .. }) => Structure::Load,
        BlockOp::Load(op::Load { other: None, .. }) => Structure::LoadMasked,
        BlockOp::Load(_) => Structure::LoadOther,
        BlockOp::Store(op::Store { mask: None, .. }) => Structure::Store,
        BlockOp::Store(_) => Structure::StoreMasked,
        BlockOp::AtomicReduce(op) => Structure::Atomic(op.op),
        BlockOp::AtomicFetch(op) => Structure::Fetch(op.op),
        BlockOp::Assert(_) => Structure::Assert,
        BlockOp::For(op) if func.ty(*op.init.first()?).is_scalar() => Structure::ForScalar,
        BlockOp::For(_) => Structure::ForTile,
        BlockOp::While(_) => Structure::While,
        BlockOp::If(_) => Structure::If,
        BlockOp::Reduce(op) => Structure::Reduce(combiner(func, op.sources.len(), op.combine)),
        BlockOp::Scan(op) => Structure::Scan(combiner(func, op.sources.len(), op.combine)),
        BlockOp::Sort(_) => Structure::Sort,
        BlockOp::Histogram(_) => Structure::Histogram,
        BlockOp::Gather(_) => Structure::Gather,
        BlockOp::Arange(_) => Structure::Arange,
        BlockOp::ProgramId(_) => Structure::ProgramId,
        BlockOp::NumPrograms(_) => Structure::NumPrograms,
    })
}

fn combiner(func: &Func, sources: usize, region: Region) -> Combine {
    match only_op(func, region) {
        Some(op) => Combine::Op(op),
        None if sources == 1 => Combine::Closure,
        None => Combine::Several,
    }
}

/// The narrowest type that products of matrices of this type are added in.
pub fn added_in(dtype: DType) -> DType {
    match dtype.class() {
        Class::Signed if dtype.bits() < 32 => DType::I32,
        Class::Unsigned if dtype.bits() < 32 => DType::U32,
        Class::Signed | Class::Unsigned | Class::Float | Class::Bool => dtype.compute(),
    }
}
