//! PTX of lane functions, assembled and disassembled by NVIDIA's tools where they are installed.

mod device;
mod exactness;
mod fetch;
mod inline;
mod lines;
mod lowered;
mod machine_code;
mod ops;
mod padded;

use std::path::{Path, PathBuf};

use exactile_core::builder::Builder;
use exactile_core::ir::{Access, DType, Func, Op, Shape, Stage, Type, Value, op};
use exactile_core::passes::legalise;
use exactile_core::target::Target;
use exactile_core::verify;
use exactile_nvptx::{Assembled, Assembler, Ptx, emit};

/// Builds, verifies and emits a lane function for one warp.
fn compile(name: &str, fill: impl FnOnce(&mut Builder)) -> Ptx {
    emit(&verified(name, 1, fill), &Target::SM_90A, name).expect("the function compiles")
}

/// A verified lane function, whose ops the backend takes.
fn verified(name: &str, warps: u32, fill: impl FnOnce(&mut Builder)) -> verify::LaneFunc {
    let mut builder = Builder::new(name, Stage::Lane);
    builder.func_mut().warps = warps;
    fill(&mut builder);
    let mut func: Func = builder.finish().expect("the function builds");
    legalise::legalise(&mut func, &Target::SM_90A.native);
    verify::lane(func).expect("the function is valid")
}

/// Assembles PTX; `None` with a notice where the tools are missing.
fn assemble(ptx: &Ptx) -> Option<Assembled> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(assembler) = Assembler::find(root) else {
        eprintln!("SKIPPED: no ptxas; set EXACTILE_PTXAS or run tools/test, which installs it");
        return None;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    match assembler.assemble(ptx.text(), &folder, ptx.name()) {
        Ok(assembled) => Some(assembled),
        Err(error) => panic!("{error}\n{}", ptx.text()),
    }
}

/// The number of instructions that start with `mnemonic`.
fn count(assembled: &Assembled, mnemonic: &str) -> usize {
    let words = assembled.sass.split_whitespace();
    words.filter(|word| word.starts_with(mnemonic)).count()
}

/// Loads `count` elements of `base` at the lane's own place.
fn load(builder: &mut Builder, base: Value, offset: Value, count: usize) -> Value {
    let (dtype, _) = builder.ty(base).pointee().expect("a pointer");
    let align = (count * dtype.bytes() as usize).min(16) as i64;
    let op = Op::LaneLoad(op::LaneLoad {
        base,
        offset,
        mask: None,
        other: None,
        align,
        cache: None,
    });
    builder.declared(op, Type::vector(dtype, count))
}

/// Stores a scalar or vector.
fn store(builder: &mut Builder, base: Value, offset: Value, value: Value) {
    let ty = builder.ty(value);
    let bytes = ty.shape.elements() * ty.dtype().map_or(1, |dtype| dtype.bytes()) as usize;
    let op = Op::LaneStore(op::LaneStore {
        base,
        offset,
        value,
        mask: None,
        align: bytes.min(16) as i64,
        cache: None,
    });
    builder.emit(op, &[]);
}

/// `lane_id * scale` as `i64`.
fn lane_offset(builder: &mut Builder, scale: i64) -> Value {
    let lane = builder.value(Op::LaneId(op::LaneId {}));
    let lane = builder.cast(lane, DType::I64);
    let scale = builder.index(scale);
    builder.mul(lane, scale)
}

/// A pointer parameter whose address is a multiple of 16 bytes.
fn aligned(builder: &mut Builder, name: &str, dtype: DType, access: Access) -> Value {
    let mut parameter = exactile_core::ir::Parameter::new(name, access);
    parameter.divisor = 16;
    let ty = Type::pointer(dtype, exactile_core::ir::Space::Global);
    builder.parameter(parameter, ty)
}

/// A vector shape.
fn lanes(count: usize) -> Shape {
    Shape::new(&[count]).expect("a valid shape")
}
