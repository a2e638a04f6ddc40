//! Bessel functions of any order, beside values of mpmath 1.3 with 60 digits.

use exactile::prelude::*;

use crate::language::{devices, upload};

/// Orders, arguments, and the functions of the first and the second kind there.
#[rustfmt::skip]
#[expect(clippy::unreadable_literal, reason = "as they were printed")]
const VALUES: [(i32, f64, f64, f64); 64] = [
    (0, 0.0010000000474974513, 0.9999997499999919, -4.471416581137993),
    (0, 0.5, 0.9384698072408129, -0.44451873350670656),
    (0, 2.4000000953674316, 0.0025076336885117836, 0.5104147390823697),
    (0, 5.0, -0.1775967713143383, -0.30851762524903376),
    (0, 9.899999618530273, -0.24034107945372105, 0.08037739850551648),
    (0, 10.0, -0.24593576445134835, 0.055671167283599395),
    (0, 31.5, 0.10823892671147262, -0.09215174743370735),
    (0, 1000.0, 0.024786686152420176, 0.0047159179776228135),
    (1, 0.0010000000474974513, 0.0004999999612487194, -636.6221369934228),
    (1, 0.5, 0.2422684576748739, -1.471472392670243),
    (1, 2.4000000953674316, 0.5201852477507753, 0.10048898301495521),
    (1, 5.0, -0.32757913759146523, 0.14786314339122683),
    (1, 9.899999618530273, 0.06836992660099142, 0.24469239002823334),
    (1, 10.0, 0.04347274616886144, 0.24901542420695388),
    (1, 31.5, -0.09044569145442247, -0.109714899705293),
    (1, 1000.0, 0.004728311907089524, -0.024784331292351778),
    (2, 0.0010000000474974513, 1.2500000145769478e-07, -1273239.7420944097),
    (2, 0.5, 0.03060402345868264, -5.441370837174266),
    (2, 2.4000000953674316, 0.43098005554521457, -0.4266739232308014),
    (2, 5.0, 0.046565116277752214, 0.36766288260552454),
    (2, 9.899999618530273, 0.2541531863699719, -0.03094459053444714),
    (2, 10.0, 0.2546303136851206, -0.0058680824422086145),
    (2, 31.5, -0.1139815102958804, 0.08518572205559352),
    (2, 1000.0, -0.024777229528605997, -0.0047654866402075165),
    (3, 0.0010000000474974513, 2.083333499984057e-11, -5092958089.852942),
    (3, 0.5, 0.002563729994587244, -42.059494304723884),
    (3, 2.4000000953674316, 0.19811481628190208, -0.811612160142128),
    (3, 5.0, 0.364831230613667, 0.14626716269319276),
    (3, 9.899999618530273, 0.03431823346489867, -0.25719525537240034),
    (3, 10.0, 0.058379379305186815, -0.2513626571838373),
    (3, 31.5, 0.07597184887716782, 0.12053213425203503),
    (3, 1000.0, -0.0048274208252039475, 0.024765269345790947),
    (5, 0.0010000000474974513, 2.6041671766161443e-19, -2.4446194981142454e+17),
    (5, 0.5, 8.053627241357474e-06, -7946.301478807473),
    (5, 2.4000000953674316, 0.01624172679567655, -4.529575615945131),
    (5, 5.0, 0.26114054612017007, -0.4536948224911019),
    (5, 9.899999618530273, -0.2228873366467581, 0.1562406431440285),
    (5, 10.0, -0.23406152818679363, 0.13540304768936232),
    (5, 31.5, -0.04334903271121577, -0.13633587273922262),
    (5, 1000.0, 0.0050254069452331865, -0.02472595671974069),
    (10, 0.0010000000474974513, 2.6911456725302644e-40, -1.1828043759969921e+38),
    (10, 0.5, 2.6131773608228033e-13, -121963623349.56963),
    (10, 2.4000000953674316, 1.4958297019666715e-06, -21928.29204381323),
    (10, 5.0, 0.0014678026473104741, -25.1291100956101),
    (10, 9.899999618530273, 0.19901349165903298, -0.3759588856421931),
    (10, 10.0, 0.20748610663335887, -0.35981415218340274),
    (10, 31.5, -0.09133361987222018, -0.11386673906627881),
    (10, 1000.0, -0.02452062230603656, -0.005949000574162668),
    (30, 0.0010000000474974513, 3.5110795594384405e-132, -3.021956456907482e+129),
    (30, 0.5, 3.263356828913978e-51, -3.2518065601447755e+48),
    (30, 2.4000000953674316, 8.542588244208102e-31, -1.2460491869982913e+28),
    (30, 5.0, 2.671177278250799e-21, -4.0285684185540874e+18),
    (30, 9.899999618530273, 1.1663976513429316e-12, -9637342148.151894),
    (30, 10.0, 1.551096078257467e-12, -7256142316.10033),
    (30, 31.5, 0.1986274751984446, -0.13218591473275468),
    (30, 1000.0, -0.020271896981075847, -0.015031851431420546),
    (100, 0.0010000000474974513, 0.0, -f64::INFINITY),
    (100, 0.5, 6.663899904277085e-219, -4.776690378041764e+215),
    (100, 2.4000000953674316, 8.748434027559811e-151, -3.639526882699202e+147),
    (100, 5.0, 6.267789395541876e-119, -5.084863916020223e+115),
    (100, 9.899999618530273, 2.426774776231788e-89, -1.31813421416727e+86),
    (100, 10.0, 6.597316064155382e-89, -4.849148271180607e+85),
    (100, 31.5, 4.7657088675411835e-40, -7.03748494614177e+36),
    (100, 1000.0, 0.011676135007802554, -0.022438688257723275),
];

#[kernel(BLOCK = 64)]
fn of_orders<const BLOCK: usize>(n: Ptr<i32>, x: Ptr<f32>, j: PtrMut<f32>, y: PtrMut<f32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let (n, x) = (load(n + at), load(x + at));
    store(j + at, bessel_jn(n, x));
    store(y + at, bessel_yn(n, x));
}

/// How many numbers lie between two of one sign.
fn apart(a: f32, b: f32) -> u32 {
    a.to_bits().abs_diff(b.to_bits())
}

/// An order has the same bits whatever other orders are in its tile.
#[test]
fn orders_have_their_values_in_any_tile() {
    let orders: Vec<i32> = VALUES.iter().map(|row| row.0).collect();
    let arguments: Vec<f32> = VALUES.iter().map(|row| row.1 as f32).collect();
    let mut golden: Option<[Vec<f32>; 2]> = None;
    for device in devices() {
        for block in [64, 4] {
            let (n, x) = (upload(&device, &orders), upload(&device, &arguments));
            let mut outputs = [(); 2].map(|()| upload(&device, &[0.0f32; 64]));
            let [j, y] = &mut outputs;
            of_orders()
                .block(block)
                .run(&device, 64 / block, (&n, &x, j, y))
                .expect("runs");
            let found = outputs.map(|it| it.to_vec().expect("reads"));
            for (at, &(n, x, first, second)) in VALUES.iter().enumerate() {
                for (found, want) in [(found[0][at], first), (found[1][at], second)] {
                    let distance = apart(found, want as f32);
                    assert!(
                        distance <= 1,
                        "{n} {x}: {found:e}, not {want:e}, on {device}"
                    );
                }
            }
            let golden = golden.get_or_insert_with(|| found.clone());
            for (found, golden) in found.iter().zip(golden) {
                exactile::assert_bits_equal(found, golden);
            }
        }
    }
}

#[test]
fn orders_and_arguments_at_the_ends() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let cases = [
        (-1, 1.0, NAN, NAN),
        (40_000, 1.0, NAN, NAN),
        (0, 0.0, 1.0, -INF),
        (3, 0.0, 0.0, -INF),
        (3, -0.0, -0.0, -INF),
        (2, INF, 0.0, 0.0),
        (2, NAN, NAN, NAN),
        (2, f32::from_bits(1), 0.0, -INF),
    ];
    let orders = cases.map(|it| it.0);
    let arguments = cases.map(|it| it.1);
    for device in devices() {
        let (n, x) = (upload(&device, &orders), upload(&device, &arguments));
        let mut j = upload(&device, &[0.0f32; 8]);
        let mut y = upload(&device, &[0.0f32; 8]);
        of_orders()
            .block(8)
            .run(&device, 1, (&n, &x, &mut j, &mut y))
            .expect("runs");
        let (j, y) = (j.to_vec().expect("reads"), y.to_vec().expect("reads"));
        for (at, case) in cases.into_iter().enumerate() {
            for (found, want) in [(j[at], case.2), (y[at], case.3)] {
                let alike = found.is_nan() && want.is_nan() || found.to_bits() == want.to_bits();
                assert!(alike, "{case:?}: {found} on {device}");
            }
        }
    }
}

/// A negative argument changes the sign of odd orders, and the host may state the order.
#[kernel]
fn mirrored(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 8);
    let x = load(x + at);
    store(out + at, bessel_jn(3, -x) + bessel_jn(3, x));
    store(out + 8 + at, bessel_jn(4, -x) - bessel_jn(4, x));
    store(
        out + 16,
        bessel_jn(1, scalar::<f32>(2.0)) - bessel_j1(scalar::<f32>(2.0)),
    );
}

#[test]
fn odd_orders_are_odd() {
    for device in devices() {
        let x = upload(&device, &[0.1f32, 1.0, 2.9, 3.1, 4.0, 8.0, 20.0, 1e6]);
        let mut out = upload(&device, &[1.0f32; 17]);
        mirrored().run(&device, 1, (&x, &mut out)).expect("runs");
        assert_eq!(out.to_vec().expect("reads"), [0.0; 17], "{device}");
    }
}
