//! The promise for products of matrices and for attention, tried: problems drawn by a seed, each under settings that are drawn too, have
//! the bits of the CPU.

mod arrays;
mod attention;
mod data;
mod heads;
mod judge;
mod kernels;
mod layout;
mod report;
mod shapes;

use std::time::{Duration, Instant};

use exactile::internals::forget_code;
use exactile::{Device, Error, Result};
use exactile_core::random::Random;
use exactile_kernels::Setting;

use self::arrays::{Expected, Plan};
use self::data::Kind;
use self::kernels::{Product, products};
use self::layout::Layout;
use self::shapes::{Class, bounded, product};
use crate::bench::Sampling;
use crate::demo::Problem;

pub use self::judge::Tally;
pub use self::report::{Failure, Report};

/// Products that follow each other and share a kernel, its types and what else its code follows from, so that they share code.
const FAMILY: usize = 4;

/// The same of attention, whose code takes longer to compile and has more forms.
const FAMILY_OF_ATTENTION: usize = 10;

/// How far apart in their list kernels are that follow each other: it divides no number of them, so that each has its turn.
const TURN: usize = 11;

/// What to run.
#[derive(Clone, Debug)]
pub struct ProductsOptions {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the first problem.
    pub from: usize,
    /// How many problems.
    pub count: usize,
    /// Run only the problem with this number.
    pub only: Option<usize>,
    /// After how long no further problem begins, if it is not to run all.
    pub time: Option<Duration>,
    /// Settings of a kernel, the kernel's own choice among them.
    pub schedules: usize,
    /// The most multiply-adds of a problem.
    pub most: u64,
    /// Whether problems are of attention.
    pub attention: bool,
    /// What runs them.
    pub devices: Vec<Device>,
    /// Whether a number of each problem is another one than in the golden run: each of them is to fail.
    pub planted: bool,
}

impl Default for ProductsOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            from: 0,
            count: 200,
            only: None,
            time: None,
            schedules: 24,
            most: 1 << 20,
            attention: false,
            devices: Vec::new(),
            planted: false,
        }
    }
}

impl ProductsOptions {
    fn family(&self) -> usize {
        match self.attention {
            true => FAMILY_OF_ATTENTION,
            false => FAMILY,
        }
    }
}

/// Makes the arrays of a problem on a device.
type Setup = Box<dyn Fn(&Device) -> Result<Problem>>;

/// A problem that was drawn.
struct Drawn {
    title: String,
    /// The kernel and its types.
    kernel: String,
    /// What its settings follow from, beside the seed.
    family: String,
    /// Multiply-adds.
    work: u64,
    candidates: Vec<Setting>,
    /// What suits the interpreter.
    small: Setting,
    golden: Setup,
    setup: Setup,
    expected: Expected,
}

/// What a run says while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A problem begins.
    Begun(usize, &'a str),
    /// A problem is wrong.
    Failed(&'a Failure),
    /// A problem has ended.
    Ended,
}

/// Runs the problems in turn until the time is over.
///
/// # Errors
/// There is no device.
pub fn run(options: ProductsOptions, say: &mut dyn FnMut(Event<'_>)) -> Result<Report> {
    if options.devices.is_empty() {
        return Err(Error::Invalid(
            "no device is to run the problems".to_string(),
        ));
    }
    let start = Instant::now();
    let numbers = match options.only {
        Some(number) => number..number.saturating_add(1),
        None => options.from..options.from.saturating_add(options.count),
    };
    let mut report = Report::new(options);
    for number in numbers {
        let options = &report.options;
        if options.time.is_some_and(|time| start.elapsed() >= time) {
            break;
        }
        if number.is_multiple_of(options.family()) {
            // Code of families that have ended is of no more use.
            options.devices.iter().for_each(forget_code);
        }
        let drawn = draw(options, number);
        say(Event::Begun(number, &drawn.title));
        let failures = report.failures.len();
        run_one(&mut report, number, &drawn);
        for failure in &report.failures[failures..] {
            say(Event::Failed(failure));
        }
        report.problems += 1;
        report.seconds = start.elapsed().as_secs_f64();
        say(Event::Ended);
    }
    Ok(report)
}

/// One problem on all devices.
fn run_one(report: &mut Report, number: usize, drawn: &Drawn) {
    let golden = match judge::golden(drawn) {
        Ok(golden) => golden,
        Err(error) => return report.refuse(&error),
    };
    *report.kernels.entry(drawn.kernel.clone()).or_default() += 1;
    let sampling = Sampling {
        settings: report.options.schedules,
        seed: report.options.seed,
    };
    for device in report.options.devices.clone() {
        let tally = report.tallies.entry(device.to_string()).or_default();
        let wrong = judge::judge((drawn, &golden), &device, sampling, tally);
        let more = wrong.len().saturating_sub(1);
        if let Some(first) = wrong.into_iter().next() {
            report.fail(number, &drawn.title, (first, more));
        }
    }
}

/// The problem of a number.
fn draw(options: &ProductsOptions, number: usize) -> Drawn {
    let family = number / options.family();
    // Odd streams are those of families.
    let stream = |place: usize| Random::stream(options.seed, place as u64);
    let (of_family, of_one) = (stream(2 * family + 1), stream(2 * number));
    match options.attention {
        true => heads::draw(options, of_family, of_one),
        false => draw_product(options, family, of_family, of_one),
    }
}

/// A product: kernels have their turns, from one that follows from the seed.
fn draw_product(
    options: &ProductsOptions,
    family: usize,
    mut of_family: Random,
    mut of_one: Random,
) -> Drawn {
    let all = products();
    let first = Random::stream(options.seed, u64::MAX).below(all.len());
    let Product {
        name,
        types,
        takes_views,
        candidates,
        make,
    } = all[(first + family.wrapping_mul(TURN)) % all.len()];
    let classes = [(); 3].map(|()| Class::random(&mut of_family));
    let in_any_way = takes_views && of_family.one_in(2);
    let layouts = in_any_way.then(|| [(); 3].map(|()| Layout::random(&mut of_family)));
    let shape @ [m, n, k] = bounded(&mut of_one, classes, options.most);
    let kind = Kind::random(&mut of_one);
    let plan = Plan {
        shape,
        layouts,
        kind: match types.starts_with(['i', 'u']) {
            true => kind.of_integers(),
            false => kind,
        },
        seed: kernels::seed(&mut of_one),
        of_family,
        random: of_one,
        most: options.most,
        planted: options.planted,
    };
    let made = make(&plan);
    let ways = layouts.map(|it| it.map(Layout::name).join(", "));
    let ways = ways.unwrap_or_else(|| "as the launch has them".to_string());
    let notes = if made.note.is_empty() { "" } else { ", " };
    Drawn {
        title: format!(
            "{name} {types} {m}x{n}x{k}, {}, {ways}{notes}{}",
            plan.kind.name(),
            made.note
        ),
        kernel: format!("{name} {types}"),
        family: format!("{name} {types} {family}"),
        work: made.times.saturating_mul(product(&shape)),
        candidates: candidates(),
        small: Setting {
            block: 16,
            width: 16,
            ..Setting::default()
        },
        golden: made.golden,
        setup: made.setup,
        expected: made.expected,
    }
}
