//! Loops over ranges that reach the ends of their types, each beside the same range of plain Rust.

use exactile::prelude::*;

use super::language::{devices, upload};

/// How many indices there are up to five, and the sum of each times its place.
macro_rules! loops {
    ($($name:ident($start:ident: $Start:ty, $end:ident: $End:ty) $range:expr;)*) => { $(
        #[kernel]
        fn $name(out: PtrMut<i64>, $start: $Start, $end: $End) {
            let mut count = scalar::<i64>(0);
            let mut sum = scalar::<i64>(0);
            for i in $range {
                count += 1;
                sum += i * count;
                if count == 5 {
                    break;
                }
            }
            store(out, count);
            store(out + 1, sum);
        }
    )* };
}

loops! {
    through_i64(a: i64, b: i64) a..=b;
    through_u64(a: u64, b: u64) a..=b;
    over_u64(a: u64, b: u64) a..b;
    mixed(a: i64, b: u64) a..b;
    mixed_through(a: i64, b: u64) a..=b;
    reversed(a: u64, b: i64) a..b;
    from_zero(_a: i64, b: u64) 0..=b;
    to_the_greatest(a: u64, _b: u64) a..=u64::MAX;
    to_the_greatest_signed(a: i64, _b: i64) a..=i64::MAX;
    by_steps(a: u64, b: u64) range(a, b).step(3);
    downwards(a: u64, b: u64) range(a, b).step(-3);
}

fn first_five(indices: impl Iterator<Item = i128>) -> [i64; 2] {
    let (mut count, mut sum) = (0i64, 0i64);
    for i in indices.take(5) {
        count += 1;
        sum = sum.wrapping_add((i as i64).wrapping_mul(count));
    }
    [count, sum]
}

fn steps(from: i128, to: i128, step: i128) -> impl Iterator<Item = i128> {
    let inside = move |i: &i128| if step > 0 { *i < to } else { *i > to };
    std::iter::successors(Some(from), move |i| Some(i + step)).take_while(inside)
}

const SIGNED: [i64; 8] = [
    i64::MIN,
    i64::MIN + 1,
    -2,
    0,
    3,
    i64::MAX - 2,
    i64::MAX - 1,
    i64::MAX,
];
const UNSIGNED: [u64; 8] = [
    0,
    2,
    i64::MAX as u64 - 1,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    i64::MAX as u64 + 3,
    u64::MAX - 2,
    u64::MAX,
];

#[test]
fn ranges_reach_the_ends_of_their_types() {
    for device in devices() {
        macro_rules! check {
            ($kernel:ident, $from:expr, $to:expr, $want:expr) => {
                for a in $from {
                    for b in $to {
                        let mut out = upload(&device, &[-7i64; 2]);
                        $kernel().run(&device, 1, (&mut out, a, b)).expect("runs");
                        let want: fn(i128, i128) -> [i64; 2] = $want;
                        let got = out.to_vec().expect("reads");
                        let want = want(i128::from(a), i128::from(b));
                        assert_eq!(got, want, "{device} {} {a} {b}", stringify!($kernel));
                    }
                }
            };
        }
        check!(through_i64, SIGNED, SIGNED, |a, b| first_five(a..=b));
        check!(through_u64, UNSIGNED, UNSIGNED, |a, b| first_five(a..=b));
        check!(over_u64, UNSIGNED, UNSIGNED, |a, b| first_five(a..b));
        check!(mixed, SIGNED, UNSIGNED, |a, b| first_five(a..b));
        check!(mixed_through, SIGNED, UNSIGNED, |a, b| first_five(a..=b));
        check!(reversed, UNSIGNED, SIGNED, |a, b| first_five(a..b));
        check!(from_zero, [0i64], UNSIGNED, |_, b| first_five(0..=b));
        check!(to_the_greatest, UNSIGNED, [0u64], |a, _| first_five(
            a..=i128::from(u64::MAX)
        ));
        check!(to_the_greatest_signed, SIGNED, [0i64], |a, _| {
            first_five(a..=i128::from(i64::MAX))
        });
        check!(by_steps, UNSIGNED, UNSIGNED, |a, b| first_five(steps(
            a, b, 3
        )));
        check!(downwards, UNSIGNED, UNSIGNED, |a, b| first_five(steps(
            a, b, -3
        )));
    }
}

/// Without a way out the loop counts too.
#[kernel]
fn whole(out: PtrMut<i64>, a: i64, b: i64, c: u64) {
    let mut count = scalar::<i64>(0);
    for _ in a..=b {
        count += 1;
    }
    for i in c..=c + 3 {
        count += (i.to::<u64>() - c).to::<i64>() * 10;
    }
    store(out, count);
}

#[test]
fn no_iteration_is_lost_at_the_greatest_number() {
    for device in devices() {
        let mut out = upload(&device, &[0i64]);
        let ends = (i64::MAX - 2, i64::MAX, u64::MAX - 3);
        whole()
            .run(&device, 1, (&mut out, ends.0, ends.1, ends.2))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), [63], "{device}");
    }
}
