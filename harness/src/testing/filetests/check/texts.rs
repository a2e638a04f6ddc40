//! What passes, stages of the pipeline and lowerings make of a function: the text that a filetest states.

use exactile_core::facts::Facts;
use exactile_core::ir::Func;
use exactile_core::passes;
use exactile_core::pipeline::unobserved;
use exactile_core::target::{Bounds, Target};

use super::Checker;
use crate::testing::execute::{self, Place, Proven};
use crate::testing::filetests::format::ExpectedText;

impl Checker<'_> {
    pub(super) fn pass(&mut self, proven: &Proven, name: &str) {
        let mut func = proven.func().clone();
        let pass: fn(&mut Func) = match name {
            "expand_tiles" => passes::expand_tiles::expand_tiles,
            "expand_accumulators" => passes::expand_accumulators::expand_accumulators,
            "promote_dots" => passes::promote_dots::promote_dots,
            "widen_dots" => |func| passes::widen_dots::widen_dots(func, &Target::CPU),
            "decompose" => passes::decompose::decompose,
            "simplify" => passes::simplify::simplify,
            "fold" => passes::fold::fold,
            "carried" => passes::carried::drop_unchanged,
            "late_zeros" => passes::late_zeros::late_zeros,
            "roll_edges" => passes::roll_edges::roll_edges,
            "roll_slices" => passes::roll_slices::roll_slices,
            "pingpong" => passes::pingpong::pingpong,
            "producer" => |func| passes::producer::produce(func, &Target::SM_90A),
            "stagger_products" => passes::stagger::stagger_products,
            "cse" => passes::cse::cse,
            "licm" => passes::licm::licm,
            "dce" => passes::dce::dce,
            "uniform_mask" => |func| passes::uniform_mask::split_uniform_masks(func, None),
            "tidy" => passes::tidy,
            "allocate" => |func| {
                let target = if func.warps == 0 {
                    Target::CPU
                } else {
                    Target::SM_90A
                };
                passes::allocate::allocate(func, &target).expect("memory enough");
            },
            _ => return self.fail(0, format!("unknown pass `{name}`")),
        };
        pass(&mut func);
        self.changed(proven, name, &format!("pass={name}"), func);
    }

    pub(super) fn stage(&mut self, proven: &Proven, name: &str, warps: u32) {
        let options = self.options(Some(warps), Bounds::Unchecked);
        let mut seen = None;
        let observe = &mut |stage: &'static str, func: &Func| {
            seen = (stage == name).then(|| func.clone()).or(seen.take());
        };
        let facts = Facts {
            boxes: self.file.boxes,
            ..Facts::default()
        };
        match execute::compile(proven, &self.file.gpu, &options, &facts, observe) {
            Ok(_) => {}
            Err(message) => return self.fail(self.chunk.line, message),
        }
        match seen {
            Some(func) => self.changed(proven, name, &format!("stage={name} warps={warps}"), func),
            None => self.fail(0, format!("unknown stage `{name}`")),
        }
    }

    /// A pass gives the text stated, and does not change what runs give.
    fn changed(&mut self, proven: &Proven, name: &str, heading: &str, func: Func) {
        self.expect_text(heading, &func.to_string());
        let after = match Proven::new(func) {
            Ok(after) => after,
            Err(error) => {
                return self.fail(self.chunk.line, format!("invalid after {name}: {error}"));
            }
        };
        let options = self.options(None, Bounds::Checked);
        for run in &self.chunk.runs {
            let before = self.once(proven, run, Place::Interpreter, &options);
            let after = self.once(&after, run, Place::Interpreter, &options);
            self.report.runs += 1;
            if before != after {
                self.fail(
                    run.line,
                    format!("{name} changes {before:?} into {after:?}"),
                );
            }
        }
    }

    pub(super) fn lowered(&mut self, heading: &str, proven: &Proven, place: Place) {
        let options = self.options(place.warps(), Bounds::Unchecked);
        match execute::compile(
            proven,
            &place.target(),
            &options,
            &Facts::default(),
            &mut unobserved,
        ) {
            Ok(func) => self.expect_text(heading, &func.to_string()),
            Err(message) => self.fail(self.chunk.line, format!("{heading}: {message}")),
        }
    }

    fn expect_text(&mut self, heading: &str, found: &str) {
        let stated: Option<&ExpectedText> =
            self.chunk.texts.iter().find(|text| text.heading == heading);
        if stated.is_none_or(|stated| stated.text != found) {
            self.fail(
                self.chunk.line,
                format!("text after {heading} differs:\n{found}"),
            );
        }
        let lines = found.lines().map(|line| format!("; {line}\n"));
        let replacement = format!("; after {heading}:\n{}", lines.collect::<String>());
        let end = self.chunk.end;
        let range = stated.map_or(end..end, |stated| stated.lines.clone());
        self.edits.push((range, replacement));
    }

    pub(super) fn ptx(&mut self, proven: &Proven) {
        let options = self.options(Some(4), Bounds::Unchecked);
        let target = self.file.gpu;
        let facts = Facts {
            boxes: self.file.boxes,
            ..Facts::default()
        };
        let lane = execute::compile(proven, &target, &options, &facts, &mut unobserved);
        let ptx = match lane.and_then(|lane| execute::ptx(&lane, &target)) {
            Ok(Some(ptx)) => ptx,
            Ok(None) => {
                self.report
                    .skipped
                    .insert("a build without `nvptx` makes no PTX".to_string());
                return;
            }
            Err(message) => return self.fail(self.chunk.line, message),
        };
        for (expected, text) in &self.chunk.ptx {
            if ptx.contains(text) != *expected {
                let word = if *expected { "does not hold" } else { "holds" };
                self.fail(self.chunk.line, format!("PTX {word} `{text}`:\n{ptx}"));
            }
        }
        let name = format!("{}_{}", self.path, self.chunk.line).replace(['/', '.'], "_");
        match execute::assembled(&ptx, &name) {
            Ok(Some(())) => {}
            Ok(None) => {
                let skipped = "PTX is not assembled without `ptxas`".to_string();
                self.report.skipped.insert(skipped);
            }
            Err(message) => self.fail(self.chunk.line, format!("{message}\n{ptx}")),
        }
    }
}
