//! Rooflines: what kernels compute a second over what they compute for each byte that they must move.

use exactile::{Error, Result};

use super::axis::Scale;
use super::svg::Svg;
use super::title;
use crate::bench::{Report, Row};
use crate::cases::subjects::{Size, subjects};

/// What a machine can do at most.
#[derive(Clone, Copy, Debug)]
pub struct Roof {
    /// Gigabytes a second; what the best copy of the report reached when absent.
    pub bandwidth: Option<f64>,
    /// Teraflops a second; no line when absent.
    pub peak: Option<f64>,
}

/// Where the chart lies.
const AREA: [[f64; 2]; 2] = [[70.0, 60.0], [830.0, 480.0]];

/// Height of a line of the list below.
const LINE: f64 = 16.0;

/// A kernel.
struct Point<'a> {
    row: &'a Row,
    /// Operations for each byte.
    intensity: f64,
    /// Gigaflops a second.
    rate: f64,
}

/// The operations that a row's result needs, as the cases of the benchmark count them.
fn flops_of(row: &Row) -> Option<u64> {
    let sizes = [Size::Gpu, Size::Cpu, Size::Quick];
    let mut all = sizes.into_iter().flat_map(subjects);
    let found = all.find(|subject| {
        let case = &subject.case;
        (case.kernel, case.dtype.name(), &case.shape)
            == (row.kernel.as_str(), row.dtype.as_str(), &row.shape)
    });
    found
        .map(|subject| subject.case.flops)
        .filter(|&flops| flops > 0)
}

fn point(row: &Row) -> Option<Point<'_>> {
    let flops = flops_of(row)? as f64;
    let is_timed = row.ms > 0.0 && row.bytes > 0;
    is_timed.then(|| Point {
        row,
        intensity: flops / row.bytes as f64,
        rate: flops / row.ms / 1e6,
    })
}

/// The exact rows of a report under the roof of their machine.
///
/// # Errors
/// No row has a number of operations, or the roof is none.
pub fn roofline(report: &Report, roof: Roof) -> Result<String> {
    let exact = report.rows.iter().filter(|row| row.determinism == "exact");
    let points: Vec<Point<'_>> = exact.filter_map(point).collect();
    if points.is_empty() {
        return Err(Error::Invalid(
            "no row of the report is of a case of the benchmark that computes".to_string(),
        ));
    }
    let copies = points.iter().flat_map(|point| point.row.copy_gb_s.values());
    let bandwidth = roof.bandwidth;
    let bandwidth = bandwidth.unwrap_or_else(|| copies.copied().fold(0.0, f64::max));
    let peak = roof.peak.map(|peak| peak * 1e3);
    let is_number = |number: f64| number.is_finite() && number > 0.0;
    if !is_number(bandwidth) || !peak.is_none_or(is_number) {
        return Err(Error::Invalid(
            "a roof of numbers above zero is needed: `--bandwidth`, `--peak`".to_string(),
        ));
    }
    let [[left, top], [right, bottom]] = AREA;
    let mut intensities: Vec<f64> = points.iter().map(|point| point.intensity).collect();
    intensities.extend(peak.map(|peak| 2.0 * peak / bandwidth));
    let x = Scale::of(10.0, &intensities, [left, right]);
    let under = |intensity: f64| {
        peak.map_or(f64::INFINITY, |it| it)
            .min(bandwidth * intensity)
    };
    let mut rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
    rates.extend([under(x.first()), under(x.last())]);
    let y = Scale::of(10.0, &rates, [bottom, top]);
    let mut svg = Svg::new(&format!(
        "Roofline of {}, commit {}",
        report.device,
        report.commit.get(..10).unwrap_or(&report.commit)
    ));
    axes(&mut svg, &x, &y);
    let bend = peak.map_or(x.last(), |peak| peak / bandwidth);
    let bend = bend.clamp(x.first(), x.last());
    let mut last = [left, y.place(under(x.first()))];
    for end in [bend, x.last()] {
        let next = [x.place(end), y.place(under(end))];
        svg.line("roof", last, next);
        last = next;
    }
    svg.text(
        "small",
        [left + 8.0, top + 14.0],
        format!("memory: {bandwidth:.0} GB/s"),
    );
    list(&mut svg, &points, (&x, &y), &under);
    let height = bottom + 60.0 + LINE * points.len() as f64;
    Ok(svg.finish([right + 40.0, height]))
}

fn axes(svg: &mut Svg, x: &Scale, y: &Scale) {
    let [[left, top], [right, bottom]] = AREA;
    for mark in x.marks() {
        let at = x.place(mark);
        svg.line("grid", [at, top], [at, bottom]);
        svg.text("small middle", [at, bottom + 16.0], mark);
    }
    for mark in y.marks() {
        let at = y.place(mark);
        svg.line("grid", [left, at], [right, at]);
        svg.text("small end", [left - 6.0, at + 4.0], mark);
    }
    svg.line("axis", [left, bottom], [right, bottom]);
    svg.line("axis", [left, top], [left, bottom]);
    svg.text(
        "small middle",
        [(left + right) / 2.0, bottom + 32.0],
        "operations for each byte",
    );
    svg.text("small", [12.0, top - 12.0], "gigaflops a second");
}

/// The kernels as numbered dots, and what they are below.
fn list(
    svg: &mut Svg,
    points: &[Point<'_>],
    (x, y): (&Scale, &Scale),
    under: &impl Fn(f64) -> f64,
) {
    let [[left, _], [_, bottom]] = AREA;
    for (index, point) in points.iter().enumerate() {
        let share = point.rate / under(point.intensity) * 100.0;
        let about = format!(
            "{} {}: {:.2} operations a byte, {:.0} Gflop/s, {share:.0} % of the roof",
            index + 1,
            title(point.row),
            point.intensity,
            point.rate
        );
        let place = [x.place(point.intensity), y.place(point.rate)];
        svg.dot("exact", place, &about);
        svg.text("small", [place[0] + 6.0, place[1] + 4.0], index + 1);
        let line = bottom + 56.0 + LINE * index as f64;
        svg.text("small", [left, line], about);
    }
}
