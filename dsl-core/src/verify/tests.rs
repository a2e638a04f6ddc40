//! Functions that no text can state: regions that nest too deeply, or in circles, or do not exist.

use super::{block, lane, placement};
use crate::builder::Builder;
use crate::diagnostic::Loc;
use crate::entity::Entity;
use crate::ir::{Access, DType, Func, Inst, Literal, Op, Region, Shape, Stage, op};
use crate::text::parse;

/// A branch into `region` at the end of `outer`.
fn branch(func: &mut Func, outer: Region, region: Region) -> Inst {
    let condition = func.arguments()[0];
    let on_false = func.add_region();
    let end = func.add_inst(
        Op::Yield(op::Yield { values: Vec::new() }),
        &[],
        Loc::none(),
    );
    func.region_mut(on_false).insts.push(end);
    let op = Op::If(op::If {
        condition,
        on_true: region,
        on_false,
    });
    let inst = func.add_inst(op, &[], Loc::none());
    func.region_mut(outer).insts.push(inst);
    inst
}

fn refused(func: Func, expected: &str) {
    let error = block(func).expect_err("is wrong").to_string();
    assert!(error.contains(expected), "{error}");
}

fn empty() -> Func {
    let mut builder = Builder::new("f", Stage::Block);
    builder.scalar_parameter("c", DType::Bool);
    builder.finish().expect("nothing is wrong")
}

#[test]
fn regions_that_nest_without_end_are_refused() {
    let work = || {
        let mut func = empty();
        let mut outer = func.body();
        for _ in 0..100_000 {
            let inner = func.add_region();
            branch(&mut func, outer, inner);
            outer = inner;
        }
        assert_eq!(func.all_insts().len(), 200_000);
        assert!(func.is_pure(func.all_insts()[0]));
        refused(func, "regions nest more than 264 deep");
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let thread = thread.spawn(work).expect("a thread starts");
    thread.join().expect("nothing panics");
}

#[test]
fn a_builder_says_when_regions_nest_too_deeply() {
    let work = || {
        let mut builder = Builder::new("f", Stage::Block);
        for _ in 0..100_000 {
            let region = builder.new_region(&[]);
            builder.enter(region);
            builder.filled(Literal::from_bits(DType::Bool, 1), Shape::SCALAR);
        }
        let error = builder.finish().expect_err("too deep").to_string();
        assert_eq!(error, "error: regions nest more than 256 deep");
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let thread = thread.spawn(work).expect("a thread starts");
    thread.join().expect("nothing panics");
}

#[test]
fn regions_are_a_tree() {
    let mut func = empty();
    let inner = func.add_region();
    let body = func.body();
    branch(&mut func, body, inner);
    branch(&mut func, inner, inner);
    refused(func, "a region has two owners");
    let mut func = empty();
    let body = func.body();
    branch(&mut func, body, Region::new(100));
    refused(func, "`region100` does not exist");
    let mut func = empty();
    let body = func.body();
    func.region_mut(body).insts.push(Inst::new(7));
    refused(func, "`, which does not exist");
}

#[test]
fn a_tile_of_pointers_is_none() {
    let mut builder = Builder::new("f", Stage::Block);
    let pointer = builder.pointer_parameter("x", DType::F32, Access::Read);
    let ty = builder.ty(pointer);
    let shape = Shape::new(&[1]).expect("a shape");
    builder.declared(
        Op::Reshape(op::Reshape { x: pointer }),
        ty.with_shape(shape),
    );
    let errors = builder.finish().expect_err("is refused").to_string();
    assert!(
        errors.contains("`reshape` takes numbers, found `ptr<f32>`"),
        "{errors}"
    );
}

/// What the replay says about buffers in a body that starts with the place `%at` of a lane.
fn placed(body: &str) -> String {
    let text = format!(
        "func @f lane warps=2 (%o: ptr<i32> write, %n: i64) {{
           %at = lane_id : i32
           %zero = constant value=i64(0) : i64
           {body}
         }}"
    );
    let func = parse(&text, "test.bir").expect("parses");
    let func = lane(func).expect("is valid");
    placement(&func).map_or_else(|errors| errors.to_string(), |()| String::new())
}

const LATE: &str = "lanes may still use the bytes in which this buffer begins";
const TAKEN: &str = "the bytes of this buffer are another's by now";

#[test]
fn buffers_begin_where_nobody_is_late() {
    let two = |between: &str, offset: i64| {
        placed(&format!(
            "%a = alloc offset=0, count=32 : ptr<i32, shared>
             lane_store %a, %at, %at, align=4
             {between}
             %b = alloc offset={offset}, count=32 : ptr<i32, shared>
             lane_store %b, %at, %at, align=4"
        ))
    };
    assert_eq!(two("barrier", 0), "");
    assert_eq!(two("", 128), "");
    assert!(two("", 0).contains(LATE));
    assert!(two("", 124).contains(LATE));
}

#[test]
fn buffers_of_a_loop_begin_where_no_iteration_is_late() {
    let repeated = |before: &str, after: &str| {
        placed(&format!(
            "for %zero, %n, [], step=1, stages=1 (%k: i64) {{
               {before}
               %a = alloc offset=0, count=32 : ptr<i32, shared>
               lane_store %a, %at, %at, align=4
               {after}
               yield []
             }}"
        ))
    };
    assert_eq!(repeated("barrier", ""), "");
    assert_eq!(repeated("", "barrier"), "");
    assert!(repeated("", "").contains(LATE));
}

#[test]
fn bytes_that_another_buffer_took_are_gone() {
    let used = |offset: i64| {
        placed(&format!(
            "%a = alloc offset=0, count=32 : ptr<i32, shared>
             for %zero, %n, [], step=1, stages=1 (%k: i64) {{
               lane_store %a, %at, %at, align=4
               barrier
               %b = alloc offset={offset}, count=32 : ptr<i32, shared>
               lane_store %b, %at, %at, align=4
               yield []
             }}"
        ))
    };
    assert_eq!(used(128), "");
    assert!(used(64).contains(TAKEN));
}
