//! One kernel against its peers: everybody prepares, tunes, and runs in turns.

use std::collections::BTreeMap;
use std::time::Instant;

use exactile_core::random::Random;
use exactile_core::target::{Determinism, Schedule};
use serde_json::Value;

use super::clock::{Clock, Regime, median};
use super::copy::{CopyRates, size_class};
use super::peers::Peers;
use super::report::{Finalist, PeerTime, Row, title};
use super::sample::{Sample, draw};
use super::tune::{Search, compile, fastest};
use super::{Plan, Subject};
use crate::demo::{Problem, compare_written, golden_sample, sampled_run};
use exactile::Array;
use exactile::Comparison;
use exactile::DeviceKind;
use exactile::{Error, Result};
use exactile_kernels::Setting;

/// The levels that are measured: the promise of this crate, and none.
const LEVELS: [Determinism; 2] = [Determinism::Exact, Determinism::NotGuaranteed];

/// Bytes of a case up to which every candidate is judged, not only the one that is chosen.
const JUDGED_IN_FULL: u64 = 4 << 20;

/// The name of the exact row's launches with their checks.
const CHECKED: &str = "checked";

/// The name of exact launches whose setting is left to the kernel and the compiler.
const DEFAULT: &str = "default";

/// The name of launches with the best setting of those drawn.
const SAMPLE: &str = "sample";

pub(super) struct Contest<'a> {
    pub(super) plan: &'a Plan,
    pub(super) subject: &'a Subject,
    pub(super) clock: &'a mut Clock,
    pub(super) peers: &'a mut Peers,
    pub(super) copies: &'a mut CopyRates,
    /// Takes lines about what happens.
    pub(super) say: &'a dyn Fn(&str),
}

/// Times of the rounds, by contestant, in seconds.
type Rounds = BTreeMap<String, Vec<f64>>;

/// What is ready before anything is timed.
struct Prepared {
    want: Vec<Array>,
    reference: String,
    problem: Problem,
    compiled: Vec<Setting>,
    search: Search,
}

/// The results under one setting against the reference.
#[derive(Clone)]
struct Judgement {
    bits_equal: bool,
    passed: bool,
    judged: usize,
    max_ulp: u64,
    mismatches: Option<String>,
}

impl Contest<'_> {
    /// The rows of both levels.
    pub(super) fn run(mut self) -> Result<Vec<Row>> {
        let (plan, case) = (self.plan, &self.subject.case);
        self.peers.begin(case, plan.tuning);
        // From here on the peers owe an answer, which is taken whatever else fails.
        let prepared = self.prepare();
        let names = self.peers.prepared(plan.tuning);
        let rows = prepared.and_then(|prepared| self.measure(prepared, &names));
        self.peers.end();
        rows
    }

    fn measure(&mut self, mut prepared: Prepared, names: &[String]) -> Result<Vec<Row>> {
        let problem = &mut prepared.problem;
        if self.subject.case.bytes <= JUDGED_IN_FULL {
            for &setting in &prepared.compiled {
                let judgement = self.judge(problem, setting, &prepared.want)?;
                if let Some(mismatches) = judgement.mismatches {
                    return Err(Error::Mismatch(format!("{setting:?}: {mismatches}")));
                }
            }
        }
        let mut settings = Vec::new();
        let mut finalists = Vec::new();
        for level in LEVELS {
            let ranked = fastest(self.clock, problem, &prepared.compiled, level)?;
            settings.push(ranked[0][0].1);
            finalists.push(ranked);
        }
        let (sample, sampled) = self.sample(problem, &prepared.want)?.unzip();
        let sampled = sampled.flatten();
        let configs = match names.is_empty() {
            true => BTreeMap::new(),
            false => {
                let bursts = self
                    .plan
                    .regimes
                    .iter()
                    .any(|regime| regime.burst().is_some());
                self.peers.tune(self.plan.tuning, bursts)
            }
        };
        let entered = self.entered(problem, &settings, sampled);
        let mut rounds = Vec::new();
        for &regime in &self.plan.regimes {
            rounds.push((regime, self.rounds(problem, regime, &entered, &configs)?));
        }
        let copies = self.copy_rates()?;
        let mut rows = Vec::new();
        for (&setting, [ranked, all]) in settings.iter().zip(finalists) {
            let judgement = self.judge(problem, setting, &prepared.want)?;
            let is_exact = setting.determinism == Determinism::Exact;
            let finalists: Vec<Finalist> = ranked.into_iter().map(Finalist::from).collect();
            let trials: Vec<Finalist> = all.into_iter().map(Finalist::from).collect();
            for (regime, rounds) in &rounds {
                let row = self.row(setting, judgement.clone(), rounds, &copies);
                rows.push(Row {
                    regime: *regime,
                    sample: sample.clone().filter(|_| is_exact),
                    reference: prepared.reference.clone(),
                    search: prepared.search.clone(),
                    finalists: finalists.clone(),
                    trials: trials.clone(),
                    ..with_peers(row, &configs)
                });
            }
        }
        Ok(rows)
    }

    /// The reference, the problem on the device, and its compiled configurations.
    fn prepare(&self) -> Result<Prepared> {
        let (plan, case) = (self.plan, &self.subject.case);
        let (want, reference) = match plan.device.kind() {
            // The golden run is the CPU's own.
            DeviceKind::Cpu => sampled_run(case)?,
            DeviceKind::Interpreter | DeviceKind::Lanes | DeviceKind::Cuda(_) => {
                golden_sample(case)?
            }
        };
        let mut problem = (case.setup)(&plan.device)?;
        let candidates = candidates_for(plan.device.kind(), &self.subject.candidates);
        let time = plan.tuning / 2;
        let (compiled, search) = compile(&plan.device, &mut problem, &candidates, &LEVELS, time)?;
        (self.say)(&format!("{}: {}", title(case), search.line()));
        Ok(Prepared {
            want,
            reference,
            problem,
            compiled,
            search,
        })
    }

    /// What becomes of settings that are drawn, each judged before it is measured, and the best one; nothing where none are wanted.
    fn sample(
        &mut self,
        problem: &mut Problem,
        want: &[Array],
    ) -> Result<Option<(Sample, Option<Setting>)>> {
        let (plan, subject) = (self.plan, self.subject);
        let Some(sampling) = plan.sampling else {
            return Ok(None);
        };
        let begin = Instant::now();
        let title = title(&subject.case);
        let drawn = draw(sampling, &title, &subject.candidates, &plan.device);
        let mut sample = Sample {
            seed: sampling.seed,
            drawn: drawn.len(),
            ..Sample::default()
        };
        let levels = [Determinism::Exact];
        let time = plan.tuning / 2;
        let best = match compile(&plan.device, problem, &drawn, &levels, time) {
            Err(error) => {
                sample.refused.insert(error.to_string(), drawn.len());
                None
            }
            Ok((compiled, search)) => {
                let mut judged = Vec::new();
                for setting in compiled {
                    if begin.elapsed() > plan.tuning && !judged.is_empty() {
                        break;
                    }
                    let judgement = self.judge(problem, setting, want)?;
                    if let Some(mismatches) = judgement.mismatches {
                        return Err(Error::Mismatch(format!("{setting:?}: {mismatches}")));
                    }
                    judged.push(setting);
                }
                let [ranked, all] = fastest(self.clock, problem, &judged, Determinism::Exact)?;
                sample.measured = judged.len();
                sample.not_begun = drawn.len() - judged.len() - search.failed;
                sample.refused = search.reasons;
                sample.trials = all.into_iter().map(Finalist::from).collect();
                ranked.first().map(|&(_, setting)| setting)
            }
        };
        (self.say)(&format!("{title}: {}", sample.line()));
        Ok(Some((sample, best)))
    }

    /// The own contestants with their settings.
    fn entered(
        &self,
        problem: &mut Problem,
        settings: &[Setting],
        sampled: Option<Setting>,
    ) -> Vec<(&'static str, Setting)> {
        let mut entered = Vec::new();
        for &setting in settings {
            entered.push((setting.determinism.name(), setting));
            if setting.determinism == Determinism::Exact {
                entered.push((CHECKED, setting));
            }
        }
        // A kernel may have no default for a shape; else its code is made before anything is timed.
        let default = Setting::default();
        let launched = problem.launch(&default);
        if launched
            .and_then(|()| self.plan.device.synchronize())
            .is_ok()
        {
            entered.push((DEFAULT, default));
        }
        entered.extend(sampled.map(|setting| (SAMPLE, setting)));
        entered
    }

    /// Everybody once in each round, in turns, in an order that is drawn: who follows a kernel that takes little power would
    /// else always start on a cool device.
    fn rounds(
        &mut self,
        problem: &mut Problem,
        regime: Regime,
        entered: &[(&str, Setting)],
        configs: &BTreeMap<String, Value>,
    ) -> Result<Rounds> {
        let (device, time) = (&self.plan.device, self.plan.round);
        let own = entered.iter().map(|&(name, setting)| (name, Some(setting)));
        let peers = configs.keys().map(|name| (name.as_str(), None));
        let mut contestants: Vec<_> = own.chain(peers).collect();
        let mut random = Random::new(0);
        let mut rounds = Rounds::new();
        for _ in 0..self.plan.rounds {
            random.shuffle(&mut contestants);
            for &(name, setting) in &contestants {
                let seconds = match setting {
                    Some(setting) => {
                        device.trust_proofs(name != CHECKED);
                        let seconds = self.clock.round(regime, time, problem, &setting);
                        device.trust_proofs(true);
                        Some(seconds?)
                    }
                    None => self.peers.round(name, regime, time),
                };
                rounds.entry(name.to_string()).or_default().extend(seconds);
            }
        }
        Ok(rounds)
    }

    /// The rates of copies of as many bytes, by who made them.
    fn copy_rates(&mut self) -> Result<BTreeMap<String, f64>> {
        let bytes = self.subject.case.bytes;
        let own = self.copies.rate(&self.plan.device, self.clock, bytes)?;
        let mut rates = BTreeMap::from([("exactile".to_string(), own / 1e9)]);
        let elements = size_class(bytes);
        if let Some(seconds) = self.peers.copy(elements, self.plan.round) {
            rates.insert("peer".to_string(), 8.0 * elements as f64 / seconds / 1e9);
        }
        Ok(rates)
    }

    /// Judges launches that trust the proofs and, where all bits count, launches that check.
    fn judge(&self, problem: &mut Problem, setting: Setting, want: &[Array]) -> Result<Judgement> {
        let device = &self.plan.device;
        let mut run = |trust: bool| -> Result<Vec<Comparison>> {
            device.trust_proofs(trust);
            problem.spoil()?;
            problem.launch(&setting)?;
            device.synchronize()?;
            compare_written(&problem.outputs()?, want)
        };
        let mut comparisons = run(true)?;
        if setting.determinism == Determinism::Exact {
            let checked = run(false);
            device.trust_proofs(true);
            comparisons.extend(checked?);
        }
        let passed = |comparison: &Comparison| match setting.determinism {
            Determinism::NotGuaranteed => comparison.within_tolerance(),
            Determinism::BatchInvariant | Determinism::ScheduleInvariant | Determinism::Exact => {
                comparison.bits_equal()
            }
        };
        let wrong = comparisons.iter().find(|comparison| !passed(comparison));
        Ok(Judgement {
            bits_equal: comparisons.iter().all(Comparison::bits_equal),
            passed: wrong.is_none(),
            judged: comparisons.iter().map(Comparison::elements).sum(),
            max_ulp: comparisons
                .iter()
                .map(|each| each.max_ulp)
                .max()
                .unwrap_or(0),
            mismatches: wrong.map(ToString::to_string),
        })
    }

    fn row(
        &self,
        setting: Setting,
        judgement: Judgement,
        rounds: &Rounds,
        copies: &BTreeMap<String, f64>,
    ) -> Row {
        let case = &self.subject.case;
        let level = setting.determinism;
        let times = times_of(rounds, level.name());
        let seconds = median(times);
        let rate = |seconds: f64| case.bytes as f64 / seconds / 1e9;
        let best_copy = copies.values().copied().fold(0.0, f64::max);
        let [exact, fast] = LEVELS.map(|level| median(times_of(rounds, level.name())));
        let checked = median(times_of(rounds, CHECKED)) / seconds;
        let default = Some(times_of(rounds, DEFAULT)).filter(|times| !times.is_empty());
        let default = default.map(median);
        let sample = Some(times_of(rounds, SAMPLE)).filter(|times| !times.is_empty());
        let to_sample = default.zip(sample.map(median));
        let is_exact = level == Determinism::Exact;
        Row {
            kernel: case.kernel.to_string(),
            dtype: case.dtype.name().to_string(),
            shape: case.shape.clone(),
            config: serde_json::to_value(setting).unwrap_or_default(),
            determinism: level.name().to_string(),
            regime: Regime::default(),
            ms: seconds * 1e3,
            spread_ms: spread(times),
            bytes: case.bytes,
            formula: self.subject.formula.to_string(),
            gb_s: rate(seconds),
            share_of_copy: rate(seconds) / best_copy,
            copy_gb_s: copies.clone(),
            peer: None,
            peer_gb_s: None,
            ratio_to_best_peer: None,
            peers: peer_times(rounds, rate),
            ratio_exact_to_fast: exact / fast,
            ratio_checked: is_exact.then_some(checked),
            ratio_default: default.filter(|_| is_exact).map(|it| it / seconds),
            ratio_default_to_sample: to_sample.filter(|_| is_exact).map(|(it, best)| it / best),
            sample: None,
            bits_equal: judgement.bits_equal,
            passed: judgement.passed,
            judged: judgement.judged,
            max_ulp: judgement.max_ulp,
            reference: String::new(),
            mismatches: judgement.mismatches,
            search: Search::default(),
            finalists: Vec::new(),
            trials: Vec::new(),
        }
    }
}

/// The figures of everybody who is not this crate, by the rate of a time.
fn peer_times(rounds: &Rounds, rate: impl Fn(f64) -> f64) -> BTreeMap<String, PeerTime> {
    let own = LEVELS.map(Determinism::name);
    let peers = rounds.iter().filter(|(name, _)| {
        !own.contains(&name.as_str()) && ![CHECKED, DEFAULT, SAMPLE].contains(&name.as_str())
    });
    peers
        .map(|(name, times)| {
            let figures = PeerTime {
                ms: median(times) * 1e3,
                spread_ms: spread(times),
                gb_s: rate(median(times)),
                config: Value::Null,
            };
            (name.clone(), figures)
        })
        .collect()
}

/// Adds what the peers chose, and who of them is best.
fn with_peers(mut row: Row, configs: &BTreeMap<String, Value>) -> Row {
    for (name, peer) in &mut row.peers {
        peer.config = configs.get(name).cloned().unwrap_or_default();
    }
    let best = row
        .peers
        .iter()
        .min_by(|one, other| one.1.ms.total_cmp(&other.1.ms));
    if let Some((name, best)) = best {
        row.peer_gb_s = Some(best.gb_s);
        row.ratio_to_best_peer = Some(best.ms / row.ms);
        row.peer = Some(name.clone());
    }
    row
}

fn times_of<'r>(rounds: &'r Rounds, name: &str) -> &'r [f64] {
    rounds.get(name).map_or(&[], Vec::as_slice)
}

/// Least and greatest, in milliseconds.
fn spread(seconds: &[f64]) -> [f64; 2] {
    let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = seconds.iter().copied().fold(0.0, f64::max);
    [least * 1e3, greatest * 1e3]
}

/// The configurations that differ on a device: a CPU has neither warps nor pipelines.
fn candidates_for(kind: DeviceKind, candidates: &[Setting]) -> Vec<Setting> {
    let mut distinct: Vec<Setting> = Vec::new();
    for &candidate in candidates {
        let candidate = match kind {
            DeviceKind::Cpu | DeviceKind::Interpreter => Setting {
                schedule: Schedule::AUTO,
                ..candidate
            },
            DeviceKind::Lanes | DeviceKind::Cuda(_) => candidate,
        };
        if !distinct.contains(&candidate) {
            distinct.push(candidate);
        }
    }
    distinct
}
