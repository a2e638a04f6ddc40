//! What a search measured: the time of each configuration, beside the peers.

use exactile::{Error, Result};
use serde_json::Value;

use super::svg::Svg;
use super::title;
use crate::bench::{Report, Row};

const LEFT: f64 = 330.0;
const WIDTH: f64 = 480.0;
const BAR: f64 = 13.0;

/// What a configuration says, of those fields that it does not leave to the compiler.
fn words(config: &Value) -> String {
    let Some(fields) = config.as_object() else {
        return config.to_string();
    };
    let said = fields.iter().filter(|(_, value)| **value != 0);
    let words: Vec<String> = said
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    match words.is_empty() {
        true => "default".to_string(),
        false => words.join(", "),
    }
}

/// The searches of a report for exact rows whose titles hold `wanted`.
///
/// # Errors
/// There is no such row, or its report keeps no times of its search.
pub fn tuning(report: &Report, wanted: &str) -> Result<String> {
    let exact = report.rows.iter().filter(|row| row.determinism == "exact");
    let rows: Vec<&Row> = exact.filter(|row| title(row).contains(wanted)).collect();
    if rows.is_empty() {
        let titles: Vec<String> = report.rows.iter().map(title).collect();
        return Err(Error::Invalid(format!(
            "no row of the report has `{wanted}` in its title, found {titles:?}"
        )));
    }
    if let Some(row) = rows.iter().find(|row| row.trials.is_empty()) {
        return Err(Error::Invalid(format!(
            "{}: the report keeps no times of its search: measure it anew",
            title(row)
        )));
    }
    let mut svg = Svg::new(&format!(
        "Searches on {}, commit {}",
        report.device,
        report.commit.get(..10).unwrap_or(&report.commit)
    ));
    let mut y = 56.0;
    for row in rows {
        y = search(&mut svg, row, y) + 24.0;
    }
    Ok(svg.finish([LEFT + WIDTH + 90.0, y]))
}

/// One search; where it ends.
fn search(svg: &mut Svg, row: &Row, top: f64) -> f64 {
    let peers = row.peers.values().map(|peer| peer.ms);
    let times = row.trials.iter().map(|trial| trial.ms);
    let most = times.chain(peers).fold(0.0, f64::max);
    let scale = WIDTH / if most > 0.0 { most } else { 1.0 };
    svg.text("small", [12.0, top], title(row));
    let best = row.trials[0].ms;
    let mut y = top + 8.0;
    let first = y;
    for trial in &row.trials {
        let label = words(&trial.config);
        svg.text("small end", [LEFT - 6.0, y + BAR - 3.0], &label);
        let class = if trial.config == row.config {
            "exact"
        } else {
            "rest"
        };
        let times = trial.ms / best;
        let length = trial.ms * scale;
        let about = format!("{label}: {:.4} ms, {times:.2} times the best", trial.ms);
        svg.bar(class, [LEFT, y], [length, BAR - 2.0], &about);
        let text = format!("{:.4} ms", trial.ms);
        svg.text("small", [LEFT + length + 4.0, y + BAR - 3.0], text);
        y += BAR;
    }
    for (index, (name, peer)) in row.peers.iter().enumerate() {
        let x = LEFT + peer.ms * scale;
        svg.line("mark", [x, first], [x, y + 4.0]);
        let line = y + 16.0 + 12.0 * index as f64;
        svg.text(
            "small middle",
            [x, line],
            format!("{name} {:.4} ms", peer.ms),
        );
    }
    y + 16.0 + 12.0 * row.peers.len() as f64
}
