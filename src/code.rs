//! What a device executes, and the places that its errors name.

use std::collections::BTreeMap;
use std::sync::Arc;

use exactile_core::diagnostic::Loc;
use exactile_core::ir::{Axis, DType, Func, Op, op, quote, unquote};
use exactile_core::launch::printed::Prints;
use exactile_core::target::{Bounds, Schedule};
use exactile_core::verify::{BlockFunc, LaneFunc};

use crate::cuda::GpuCode;

/// A space in a quoted text that is one word.
const SPACE: &str = "\\u{20}";

/// A kernel as a launch runs it.
#[derive(Clone)]
pub(crate) struct Code {
    /// What it prints.
    pub(crate) prints: Arc<Prints>,
    /// What the kernel says of its schedule.
    pub(crate) schedule: Schedule,
    /// Whether accesses are checked.
    pub(crate) bounds: Bounds,
    /// Whether launches that differ in the addresses of their memory alone may need other code.
    pub(crate) asks_addresses: bool,
    /// The kernel's name.
    pub(crate) name: Arc<str>,
    pub(crate) sites: Arc<Sites>,
    pub(crate) runs: Arc<Runs>,
}

/// What a device executes.
pub(crate) enum Runs {
    /// Block IR as it was traced.
    Interpreter(BlockFunc),
    /// Lane IR, for the interpreter of thread blocks.
    Lanes(LaneFunc),
    /// Machine code for this computer's processor.
    Cpu(exactile_cranelift::Executable),
    /// A kernel that a GPU has loaded.
    Gpu(GpuCode),
}

impl Code {
    /// Code that prints nothing, of a kernel that leaves its schedule to the compiler.
    pub(crate) fn new(name: Arc<str>, sites: Arc<Sites>, runs: Arc<Runs>) -> Self {
        Self {
            prints: Arc::default(),
            schedule: Schedule::AUTO,
            bounds: Bounds::Checked,
            asks_addresses: false,
            name,
            sites,
            runs,
        }
    }
}

/// What a checked access can miss, or what is asserted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Accessed {
    /// The elements of this type behind a parameter, by its position and name.
    Memory {
        parameter: usize,
        dtype: DType,
        name: String,
    },
    /// An axis of a tile, of this extent.
    Axis(Axis, i64),
    /// Nothing: an assertion with this message.
    Assertion(String),
}

/// The checked accesses and assertions of a function by their numbers: where each stands in the source, and what
/// it accesses.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Sites(BTreeMap<u64, (Loc, Accessed)>);

impl Sites {
    /// Those of lane IR.
    pub(crate) fn of(func: &Func) -> Self {
        let mut sites = BTreeMap::new();
        for inst in func.all_insts() {
            let data = func.inst(inst);
            let found = if let Op::CheckBounds(op::CheckBounds { base, site, .. })
            | Op::StopOutside(op::StopOutside { base, site, .. }) = data.op
            {
                let memory = func.parameter_index(base).zip(func.ty(base).pointee());
                memory.map(|(parameter, (dtype, _))| {
                    let name = func.parameters[parameter].name.clone();
                    let accessed = Accessed::Memory {
                        parameter,
                        dtype,
                        name,
                    };
                    (site, accessed)
                })
            } else if let Op::CheckIndex(op::CheckIndex {
                axis, extent, site, ..
            })
            | Op::StopIndex(op::StopIndex {
                axis, extent, site, ..
            }) = data.op
            {
                Some((site, Accessed::Axis(axis, extent)))
            } else if let Op::CheckAssertion(op::CheckAssertion {
                ref message, site, ..
            })
            | Op::StopAssertion(op::StopAssertion {
                ref message, site, ..
            }) = data.op
            {
                Some((site, Accessed::Assertion(message.clone())))
            } else {
                None
            };
            if let Some((site, accessed)) = found
                && let Ok(site) = u64::try_from(site)
            {
                let place = (data.loc.clone(), accessed);
                sites.entry(site).or_insert(place);
            }
        }
        Self(sites)
    }

    /// The source line of an access, and what it accesses.
    pub(crate) fn get(&self, site: u64) -> Option<&(Loc, Accessed)> {
        self.0.get(&site)
    }

    /// A line for each, with source lines by their position in `places`; nothing where one is not there.
    pub(crate) fn lines(&self, places: &[Loc]) -> Option<String> {
        let mut lines = String::new();
        for (site, (loc, accessed)) in &self.0 {
            let place = places.iter().position(|place| place == loc)?;
            let accessed = match accessed {
                Accessed::Memory {
                    parameter,
                    dtype,
                    name,
                } => format!("memory {parameter} {dtype} {name}"),
                Accessed::Axis(axis, extent) => format!("axis {} {extent}", axis.0),
                Accessed::Assertion(message) => {
                    format!("assertion {}", quote(message).replace(' ', SPACE))
                }
            };
            lines.push_str(&format!("{site} {place} {accessed}\n"));
        }
        Some(lines)
    }

    /// Those that [`Sites::lines`] printed; nothing of another text.
    pub(crate) fn parse(lines: &str, places: &[Loc]) -> Option<Self> {
        let site = |line: &str| {
            let mut words = line.split_whitespace();
            let mut word = || words.next();
            let site = word()?.parse().ok()?;
            let place = places.get(word()?.parse::<usize>().ok()?)?;
            let accessed = match word()? {
                "memory" => Accessed::Memory {
                    parameter: word()?.parse().ok()?,
                    dtype: DType::from_name(word()?)?,
                    name: word()?.to_string(),
                },
                "axis" => Accessed::Axis(Axis(word()?.parse().ok()?), word()?.parse().ok()?),
                "assertion" => Accessed::Assertion(unquote(word()?)?),
                _ => return None,
            };
            Some((site, (place.clone(), accessed)))
        };
        Some(Self(lines.lines().map(site).collect::<Option<_>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_come_back_with_the_lines_of_another_trace() {
        let places = [Loc::new("a.rs", 7, 1), Loc::new("a.rs", 9, 5)];
        let memory = Accessed::Memory {
            parameter: 1,
            dtype: DType::BF16,
            name: "y".to_string(),
        };
        let axis = Accessed::Axis(Axis(1), 64);
        let assertion = Accessed::Assertion("n; a \"b\"\n\u{e4}".to_string());
        let sites = |places: &[Loc]| {
            let sites = [
                (1, (places[1].clone(), assertion.clone())),
                (0, (places[1].clone(), memory.clone())),
                (3, (places[0].clone(), axis.clone())),
            ];
            Sites(sites.into())
        };
        let lines = sites(&places).lines(&places).expect("all are there");
        let moved = [Loc::new("b.rs", 70, 1), Loc::new("b.rs", 90, 5)];
        assert_eq!(Sites::parse(&lines, &moved), Some(sites(&moved)));
        assert_eq!(sites(&places).lines(&moved), None);
        for (word, other) in [("memory", "memories"), ("bf16", "b16"), ("3 0", "3 2")] {
            assert_eq!(Sites::parse(&lines.replace(word, other), &places), None);
        }
    }
}
