//! Runs cases in another process and names the one that ends it or takes too long.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Finding, FuzzOptions, Report, Said, cases};

/// Tries inputs in processes that `process` makes for these options, which run
/// [`run_cases`](super::run_cases) and print what it says. An error says that no such process runs.
pub fn run(
    options: &FuzzOptions,
    process: &dyn Fn(&FuzzOptions) -> Command,
    listener: &mut dyn FnMut(&Said),
) -> io::Result<Report> {
    let start = Instant::now();
    let mut run = Run {
        options,
        listener,
        report: Report {
            seed: options.seed,
            cases: 0,
            ran: 0,
            findings: Vec::new(),
        },
    };
    let mut next = options.clone();
    loop {
        let mut command = process(&next);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let ended = run.follow(&mut child);
        if ended.is_err() {
            // It may have ended meanwhile.
            let _ = child.kill();
        }
        let status = child.wait()?;
        let (index, message) = match ended {
            Ok(None) if status.success() => return Ok(run.report),
            Ok(None) => return Err(io::Error::other(format!("the cases ended: {status}"))),
            Ok(Some(index)) => (index, death(status)),
            Err(index) => (
                index,
                format!("takes over {} s", options.case_time.as_secs()),
            ),
        };
        run.report.cases += 1;
        run.keep(Finding {
            seed: options.seed,
            index,
            message,
            input: cases::input(options.seed, index),
        });
        next.from = index + 1;
        next.time = options.time.saturating_sub(start.elapsed());
        if next.only.is_some() || next.time == Duration::ZERO {
            return Ok(run.report);
        }
    }
}

/// How a process ended that should not have.
fn death(status: ExitStatus) -> String {
    format!("the process ended: {status}")
}

struct Run<'a> {
    options: &'a FuzzOptions,
    listener: &'a mut dyn FnMut(&Said),
    report: Report,
}

impl Run<'_> {
    /// Hears a process until it ends; the case that it was at then, if any. An error is a case that takes too
    /// long.
    fn follow(&mut self, child: &mut Child) -> Result<Option<u64>, u64> {
        let mut current = None;
        let said = heard(child);
        loop {
            let said = match said.recv_timeout(self.options.case_time) {
                Ok(said) => said,
                Err(RecvTimeoutError::Disconnected) => return Ok(current),
                Err(RecvTimeoutError::Timeout) => match current {
                    Some(index) => return Err(index),
                    None => continue,
                },
            };
            match said {
                Said::Started(index) => {
                    current = Some(index);
                    (self.listener)(&said);
                }
                Said::Ended(ran) => {
                    current = None;
                    self.report.cases += 1;
                    self.report.ran += u64::from(ran);
                }
                Said::Found(finding) => {
                    let mut known = self.report.findings.iter();
                    if !known.any(|it| it.message == finding.message) {
                        self.keep(finding);
                    }
                }
            }
        }
    }

    fn keep(&mut self, finding: Finding) {
        (self.listener)(&Said::Found(finding.clone()));
        self.report.findings.push(finding);
    }
}

/// What a process says, as long as it does.
fn heard(child: &mut Child) -> Receiver<Said> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            // A line that is cut short belongs to a process that has ended.
            let said = lines.map_while(|line| serde_json::from_str(&line).ok());
            for one in said {
                if sender.send(one).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{FuzzOptions, Report, run};

    /// A run whose processes print two cases and then go wrong in the third, but for the last, which ends well.
    fn supervised(wrong: &str) -> Report {
        let options = FuzzOptions {
            seed: 7,
            case_time: Duration::from_millis(500),
            ..FuzzOptions::default()
        };
        let process = |options: &FuzzOptions| {
            let (first, second) = (options.from, options.from + 1);
            let end = match options.from {
                0 | 2 => wrong,
                _ => "exit 0",
            };
            let script = format!(
                "echo '{{\"Started\":{first}}}'; echo '{{\"Ended\":true}}'; \
                 if [ {first} -lt 4 ]; then echo '{{\"Started\":{second}}}'; fi; {end}"
            );
            let mut command = Command::new("sh");
            command.args(["-c", &script]);
            command
        };
        run(&options, &process, &mut |_| {}).expect("sh runs")
    }

    #[test]
    fn a_case_that_ends_the_process_is_named_and_the_rest_goes_on() {
        let report = supervised("kill -ABRT $$");
        assert_eq!((report.cases, report.ran), (5, 3));
        let [finding, again] = &report.findings[..] else {
            panic!("{:?}", report.findings);
        };
        assert_eq!((finding.seed, finding.index, again.index), (7, 1, 3));
        assert!(finding.message.contains("signal: 6"), "{finding}");
        assert!(
            finding.to_string().contains("--seed 7 --only 1"),
            "{finding}"
        );
        assert!(finding.input.contains("func @"), "{finding}");
    }

    #[test]
    fn a_case_that_hangs_is_named_and_the_rest_goes_on() {
        let report = supervised("exec sleep 1000");
        assert_eq!((report.cases, report.ran), (5, 3));
        let [finding, again] = &report.findings[..] else {
            panic!("{:?}", report.findings);
        };
        assert_eq!((finding.index, again.index), (1, 3));
        assert!(finding.message.contains("takes over"), "{finding}");
    }

    #[test]
    fn a_process_that_does_not_start_is_an_error() {
        let none = |_: &FuzzOptions| Command::new("/nowhere/at/all");
        run(&FuzzOptions::default(), &none, &mut |_| {}).expect_err("there is none");
        let fails = |_: &FuzzOptions| Command::new("false");
        run(&FuzzOptions::default(), &fails, &mut |_| {}).expect_err("it fails before a case");
    }
}
