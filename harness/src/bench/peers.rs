//! The peers: a Python process that answers one line of JSON with another.
//!
//! Whatever it does wrong costs its figures and never the run: it is ended, the report notes why,
//! and the next kernel starts a new one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::bursts::Burst;
use super::clock::Regime;
use super::report::title;
use crate::demo::Case;
use exactile::{Error, Result};

/// Failures after which no new process is started.
const MOST_FAILURES: usize = 4;

/// What an answer may take beyond the time that was asked for.
const PATIENCE: Duration = Duration::from_secs(180);

/// Which libraries are the peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    /// PyTorch and Triton.
    Gpu,
    /// NumPy and Numba on all cores.
    Cpu,
    /// NumPy and Numba on one core.
    OneCore,
}

/// How the process of the peers is started.
#[derive(Clone, Debug)]
pub struct PeersCommand {
    /// The Python interpreter.
    pub python: String,
    /// The folder with `peers.py`.
    pub folder: PathBuf,
    /// The peers.
    pub library: Library,
}

/// The process, started when it is needed.
pub(super) struct Peers {
    command: Option<PeersCommand>,
    running: Option<Running>,
    libraries: BTreeMap<String, String>,
    /// The case that was begun.
    case: String,
    /// How often the process was given up.
    failures: usize,
    notes: Vec<String>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Deserialize)]
struct Hello {
    libraries: BTreeMap<String, String>,
    missing: Vec<String>,
}

#[derive(Deserialize)]
struct Prepared {
    peers: Vec<String>,
    /// Why the others have no figures.
    failed: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Configs {
    peers: BTreeMap<String, Value>,
    failed: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Time {
    ms: f64,
}

#[derive(Deserialize)]
struct Empty {}

impl Running {
    fn start(command: &PeersCommand) -> Result<Self> {
        let library = match command.library {
            Library::Gpu => "gpu",
            Library::Cpu | Library::OneCore => "cpu",
        };
        let script = command.folder.join("peers.py");
        let mut process = Command::new(&command.python);
        process.arg(&script).arg(library);
        if command.library == Library::OneCore {
            for threads in ["OMP", "OPENBLAS", "MKL", "NUMBA"] {
                process.env(format!("{threads}_NUM_THREADS"), "1");
            }
        }
        let failed = |error: std::io::Error| {
            Error::Device(format!("{} {}: {error}", command.python, script.display()))
        };
        let mut child = process
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Device("the peers have no pipes".to_string()));
        };
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            input,
            answers,
        })
    }

    fn send(&mut self, request: &Value) -> Result<()> {
        writeln!(self.input, "{request}")
            .and_then(|()| self.input.flush())
            .map_err(|error| Error::Device(format!("the peers ended: {error}")))
    }

    fn receive<T: DeserializeOwned>(&mut self, time: Duration) -> Result<T> {
        let line = self.answers.recv_timeout(time).map_err(|error| {
            Error::Device(match error {
                RecvTimeoutError::Timeout => format!("no answer in {} s", time.as_secs()),
                RecvTimeoutError::Disconnected => "the process ended".to_string(),
            })
        })?;
        let unreadable = |error| Error::Device(format!("the answer `{line}` is wrong: {error}"));
        let answer: Value = serde_json::from_str(&line).map_err(unreadable)?;
        if let Some(error) = answer.get("error") {
            let text = error
                .as_str()
                .map_or_else(|| error.to_string(), String::from);
            return Err(Error::Device(text));
        }
        serde_json::from_value(answer).map_err(unreadable)
    }
}

impl Peers {
    pub(super) fn new(command: Option<PeersCommand>) -> Self {
        Self {
            command,
            running: None,
            libraries: BTreeMap::new(),
            case: String::new(),
            failures: 0,
            notes: Vec::new(),
        }
    }

    /// The libraries and their versions.
    pub(super) fn libraries(&self) -> &BTreeMap<String, String> {
        &self.libraries
    }

    /// What went wrong.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Starts on a case, without waiting for it.
    pub(super) fn begin(&mut self, case: &Case, tuning: Duration) {
        let request = json!({
            "do": "prepare",
            "kernel": case.kernel,
            "dtype": case.dtype.name(),
            "shape": case.shape,
            "seconds": tuning.as_secs_f64() / 2.0,
        });
        self.case = title(case);
        if self.running.is_none() {
            self.start();
        }
        self.with(|running| running.send(&request));
    }

    fn start(&mut self) {
        if self.failures >= MOST_FAILURES {
            return;
        }
        let Some(command) = &self.command else { return };
        match Running::start(command) {
            Ok(running) => self.running = Some(running),
            Err(error) => self.give_up(&error),
        }
        let hello = self.with(|running| {
            running.send(&json!({"do": "hello"}))?;
            running.receive::<Hello>(PATIENCE)
        });
        let Some(hello) = hello else { return };
        for missing in hello.missing {
            self.note(format!("missing: {missing}"));
        }
        if hello.libraries.is_empty() {
            self.command = None;
            self.running = None;
        }
        self.libraries = hello.libraries;
    }

    /// Talks to the process; a failure ends it.
    fn with<T>(&mut self, talk: impl FnOnce(&mut Running) -> Result<T>) -> Option<T> {
        match talk(self.running.as_mut()?) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.give_up(&error);
                None
            }
        }
    }

    fn give_up(&mut self, error: &Error) {
        self.note(format!("{}: {error}", self.case));
        self.failures += 1;
        self.running = None;
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn note_failed(&mut self, failed: BTreeMap<String, String>) {
        for (peer, reason) in failed {
            self.note(format!("{}: {peer}: {reason}", self.case));
        }
    }

    /// The names of those that can run the case that was begun.
    pub(super) fn prepared(&mut self, tuning: Duration) -> Vec<String> {
        let answer = self.with(|running| running.receive::<Prepared>(tuning + PATIENCE));
        let Some(Prepared { peers, failed }) = answer else {
            return Vec::new();
        };
        self.note_failed(failed);
        peers
    }

    /// Chooses each one's best configuration, which is made ready for bursts where there will be any.
    pub(super) fn tune(&mut self, tuning: Duration, bursts: bool) -> BTreeMap<String, Value> {
        let seconds = tuning.as_secs_f64() / 2.0;
        let request = json!({"do": "tune", "seconds": seconds, "bursts": bursts});
        let answer = self.with(|running| {
            running.send(&request)?;
            running.receive::<Configs>(tuning + PATIENCE)
        });
        let Some(Configs { peers, failed }) = answer else {
            return BTreeMap::new();
        };
        self.note_failed(failed);
        peers
    }

    fn time(&mut self, request: &Value) -> Option<f64> {
        let answer = self.with(|running| {
            running.send(request)?;
            running.receive::<Time>(PATIENCE)
        });
        answer.map(|answer| answer.ms / 1e3)
    }

    /// The median time of a launch in seconds, in one round.
    pub(super) fn round(&mut self, name: &str, regime: Regime, time: Duration) -> Option<f64> {
        let burst = regime.burst().map(
            |Burst {
                 rest,
                 untimed,
                 timed,
             }| {
                let [rest, untimed, timed] = [rest, untimed, timed].map(|each| each.as_secs_f64());
                json!({"rest": rest, "untimed": untimed, "timed": timed})
            },
        );
        let seconds = time.as_secs_f64();
        self.time(&json!({"do": "round", "peer": name, "seconds": seconds, "burst": burst}))
    }

    /// The median time of a copy of so many `f32`, in seconds, and who made it.
    pub(super) fn copy(&mut self, elements: u64, time: Duration) -> Option<f64> {
        let seconds = time.as_secs_f64();
        self.time(&json!({"do": "copy", "elements": elements, "seconds": seconds}))
    }

    /// Frees the memory of the case.
    pub(super) fn end(&mut self) {
        self.with(|running| {
            running.send(&json!({"do": "free"}))?;
            running.receive::<Empty>(PATIENCE)
        });
    }
}
