//! Makes a failing program smaller while it still fails.

use exactile_core::facts::Facts;
use exactile_core::ir::{Func, Inst, Literal, Op, Trait, Type, Value, op};
use exactile_core::passes::dce;
use exactile_core::target::Schedule;
use exactile_core::verify;

use super::edit::{insert_before, remove, replace};
use super::generate::{Limits, Program, generate};
use super::run::ProgramsOptions;

/// Says what is wrong with a program, if anything is.
pub(super) type Judge<'a> = &'a dyn Fn(&Program) -> Option<String>;

/// Attempts after which a program is small enough.
const ATTEMPTS: usize = 600;

/// The program with this index of the run, made smaller, and what is wrong with it.
pub(super) fn shrink(
    options: &ProgramsOptions,
    index: usize,
    judge: Judge<'_>,
) -> Option<(Program, String)> {
    let program = smaller_tiles(options, index, judge);
    let mut search = Search {
        message: judge(&program)?,
        judge,
        attempts: ATTEMPTS,
        program,
    };
    search.simpler_launch();
    search.fewer_programs();
    search.fewer_effects();
    while search.simpler_values() && search.attempts > 0 {}
    search.fewer_effects();
    search.drop_arguments();
    Some((search.program, search.message))
}

/// The program generated under the tightest limit of tile sizes that keeps a failure.
fn smaller_tiles(options: &ProgramsOptions, index: usize, judge: Judge<'_>) -> Program {
    let mut elements = 1;
    while elements < options.limits.elements {
        let limits = Limits {
            elements,
            ..options.limits
        };
        let program = generate(options.seed, index, limits);
        if judge(&program).is_some() {
            return program;
        }
        elements *= 2;
    }
    generate(options.seed, index, options.limits)
}

struct Search<'a> {
    program: Program,
    message: String,
    judge: Judge<'a>,
    attempts: usize,
}

impl Search<'_> {
    /// Keeps `candidate` if it is valid and still fails.
    fn accept(&mut self, candidate: Program) -> bool {
        self.attempts = self.attempts.saturating_sub(1);
        match (self.judge)(&candidate) {
            Some(message) if self.attempts > 0 => {
                self.program = candidate;
                self.message = message;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Tries the program with another body.
    fn try_func(&mut self, mut func: Func) -> bool {
        dce::dce(&mut func);
        let Ok(func) = verify::block(func) else {
            return false;
        };
        let candidate = Program {
            func,
            ..self.program.clone()
        };
        self.accept(candidate)
    }

    fn simpler_launch(&mut self) {
        let facts = Facts::default();
        self.accept(Program {
            facts,
            ..self.program.clone()
        });
        let schedule = Schedule {
            warps: self.program.schedule.warps,
            ..Schedule::default()
        };
        self.accept(Program {
            schedule,
            ..self.program.clone()
        });
    }

    fn fewer_programs(&mut self) {
        for axis in 0..3 {
            let mut candidate = self.program.clone();
            candidate.grid[axis] = 1;
            if candidate.grid != self.program.grid {
                self.accept(candidate);
            }
        }
    }

    /// Drops stores and control flow without results: halves of them first, then one by one.
    fn fewer_effects(&mut self) {
        let mut chunk = self.effects().len().div_ceil(2);
        while chunk > 0 {
            let mut first = 0;
            while first < self.effects().len() {
                let dropped: Vec<Inst> =
                    self.effects().into_iter().skip(first).take(chunk).collect();
                let mut func = self.program.func.clone().into_inner();
                remove(&mut func, &dropped);
                if !self.try_func(func) {
                    first += chunk;
                }
            }
            chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
        }
    }

    fn effects(&self) -> Vec<Inst> {
        let func = &self.program.func;
        let insts = func.all_insts().into_iter();
        insts
            .filter(|&inst| {
                func.inst(inst).results.is_empty() && !func.op(inst).is(Trait::terminator)
            })
            .collect()
    }

    /// Replaces results by an operand of the same type, or by a constant. Whether any was.
    fn simpler_values(&mut self) -> bool {
        let mut changed = false;
        let mut insts = self.program.func.all_insts();
        insts.reverse();
        for inst in insts {
            if self.attempts == 0 {
                return changed;
            }
            changed |= self.simplify(inst);
        }
        changed
    }

    fn simplify(&mut self, inst: Inst) -> bool {
        let func = &self.program.func;
        if !func.all_insts().contains(&inst) {
            return false;
        }
        let data = func.inst(inst).clone();
        if matches!(data.op, Op::Constant(_)) || data.results.is_empty() {
            return false;
        }
        for operand in data.op.operands() {
            if data
                .results
                .iter()
                .all(|&result| func.ty(result) == func.ty(operand))
            {
                let mut candidate = self.program.func.clone().into_inner();
                replace(&mut candidate, inst, &vec![operand; data.results.len()]);
                if self.try_func(candidate) {
                    return true;
                }
                break;
            }
        }
        self.constant_results(inst, &data.results)
    }

    /// Replaces all results of `inst` by zeros or ones.
    fn constant_results(&mut self, inst: Inst, results: &[Value]) -> bool {
        for number in [0.0, 1.0] {
            let mut func = self.program.func.clone().into_inner();
            let types: Vec<Type> = results.iter().map(|&result| func.ty(result)).collect();
            let loc = func.inst(inst).loc.clone();
            let constants: Vec<Inst> = types
                .iter()
                .filter_map(|&ty| {
                    let value = Literal::from_f64(ty.dtype()?, number);
                    Some(func.add_inst(Op::Constant(op::Constant { value }), &[ty], loc.clone()))
                })
                .collect();
            let values: Vec<Value> = constants
                .iter()
                .map(|&constant| func.inst(constant).results[0])
                .collect();
            insert_before(&mut func, inst, &constants);
            replace(&mut func, inst, &values);
            if self.try_func(func) {
                return true;
            }
        }
        false
    }

    /// Drops parameters that nothing uses.
    fn drop_arguments(&mut self) {
        let func = &self.program.func;
        let mut used = vec![false; func.parameters.len()];
        for inst in func.all_insts() {
            func.op(inst).visit_operands(&mut |value| {
                if let Some(index) = func.parameter_index(value) {
                    used[index] = true;
                }
            });
        }
        let mut candidate = func.clone().into_inner();
        let mut arguments = self.program.arguments.clone();
        let mut facts = self.program.facts.clone();
        let body = candidate.body();
        let mut keep = used.iter();
        candidate
            .parameters
            .retain(|_| *keep.next().unwrap_or(&true));
        let mut keep = used.iter();
        candidate
            .region_mut(body)
            .parameters
            .retain(|_| *keep.next().unwrap_or(&true));
        let mut keep = used.iter();
        arguments.retain(|_| *keep.next().unwrap_or(&true));
        let mut keep = used.iter();
        facts.arguments.retain(|_| *keep.next().unwrap_or(&true));
        let place = |at: usize| used[..at].iter().filter(|&&it| it).count();
        facts.within.retain(|it| used[it.parameter]);
        for it in &mut facts.within {
            it.parameter = place(it.parameter);
        }
        let Ok(func) = verify::block(candidate) else {
            return;
        };
        let candidate = Program {
            func,
            facts,
            arguments,
            ..self.program.clone()
        };
        self.attempts = self.attempts.max(2);
        self.accept(candidate);
    }
}

#[cfg(test)]
mod tests {
    use exactile_core::ir::{BinaryOp, Op, op};

    use super::super::run::ProgramsOptions;
    use super::super::subject::Checked;
    use super::shrink;

    #[test]
    fn what_does_not_matter_goes() {
        let options = ProgramsOptions {
            seed: 2,
            ..ProgramsOptions::default()
        };
        let divides = |op: &Op| {
            matches!(
                op,
                Op::Binary(op::Binary {
                    op: BinaryOp::Div,
                    ..
                })
            )
        };
        let judge = |program: &super::Program| {
            Checked::new(program).ok()?;
            let func = &program.func;
            let found = func.all_insts().iter().any(|&inst| divides(func.op(inst)));
            found.then(|| "it divides".to_string())
        };
        // The least of those that the search begins with, for which there are attempts enough.
        let tight = super::Limits {
            elements: 1,
            ..options.limits
        };
        let begun = |index: usize| super::generate(options.seed, index, tight);
        let index = (0..20)
            .filter(|&index| judge(&begun(index)).is_some())
            .min_by_key(|&index| begun(index).func.all_insts().len());
        let (program, message) =
            shrink(&options, index.expect("one divides"), &judge).expect("it still fails");
        assert_eq!(message, "it divides");
        let left = program.func.all_insts().len();
        assert!(
            left < 16,
            "{left} instructions are left:\n{}",
            *program.func
        );
    }
}
