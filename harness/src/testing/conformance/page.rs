//! The page `docs/conformance.md`.

use std::fmt::Write;

use super::held::{HELD, Held};
use super::report::{OnGpu, Report};
use super::{CHECKS, Outcome, sections};

/// The page; its column of a GPU is of this report, where there is one.
#[must_use]
pub fn page(report: Option<&Report>) -> String {
    let mut page = INTRODUCTION.to_string();
    let _ = writeln!(page, "{}\n\n{}", recorded(report), counted());
    let _ = writeln!(
        page,
        "\n## Checks\n\n| check | types | beside plain Rust | on a GPU |\n|---|---|---|---|"
    );
    for check in CHECKS {
        let (name, types, judged) = (check.name, check.types, check.judged);
        let gpu = on_gpu(name, report);
        let _ = writeln!(page, "| {name} | {types} | {judged} | {gpu} |");
    }
    for (title, cases) in sections() {
        let _ = writeln!(page, "\n## {title}\n\n{HEAD}");
        for (case, outcome) in *cases {
            let cells = outcome.cells(report).map(|cell| escaped(&cell)).join(" | ");
            let _ = writeln!(page, "| {} | {cells} |", escaped(case));
        }
    }
    page
}

/// A text as a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Which run on a GPU the page tells.
fn recorded(report: Option<&Report>) -> String {
    match report.and_then(|report| report.gpu().zip(Some(&report.commit))) {
        Some((gpu, commit)) => format!(
            "The column of a GPU is of `exactile selftest conformance` on an {gpu}, built from commit {commit}: \
             `benches/results/gpu-conformance.json` has the cases one by one."
        ),
        None => {
            "No run on a GPU is recorded in `benches/results/gpu-conformance.json`.".to_string()
        }
    }
}

/// How many rows have each outcome.
fn counted() -> String {
    let count = |of: fn(&Outcome) -> bool| {
        let all = sections().flat_map(|(_, cases)| cases.iter());
        all.filter(|(_, outcome)| of(outcome)).count()
    };
    let runs = count(|outcome| matches!(outcome.whole(), Outcome::Runs(_)));
    let elsewhere = count(|outcome| matches!(outcome.whole(), Outcome::Elsewhere(_)));
    let pointless = count(|outcome| matches!(outcome.whole(), Outcome::Pointless(_)));
    let parts = count(|outcome| matches!(outcome, Outcome::Partly(..)));
    format!(
        "{} names in {} rows: {runs} rows run, {elsewhere} are held by other tests, and {parts} of these say what they \
         leave out; {pointless} have no meaning here.",
        super::names().len(),
        runs + elsewhere + pointless
    )
}

/// Whether a check held on a GPU.
fn on_gpu(name: &str, report: Option<&Report>) -> &'static str {
    match report.map_or(OnGpu::NotYetRun, |report| report.on_gpu(name)) {
        OnGpu::Held => "yes",
        OnGpu::Failed => "FAILED",
        OnGpu::NotYetRun => "not yet run",
    }
}

const HEAD: &str = "\
| case | types | interpreter | CPU | code of a GPU | on a GPU | judged | here |
|---|---|---|---|---|---|---|---|";

impl Outcome {
    /// What a row says behind the case: the types, where it runs, how it is judged, and what became of it.
    fn cells(&self, report: Option<&Report>) -> [String; 7] {
        let (cells, here) = match *self.whole() {
            Self::Runs(name) => {
                let check = CHECKS.iter().find(|check| check.name == name);
                let gpu = on_gpu(name, report);
                let cells =
                    check.map(|check| [check.types, "yes", "yes", "lanes", gpu, check.judged]);
                (cells, format!("runs: {name}"))
            }
            Self::Elsewhere(path) => {
                let held = HELD.iter().find(|held| held.test == path);
                (held.map(Held::cells), format!("held by `{path}`"))
            }
            Self::Pointless(why) => (None, format!("no meaning here: {why}")),
            Self::Partly(..) => (None, String::new()),
        };
        let here = match self {
            Self::Partly(_, left_out) => format!("{here}, but for {left_out}"),
            Self::Runs(_) | Self::Elsewhere(_) | Self::Pointless(_) => here,
        };
        let [types, interpreter, cpu, code, gpu, judged] =
            cells.unwrap_or([""; 6]).map(ToString::to_string);
        [types, interpreter, cpu, code, gpu, judged, here]
    }
}

const INTRODUCTION: &str = "\
# Conformance

Written from the tables of `harness/src/testing/conformance` by `BLESS=1 cargo test --test suite conformance`; do not
edit.

The cases are those of Triton's test suite that run kernels, look at code or tell what a host does, by the names that
they have there: `names.txt` beside the tables lists them all, and a test matches the list with the rows both ways. A row
without a file is of `test_core`; a name with `*` stands for all that begin so. Cases that a compiler only has to accept or
refuse, those of other machines and those of Python alone are left out.

Each check runs its cases on the block interpreter, on the CPU, and as the code of a GPU under
the interpreter of lanes by two schedules, with two tile sizes where a case has one, and on a GPU by `exactile selftest
conformance` where there is one. All must give the same bits, and these are judged beside plain Rust. The inputs of
elementwise cases, moves and sorts hold zeros of both signs, subnormal numbers, infinities, NaN and extreme integers,
where their type has such; their lengths are no multiples of tiles where there is a tail to test.

In the columns of a row, *yes* is where the case runs; of the code of a GPU, *lanes* is what the interpreter of lanes
runs, *assembled* what is made and looked at, and *layouts* what code is made of. *With the filetests* is what `exactile
selftest filetests` runs on a GPU. A product by a function that a machine
refuses is left out there. *Bits* are those that plain Rust expects; a tolerance is one beside plain Rust, while all
devices still agree in bits. Rows about tools have no columns. *But for* is followed by what a row leaves out of its
cases.

";
