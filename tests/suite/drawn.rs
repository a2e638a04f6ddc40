//! Products and attention of drawn shapes, types, layouts and settings.

use exactile::Device;
use exactile_harness::testing::products::{Event, ProductsOptions, Report, run};

/// Few and small, without a GPU.
fn few(attention: bool, count: usize) -> ProductsOptions {
    ProductsOptions {
        count,
        attention,
        schedules: 3,
        most: 8192,
        devices: vec![Device::interpreter(), Device::cpu(), Device::lanes()],
        ..ProductsOptions::default()
    }
}

fn ran(options: ProductsOptions) -> Report {
    let mut ended = 0;
    let report = run(options, &mut |event| {
        ended += usize::from(matches!(event, Event::Ended))
    });
    let report = report.expect("there are devices");
    assert_eq!(ended, report.problems, "{report}");
    report
}

#[test]
fn products_and_attention_have_the_bits_of_the_cpu() {
    for options in [few(false, 8), few(true, 4)] {
        let count = options.count;
        let report = ran(options);
        assert!(report.passed(), "{report}");
        assert_eq!(report.problems, count);
        for (device, tally) in &report.tallies {
            assert!(tally.compared > 0, "{device}: {report}");
            let wanted = 2 * (tally.settings - tally.refusals());
            assert_eq!(tally.compared, wanted, "{device}: {report}");
        }
    }
}

/// One number of a problem is another one than in the golden run: that is found, with what repeats it and the bits of what differs.
#[test]
fn planted_numbers_are_found() {
    for (attention, count) in [(false, 12), (true, 6)] {
        let report = ran(ProductsOptions {
            devices: vec![Device::cpu()],
            planted: true,
            ..few(attention, count)
        });
        // A number that meets zeros and NaN alone changes nothing.
        assert!(2 * report.failures.len() > count, "{report}");
        assert!(!report.passed());
        let option = if attention { " --attention" } else { "" };
        for failure in &report.failures {
            let again = format!("products{option} --seed 1 --only {}", failure.number);
            assert!(failure.again.contains(&again), "{failure}");
            let differs = ["differ in bits", "at [", "found ", "expected ", "0x"];
            assert!(
                differs.iter().all(|it| failure.message.contains(it)),
                "{failure}"
            );
        }
    }
}

/// A run that compares too little does not pass.
#[test]
fn runs_of_nothing_do_not_pass() {
    let options = ProductsOptions {
        count: 0,
        ..few(false, 0)
    };
    let report = ran(options);
    assert!(!report.passed() && report.failures.is_empty(), "{report}");
}

/// What a run draws follows from its seed and the number of a problem alone.
#[test]
fn numbers_repeat_their_problem() {
    let titles = |options: ProductsOptions| {
        let mut titles = Vec::new();
        let options = ProductsOptions {
            devices: vec![Device::cpu()],
            ..options
        };
        let heard = run(options, &mut |event| {
            if let Event::Begun(number, title) = event {
                titles.push((number, title.to_string()));
            }
        });
        heard.expect("there are devices");
        titles
    };
    let all = titles(few(false, 4));
    let alone = titles(ProductsOptions {
        only: Some(2),
        ..few(false, 4)
    });
    assert_eq!(alone, all[2..3]);
    let other = titles(ProductsOptions {
        seed: 2,
        ..few(false, 4)
    });
    assert_ne!(other, all);
}
