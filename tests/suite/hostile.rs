//! Bodies of kernels that nobody means well with: every function of the language with any number, in a trace and outside
//! of one. Each ends in IR or in an error of the language, never in a panic of it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use exactile::prelude::*;
use exactile::{Error, F8E4M3};

/// What bodies have: two numbers of the host, and handles.
#[derive(Clone, Copy)]
struct Given {
    n: usize,
    m: usize,
    p: Ptr<f32>,
    out: PtrMut<f32>,
    t: Tensor<f32, 2>,
    i: Scalar<i32>,
}

impl Given {
    fn x(&self) -> Tile<f32> {
        load(self.p + arange(0, 64)).reshape([4, 16])
    }

    fn whole(&self) -> Tile<i64> {
        arange(0, 64)
    }
}

type Body = fn(Given);

/// What a function gives does not matter.
fn seen<T>(_: T) {}

/// Each function with what it is worst at.
const BODIES: &[(&str, Body)] = &[
    ("arange", |g| seen(arange(g.n, g.m))),
    ("zeros", |g| seen(zeros::<f32>([g.n, g.m]))),
    ("zeros of rank", |g| {
        seen(zeros::<f32>(vec![1; g.n.min(100)]))
    }),
    ("full", |g| seen(full::<i8>([g.n], g.m as i64))),
    ("scalar", |g| seen(scalar::<i8>(g.n as i64))),
    ("program_id", |g| seen((program_id(g.n), num_programs(g.m)))),
    ("expand", |g| seen(g.x().expand(g.n).expand(g.m))),
    ("reshape", |g| seen(g.x().reshape([g.n, g.m]))),
    ("broadcast_to", |g| seen(g.x().broadcast_to([g.n, 4, g.m]))),
    ("transpose", |g| seen(g.whole().transpose())),
    ("permute", |g| seen(g.x().permute([g.n, g.m]))),
    ("flip", |g| seen(g.x().flip(g.n))),
    ("slice", |g| seen(g.x().slice(g.n, g.m, g.n))),
    ("halves", |g| seen(g.x().halves(g.n))),
    ("join", |g| seen(g.x().join(g.whole().to::<f32>()))),
    ("split", |g| {
        seen((g.x().split(), scalar::<f32>(1.0).tile().split()))
    }),
    ("interleave", |g| {
        seen(scalar::<f32>(1.0).tile().interleave(g.x()))
    }),
    ("scalar of a tile", |g| seen(g.x().scalar())),
    ("ravel", |g| {
        seen(scalar::<f32>(1.0).tile().ravel().squeeze(g.n))
    }),
    ("pick", |g| seen(g.x().pick(g.n, g.m))),
    ("row", |g| seen(g.x().row(g.n))),
    ("with_slice", |g| seen(g.x().with_slice(g.n, g.m, g.x()))),
    ("cat", |g| {
        seen((g.x().cat(g.x(), g.n), cat(vec![g.x(); g.m.min(65)], g.n)))
    }),
    ("sums", |g| {
        seen((g.x().sum(g.n), g.x().max_keep(g.m), g.x().argmax(g.n)))
    }),
    ("scans", |g| seen(scan(g.x(), g.n, |a, b| a + b))),
    ("reduce", |g| {
        seen(reduce((g.x(), g.x()), g.n, |a, b| (a.0 + b.1, b.0)))
    }),
    ("reduce_masked", |g| {
        seen(reduce_masked(g.x(), g.whole().mask_of_all(), g.n, |a, _| a))
    }),
    ("sorts", |g| {
        seen((g.x().sort(g.n), g.x().argsort_descending(g.m)))
    }),
    ("topk", |g| seen(g.x().topk(g.n, g.m))),
    ("histogram", |g| seen(histogram(g.whole(), g.n))),
    ("gather", |g| seen(gather(g.x(), g.whole(), g.n))),
    ("dot_promoted", |g| {
        let products = dot_promoted(Precision::Ieee, g.n, g.x(), g.x(), zeros::<f32>([g.n, g.m]));
        seen(products);
    }),
    ("dot", |g| seen(dot(g.x(), g.x(), zeros::<f32>([g.n, g.m])))),
    ("bitcast", |g| seen(g.x().bitcast::<i64>())),
    ("casts", |g| {
        seen(g.x().to::<F8E4M3>().to::<bool>().to::<u64>())
    }),
    ("int4", |g| {
        seen((
            unpack_int4(zeros::<u8>([g.n])),
            pack_int4(zeros::<i8>([g.m])),
        ))
    }),
    ("bytes in words", |g| {
        seen((
            pack_bytes(zeros::<u8>([g.n])),
            unpack_bytes(zeros::<u32>([g.m])),
            pack_e2m1(zeros::<f32>([g.n, g.m])),
            pack_bytes(scalar::<u8>(1).tile()),
        ))
    }),
    ("orders", |g| {
        seen((bessel_jn(g.i, g.x()), bessel_yn(g.n as i64, g.x())));
    }),
    ("map_slices", |g| {
        seen(g.x().map_slices(g.n, g.m, |x| x.sum_keep(g.n)))
    }),
    ("tile_origin", |g| seen(tile_origin([g.n, g.m], g.n as i64))),
    ("dot_along", |g| {
        let [a, b] = [[g.n, g.m], [g.m, g.n]].map(|it| g.t.tile(it).at([0, 0]));
        seen(dot_along(a, b, g.i, g.n, zeros::<f32>([g.n, g.m])));
    }),
    ("swizzle", |g| {
        seen(swizzle_2d(g.i, g.i, g.i, g.i, g.n as i64))
    }),
    ("shifts", |g| {
        seen((g.i << (g.n as i32), g.whole() >> (g.m as i64)))
    }),
    ("division", |g| {
        seen((g.i / (g.n as i32), g.whole() % (g.m as i64)))
    }),
    ("rotate", |g| seen(rotate_left(g.i, g.n as i32))),
    ("norm", |g| {
        seen(norm([
            g.x().sum(0).sum(0),
            scalar::<f32>(g.n as f64).tile(),
        ]))
    }),
    ("map", |g| {
        seen(map_elementwise((g.x(), g.whole()), |(a, b)| (a, b)))
    }),
    ("tile", |g| {
        seen(g.t.tile([g.n, g.m]).at_offset((g.m, g.n)).load())
    }),
    ("extent", |g| {
        seen((g.t.extent(g.n), g.t.stride(g.m), g.t.select(g.n, g.m)))
    }),
    ("store", |g| seen(store(g.out + arange(0, g.n), g.x()))),
    ("mask", |g| {
        store(g.out + g.whole(), 1.0)
            .mask(arange(0, g.n).to::<bool>() | arange(0, g.m).to::<bool>())
    }),
    ("print", |g| {
        seen(device_print(&"\0\"%\n\u{202e}".repeat(g.n.min(40)), g.x()))
    }),
    ("assert", |g| {
        device_assert(g.i.to::<bool>(), &"\"}\n; ".repeat(g.n.min(40)))
    }),
    ("require", |g| require(g.n > g.m, "n is more")),
    ("sum accumulator", |g| {
        let mut sums = sum_accumulator::<f32>([g.n]);
        sums.add(g.x(), g.m);
        seen(sums.finish());
    }),
    ("accumulator", |g| {
        let mut all = accumulator::<Tile<f32>>([4], |a, b| a * b).at_most(g.n);
        all.add(g.x(), g.m);
        seen(all.scan(g.x(), g.n));
        seen(all.scan_masked(g.x(), g.whole().mask_of_all(), g.m));
        seen(all.finish());
    }),
    ("stores by atomics", |g| {
        seen(atomic_add(g.out + arange(g.n, g.m), g.x()))
    }),
    ("range", |g| {
        seen(range(g.i, 10).step(g.n as i64).stages(g.m))
    }),
];

/// Comparisons are those of the host where no body is rewritten.
trait Mask {
    fn mask_of_all(self) -> Tile<bool>;
}

impl Mask for Tile<i64> {
    fn mask_of_all(self) -> Tile<bool> {
        self.to::<bool>().reshape([4, 16])
    }
}

thread_local! {
    static KEPT: Cell<Option<Given>> = const { Cell::new(None) };
}

#[kernel]
fn hostile<const CASE: usize, const N: usize, const M: usize>(
    p: Ptr<f32>,
    out: PtrMut<f32>,
    t: Tensor<f32, 2>,
    i: i32,
) {
    let given = Given {
        n: N,
        m: M,
        p,
        out,
        t,
        i,
    };
    KEPT.set(Some(given));
    BODIES[CASE].1(given);
}

const NUMBERS: [usize; 10] = [
    0,
    1,
    2,
    3,
    16,
    64,
    1 << 24,
    (1 << 31) + 1,
    1 << 63,
    usize::MAX,
];

#[test]
fn any_number_ends_in_ir_or_in_an_error() {
    let (mut panicked, mut refused, mut taken) = (Vec::new(), 0, 0);
    for (case, (name, _)) in BODIES.iter().enumerate() {
        for (n, m) in NUMBERS.into_iter().flat_map(|n| NUMBERS.map(|m| (n, m))) {
            let kernel = hostile().case(case).n(n).m(m);
            match catch_unwind(AssertUnwindSafe(|| kernel.check())) {
                Ok(Ok(())) => taken += 1,
                Ok(Err(Error::Compile { diagnostics, .. })) => {
                    refused += 1;
                    let text = diagnostics.to_string();
                    if text.contains("panicked") || text.contains("computes something else") {
                        panicked.push(format!("{name} of {n} and {m}: {text}"));
                    }
                }
                Ok(Err(other)) => panicked.push(format!("{name} of {n} and {m}: {other}")),
                Err(_) => panicked.push(format!("{name} of {n} and {m} panics")),
            }
        }
    }
    assert!(panicked.is_empty(), "{}", panicked.join("\n"));
    assert!(refused > 1000 && taken > 1000, "{refused} {taken}");
}

/// Handles that were kept, or made where nothing is traced, are of no use and do no harm.
#[test]
fn outside_of_a_trace_nothing_happens() {
    let kernel = hostile().case(0).n(0).m(4);
    kernel.check().expect("is a kernel");
    let given = KEPT.get().expect("was traced here");
    let mut panicked = Vec::new();
    for (name, body) in BODIES {
        for (n, m) in [(0, 0), (1, 4), (usize::MAX, usize::MAX)] {
            let given = Given { n, m, ..given };
            if catch_unwind(AssertUnwindSafe(|| body(given))).is_err() {
                panicked.push(*name);
            }
        }
    }
    assert_eq!(panicked, [""; 0]);
}
