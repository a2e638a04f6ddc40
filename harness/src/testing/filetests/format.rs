//! The parts of a filetest: commands, functions, runs and what is expected of them.

use exactile_core::facts::Boxed;
use exactile_core::target::{Determinism, Schedule, Target};

/// Something to do with every function of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    /// The printed text parses to the same text.
    Roundtrip,
    /// The function is valid, or has exactly the errors stated; those of the layouts of a schedule count where it has no others.
    Verify,
    /// The interpreter gives what `; gives:` states.
    Interp,
    /// The compiled function gives the same on the CPU.
    RunCpu,
    /// The GPU lowering gives the same under the lane interpreter, for each number of warps.
    RunLanes(Vec<u32>),
    /// The GPU gives the same, for each number of warps.
    RunCuda(Vec<u32>),
    /// The pass leaves the text stated in comments, and does not change what runs give.
    Pass(String),
    /// The stage of the pipeline for a GPU leaves the text stated in comments, and does not change what
    /// runs give.
    Stage(String, u32),
    /// The lowering for the CPU gives the text stated in comments.
    LowerSequential,
    /// The lowering for a GPU gives the text stated in comments.
    LowerDistributed(u32),
    /// The PTX holds each text stated by `; ptx: ..`, and NVIDIA's assembler takes it, where there is one.
    Ptx,
}

/// A `; run:` line with its result.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The line, from 0.
    pub(super) line: usize,
    /// The text between the parentheses.
    pub(super) arguments: String,
    pub(super) grid: [u32; 3],
    /// The line of the result and its text after `gives:` or `fails:`.
    pub(super) result: Option<(usize, Expected)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Expected {
    Gives(String),
    Fails(String),
}

/// A function with what is expected of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    /// The first line, from 0.
    pub(super) line: usize,
    /// The line after the function.
    pub(super) end: usize,
    /// The function, below as many empty lines as stand above it in the file.
    pub(super) source: String,
    /// Line from 1, and text of each stated error.
    pub(super) errors: Vec<(u32, String)>,
    pub(super) runs: Vec<Run>,
    /// Expected texts: their heading, first line and line after, and the text.
    pub(super) texts: Vec<ExpectedText>,
    /// What the PTX must hold, or must not.
    pub(super) ptx: Vec<(bool, String)>,
}

#[derive(Clone, Debug)]
pub(super) struct ExpectedText {
    pub(super) heading: String,
    pub(super) lines: std::ops::Range<usize>,
    pub(super) text: String,
}

/// A filetest.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) commands: Vec<Command>,
    pub(super) determinism: Determinism,
    /// The boxes of arrays that stages may make, as launches show it.
    pub(super) boxes: Boxed,
    /// What all distribute tiles by, but for the number of warps.
    pub(super) schedule: Schedule,
    /// What tiles are distributed and PTX is made for.
    pub(super) gpu: Target,
    pub(super) chunks: Vec<Chunk>,
}

fn command(text: &str) -> Result<Command, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let warps = |word: &str| -> Result<Vec<u32>, String> {
        let list = word.strip_prefix("warps=").unwrap_or("");
        let list: Result<Vec<u32>, _> = list.split(',').map(str::parse).collect();
        list.map_err(|_| format!("`{word}` is not such as `warps=1,4`"))
    };
    Ok(match words[..] {
        ["roundtrip"] => Command::Roundtrip,
        ["verify"] => Command::Verify,
        ["interp"] => Command::Interp,
        ["run", "cpu"] => Command::RunCpu,
        ["run", "lanes", list] => Command::RunLanes(warps(list)?),
        ["run", "cuda", list] => Command::RunCuda(warps(list)?),
        ["lower", "distribution=sequential"] => Command::LowerSequential,
        ["lower", "distribution=distributed", list] => {
            Command::LowerDistributed(*warps(list)?.first().unwrap_or(&1))
        }
        [word, list] if word.starts_with("stage=") => Command::Stage(
            word["stage=".len()..].to_string(),
            *warps(list)?.first().unwrap_or(&1),
        ),
        ["ptx"] => Command::Ptx,
        [word] if word.starts_with("pass=") => Command::Pass(word["pass=".len()..].to_string()),
        _ => return Err(format!("unknown command `test {text}`")),
    })
}

fn determinism(name: &str) -> Option<Determinism> {
    let mut levels = Determinism::ALL.into_iter();
    levels.find(|level| level.name() == name)
}

/// Reads a file; an error names the line.
pub(super) fn read(source: &str) -> Result<File, String> {
    let mut file = File {
        commands: Vec::new(),
        determinism: Determinism::Exact,
        boxes: Boxed::Nothing,
        schedule: Schedule::AUTO,
        gpu: Target::SM_90A,
        chunks: Vec::new(),
    };
    let lines: Vec<&str> = source.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let fail = |message: String| format!("line {}: {message}", at + 1);
        if let Some(text) = line.strip_prefix("test ") {
            file.commands.push(command(text).map_err(fail)?);
        } else if let Some(name) = line.strip_prefix("options determinism=") {
            let unknown = || fail(format!("unknown determinism level `{name}`"));
            file.determinism = determinism(name).ok_or_else(unknown)?;
        } else if line == "options boxes=all" {
            file.boxes = Boxed::All;
        } else if line == "options pingpong=2" {
            file.schedule = file.schedule.pingpong(2);
        } else if line == "options producer=2" {
            file.schedule = file.schedule.producer(2);
        } else if line == "options operands=stored" {
            file.gpu = file.gpu.holding(false);
        } else if let Some(name) = line.strip_prefix("options target=") {
            let gpu = Target::GPUS.iter().find(|gpu| gpu.name == name);
            file.gpu = *gpu.ok_or_else(|| fail(format!("unknown GPU `{name}`")))?;
        } else if line.starts_with("func ") {
            let end = (at..lines.len())
                .find(|&end| lines[end].starts_with('}'))
                .ok_or_else(|| fail("the function does not end".to_string()))?;
            file.chunks.push(chunk(&lines, at, end + 1));
            at = end;
        } else if let Some(comment) = line.strip_prefix(';') {
            if let Some(chunk) = file.chunks.last_mut() {
                at = expectation(chunk, &lines, at, comment.trim()).map_err(fail)?;
            }
        } else if !line.is_empty() {
            return Err(fail(format!(
                "expected a command, a function or a comment, found `{line}`"
            )));
        }
        at += 1;
    }
    if file.commands.is_empty() || file.chunks.is_empty() {
        return Err("a filetest needs commands and functions".to_string());
    }
    Ok(file)
}

fn chunk(lines: &[&str], line: usize, end: usize) -> Chunk {
    let mut errors = Vec::new();
    for (number, text) in lines[line..end].iter().enumerate() {
        let stated = text.split("; error: ").skip(1);
        errors.extend(stated.map(|text| ((line + number + 1) as u32, text.trim().to_string())));
    }
    Chunk {
        line,
        end,
        source: format!("{}{}\n", "\n".repeat(line), lines[line..end].join("\n")),
        errors,
        ..Chunk::default()
    }
}

/// Reads a comment after a function; returns the last line that belongs to it.
fn expectation(
    chunk: &mut Chunk,
    lines: &[&str],
    at: usize,
    comment: &str,
) -> Result<usize, String> {
    if let Some(text) = comment.strip_prefix("run:") {
        chunk.runs.push(run(at, text.trim())?);
    } else if let Some(text) = comment.strip_prefix("gives:") {
        result(chunk, at, Expected::Gives(text.trim().to_string()))?;
    } else if let Some(text) = comment.strip_prefix("fails:") {
        result(chunk, at, Expected::Fails(text.trim().to_string()))?;
    } else if let Some(text) = comment.strip_prefix("ptx:") {
        chunk.ptx.push((true, text.trim().to_string()));
    } else if let Some(text) = comment.strip_prefix("no ptx:") {
        chunk.ptx.push((false, text.trim().to_string()));
    } else if let Some(heading) = comment.strip_prefix("after ") {
        let last = (at + 1..lines.len()).find(|&last| lines[last] == "; }");
        let end = last.ok_or("the expected text does not end in `; }`")? + 1;
        let text = lines[at + 1..end]
            .iter()
            .map(|line| format!("{}\n", line.strip_prefix("; ").unwrap_or("")));
        chunk.texts.push(ExpectedText {
            heading: heading.trim_end_matches(':').to_string(),
            lines: at..end,
            text: text.collect(),
        });
        return Ok(end - 1);
    }
    Ok(at)
}

fn result(chunk: &mut Chunk, line: usize, expected: Expected) -> Result<(), String> {
    match chunk.runs.last_mut() {
        Some(run) if run.result.is_none() => {
            run.result = Some((line, expected));
            Ok(())
        }
        Some(_) | None => Err("a result without a run".to_string()),
    }
}

/// Reads `@f(x=[1.0]) grid=2x3`.
fn run(line: usize, text: &str) -> Result<Run, String> {
    let wrong = || format!("`{text}` is not such as `@f(n=2) grid=1`");
    let (_, rest) = text.split_once('(').ok_or_else(wrong)?;
    let (arguments, grid) = rest.rsplit_once(") grid=").ok_or_else(wrong)?;
    let extents: Result<Vec<u32>, _> = grid.trim().split('x').map(str::parse).collect();
    let mut extents = extents.map_err(|_| wrong())?;
    extents.resize(3, 1);
    Ok(Run {
        line,
        arguments: arguments.to_string(),
        grid: [extents[0], extents[1], extents[2]],
        result: None,
    })
}
