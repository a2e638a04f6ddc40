//! Kernels over sizes: gigabytes a second, beside the best peer.

use std::collections::BTreeMap;

use exactile::{Error, Result};

use super::axis::Scale;
use super::svg::Svg;
use super::title;
use crate::bench::{Report, Row};

/// Width and height of the chart of a kernel.
const PANEL: [f64; 2] = [760.0, 300.0];

/// From the left edge, and from the top of the first chart to its title.
const MARGIN: [f64; 2] = [70.0, 60.0];

/// Between two charts.
const GAP: f64 = 80.0;

/// The exact rows of each kernel and type that has several sizes, a chart for each.
///
/// # Errors
/// No kernel of the report has several sizes.
pub fn sizes(report: &Report) -> Result<String> {
    let mut kernels: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in report.rows.iter().filter(|row| row.determinism == "exact") {
        let name = format!("{} {}", row.kernel, row.dtype);
        kernels.entry(name).or_default().push(row);
    }
    kernels.retain(|_, rows| rows.len() > 1);
    if kernels.is_empty() {
        return Err(Error::Invalid(
            "no kernel of the report has several sizes: `exactile bench --sizes` measures them"
                .to_string(),
        ));
    }
    let mut svg = Svg::new(&format!(
        "Sizes on {}, commit {}",
        report.device,
        report.commit.get(..10).unwrap_or(&report.commit)
    ));
    let [left, mut top] = MARGIN;
    for (name, rows) in &mut kernels {
        rows.sort_by_key(|row| elements(row));
        panel(&mut svg, name, rows, [left, top]);
        top += PANEL[1] + GAP;
    }
    Ok(svg.finish([left + PANEL[0] + 40.0, top]))
}

fn elements(row: &Row) -> usize {
    row.shape.iter().product()
}

fn panel(svg: &mut Svg, name: &str, rows: &[&Row], [left, top]: [f64; 2]) {
    let (right, bottom) = (left + PANEL[0], top + PANEL[1]);
    let numbers: Vec<f64> = rows.iter().map(|row| elements(row) as f64).collect();
    let x = Scale::of(2.0, &numbers, [left, right]);
    let peers = rows.iter().filter_map(|row| row.peer_gb_s);
    let rates: Vec<f64> = rows.iter().map(|row| row.gb_s).chain(peers).collect();
    let y = Scale::of(10.0, &rates, [bottom, top]);
    for mark in x.marks() {
        svg.line("grid", [x.place(mark), top], [x.place(mark), bottom]);
        let power = mark.log2().round();
        svg.text(
            "small middle",
            [x.place(mark), bottom + 16.0],
            format!("2^{power}"),
        );
    }
    for mark in y.marks() {
        svg.line("grid", [left, y.place(mark)], [right, y.place(mark)]);
        svg.text("small end", [left - 6.0, y.place(mark) + 4.0], mark);
    }
    svg.line("axis", [left, bottom], [right, bottom]);
    svg.line("axis", [left, top], [left, bottom]);
    svg.text(
        "small",
        [left, top - 10.0],
        format!("{name}: GB/s over elements, blue beside the best peer"),
    );
    let rate = |row: &Row| Some(row.gb_s);
    for (class, rate) in [
        (
            "peer",
            &(|row: &Row| row.peer_gb_s) as &dyn Fn(&Row) -> Option<f64>,
        ),
        ("exact", &rate),
    ] {
        for row in rows {
            let Some(rate) = rate(row) else { continue };
            let peer = row.peer.as_deref().unwrap_or("no peer");
            let name = title(row);
            let about = match (class, row.ratio_to_best_peer) {
                ("peer", _) => format!("{peer}, {name}: {rate:.0} GB/s"),
                (_, Some(ratio)) => format!("{name}: {rate:.0} GB/s, {ratio:.2} of {peer}"),
                (_, None) => format!("{name}: {rate:.0} GB/s"),
            };
            svg.dot(
                class,
                [x.place(elements(row) as f64), y.place(rate)],
                &about,
            );
        }
    }
}
