//! What a random program must contain: one op on one data type, the unit of coverage.

use exactile_core::ir::{
    AtomicOp, BinaryOp, Class, CompareOp, DType, Func, Function, Inst, Op, Region, TernaryOp,
    UnaryOp, op,
};

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
    /// `broadcast`.
    Broadcast,
    /// `expand_dims`.
    ExpandDims,
    /// `reshape`.
    Reshape,
    /// `transpose`.
    Transpose,
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
    /// `atomic_reduce` by this op.
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
    /// `sort`, by its first source.
    Sort,
    /// `dot`.
    Dot,
    /// `histogram`, by its source.
    Histogram,
    /// `gather`.
    Gather,
    /// `arange`.
    Arange,
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
        Self::Broadcast,
        Self::ExpandDims,
        Self::Reshape,
        Self::Transpose,
        Self::Load,
        Self::LoadMasked,
        Self::LoadOther,
        Self::Store,
        Self::StoreMasked,
        Self::ForScalar,
        Self::ForTile,
        Self::While,
        Self::If,
        Self::Reduce(Combine::Closure),
        Self::Reduce(Combine::Several),
        Self::Scan(Combine::Closure),
        Self::Scan(Combine::Several),
        Self::Sort,
        Self::Dot,
        Self::Histogram,
        Self::Gather,
        Self::Arange,
        Self::ProgramId,
        Self::NumPrograms,
    ];

    fn admits(self, dtype: DType) -> bool {
        match self {
            Self::Dot => matches!(dtype, DType::F32 | DType::F64),
            Self::Arange | Self::ProgramId | Self::NumPrograms => dtype == DType::I64,
            Self::Reduce(Combine::Op(op)) | Self::Scan(Combine::Op(op)) => {
                op.accepts().admits(dtype)
            }
            Self::Histogram => matches!(dtype.class(), Class::Signed | Class::Unsigned),
            // Sums of floats in the order of arrival are not exact.
            Self::Atomic(op) => op.admits(dtype) && !dtype.is_float(),
            Self::Constant
            | Self::Select
            | Self::Splat
            | Self::Broadcast
            | Self::ExpandDims
            | Self::Reshape
            | Self::Transpose
            | Self::Load
            | Self::LoadMasked
            | Self::LoadOther
            | Self::Gather
            | Self::Store
            | Self::StoreMasked
            | Self::ForScalar
            | Self::ForTile
            | Self::While
            | Self::If
            | Self::Sort
            | Self::Reduce(Combine::Closure | Combine::Several)
            | Self::Scan(Combine::Closure | Combine::Several) => true,
        }
    }

    fn name(self) -> String {
        let name = match self {
            Self::Constant => "constant",
            Self::Select => "select",
            Self::Splat => "splat",
            Self::Broadcast => "broadcast",
            Self::ExpandDims => "expand_dims",
            Self::Reshape => "reshape",
            Self::Transpose => "transpose",
            Self::Load => "load",
            Self::LoadMasked => "load mask",
            Self::LoadOther => "load mask other",
            Self::Store => "store",
            Self::StoreMasked => "store mask",
            Self::Atomic(op) => return format!("atomic {}", op.word()),
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
            Self::Sort => "sort",
            Self::Dot => "dot",
            Self::Histogram => "histogram",
            Self::Gather => "gather",
            Self::Arange => "arange",
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
            let scans = SCANNERS.iter().map(|&op| Structure::Scan(Combine::Op(op)));
            let structures = Structure::ALL.iter().copied();
            let structures = structures.chain(reductions).chain(scans).chain(atomics);
            let structures = structures.filter(|structure| structure.admits(dtype));
            all.extend(structures.map(|structure| Self::Structure(structure, dtype)));
        }
        all
    }

    /// The type of the value that the op makes; `None` for a store or an atomic.
    pub fn result(self) -> Option<DType> {
        match self {
            Self::Compare(..) => Some(DType::Bool),
            Self::Structure(Structure::Histogram, _) => Some(DType::I32),
            Self::Structure(
                Structure::Store | Structure::StoreMasked | Structure::Atomic(_),
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
        let result = data
            .results
            .first()
            .and_then(|&value| func.ty(value).dtype());
        match &data.op {
            Op::Unary(op::Unary { op, .. }) => Some(Self::Unary(*op, result?)),
            Op::Function(op::Function { op, .. }) => Some(Self::Function(*op, result?)),
            Op::Binary(op::Binary { op, .. }) => Some(Self::Binary(*op, result?)),
            Op::Ternary(op::Ternary { op, .. }) => Some(Self::Ternary(*op, result?)),
            Op::Compare(op::Compare { op, lhs, .. }) => {
                Some(Self::Compare(*op, func.ty(*lhs).dtype()?))
            }
            Op::Cast(op::Cast { x }) => Some(Self::Cast(func.ty(*x).dtype()?, result?)),
            Op::Bitcast(op::Bitcast { x }) => Some(Self::Bitcast(func.ty(*x).dtype()?, result?)),
            op => structure(func, op)
                .and_then(|structure| match op {
                    Op::Store(op::Store { value, .. })
                    | Op::AtomicReduce(op::AtomicReduce { value, .. }) => {
                        Some((structure, func.ty(*value).dtype()?))
                    }
                    Op::Histogram(op::Histogram { x, .. }) => {
                        Some((structure, func.ty(*x).dtype()?))
                    }
                    Op::Reduce(op::Reduce { sources, .. }) | Op::Scan(op::Scan { sources, .. }) => {
                        Some((structure, func.ty(*sources.first()?).dtype()?))
                    }
                    Op::While(op::While { init, .. }) => {
                        Some((structure, func.ty(*init.last()?).dtype()?))
                    }
                    _ => Some((structure, result?)),
                })
                .map(|(structure, dtype)| Self::Structure(structure, dtype)),
        }
    }
}

fn structure(func: &Func, op: &Op) -> Option<Structure> {
    Some(match op {
        Op::Constant(_) => Structure::Constant,
        Op::Select(_) => Structure::Select,
        Op::Splat(_) => Structure::Splat,
        Op::Broadcast(_) => Structure::Broadcast,
        Op::ExpandDims(_) => Structure::ExpandDims,
        Op::Reshape(_) => Structure::Reshape,
        Op::Transpose(_) => Structure::Transpose,
        Op::Load(op::Load { mask: None, .. }) => Structure::Load,
        Op::Load(op::Load { other: None, .. }) => Structure::LoadMasked,
        Op::Load(_) => Structure::LoadOther,
        Op::Store(op::Store { mask: None, .. }) => Structure::Store,
        Op::Store(_) => Structure::StoreMasked,
        Op::AtomicReduce(op::AtomicReduce { op, .. }) => Structure::Atomic(*op),
        Op::For(op::For { init, .. }) if func.ty(*init.first()?).is_scalar() => {
            Structure::ForScalar
        }
        Op::For(_) => Structure::ForTile,
        Op::While(_) => Structure::While,
        Op::If(_) => Structure::If,
        Op::Reduce(op::Reduce {
            sources, combine, ..
        }) => Structure::Reduce(combiner(func, sources.len(), *combine)),
        Op::Scan(op::Scan {
            sources, combine, ..
        }) => Structure::Scan(combiner(func, sources.len(), *combine)),
        Op::Sort(_) => Structure::Sort,
        Op::Dot(_) => Structure::Dot,
        Op::Histogram(_) => Structure::Histogram,
        Op::Gather(_) => Structure::Gather,
        Op::Arange(_) => Structure::Arange,
        Op::ProgramId(_) => Structure::ProgramId,
        Op::NumPrograms(_) => Structure::NumPrograms,
        _ => return None,
    })
}

fn combiner(func: &Func, sources: usize, region: Region) -> Combine {
    let data = func.region(region);
    match (&data.insts[..], &data.parameters[..]) {
        ([inst, _], &[lower, higher]) if sources == 1 => match *func.op(*inst) {
            Op::Binary(op::Binary { op, lhs, rhs }) if (lhs, rhs) == (lower, higher) => {
                Combine::Op(op)
            }
            _ => Combine::Closure,
        },
        _ if sources == 1 => Combine::Closure,
        _ => Combine::Several,
    }
}
