//! Compiled kernels as bytes: what a launch must know of them in lines of words, then the code.

use std::str::SplitWhitespace;

use exactile_core::ir::{Access, DType, Parameter, Space, Type};
use exactile_core::launch::{ArrayMap, Input};

use exactile_core::target::{Target, WARP_LANES};

use crate::grid::GridMapping;
use crate::ptx::{Ptx, is_identifier};

/// Stands for a range of which nothing is known.
const ANY: &str = "any";

/// When its thread blocks begin: before the end of the launch before, or after it.
const EARLY: &str = "early";
const LATE: &str = "late";

/// What ends the lines.
const END: &[u8] = b"\n\n";

/// The most axes of an array whose boxes are copied.
const MOST_AXES: usize = 5;

/// The most elements of a box along an axis.
const LONGEST: u32 = 256;

/// Axes of a grid.
const GRID_AXES: usize = 3;

impl Ptx {
    /// The kernel as bytes: machine code where an assembler made it, else the text.
    pub fn to_bytes(&self) -> Vec<u8> {
        let grid = self.grid.name();
        let (kind, code) = match &self.machine_code {
            Some(code) => ("machine", code.as_slice()),
            None => ("text", self.text.as_bytes()),
        };
        let (threads, programs, shared) = (self.threads, self.programs, self.shared_bytes);
        let name = &self.name;
        let begins = if self.begins_early { EARLY } else { LATE };
        let mut lines =
            format!("kernel {name} {threads} {programs} {shared} {grid} {begins} {kind}");
        for (parameter, ty) in &self.parameters {
            let access = match parameter.access {
                Access::Read => "read",
                Access::ReadWrite => "write",
            };
            let (shape, dtype) = match ty.pointee() {
                Some((dtype, _)) => ("pointer", Some(dtype)),
                None => ("number", ty.dtype()),
            };
            let dtype = dtype.map_or("none", DType::name);
            let Parameter {
                name,
                divisor,
                within,
                tiled,
                ..
            } = parameter;
            let within = within.map_or(ANY.to_string(), |[least, most]| format!("{least}..{most}"));
            lines.push_str(&format!(
                "\nparameter {name} {access} {divisor} {within} {tiled} {shape} {dtype}"
            ));
        }
        for input in &self.hidden {
            lines.push_str(&match input {
                Input::Number(index) => format!("\nnumber {index}"),
                Input::Address(index) => format!("\naddress {index}"),
                Input::Length(index, dtype) => format!("\nlength {index} {dtype}"),
                Input::Grid(axis) => format!("\ngrid {axis}"),
                Input::ErrorRecord => "\nrecord".to_string(),
            });
        }
        for map in &self.maps {
            lines.push_str(&format!("\nmap {map}"));
        }
        [lines.as_bytes(), END, code].concat()
    }

    /// The kernel that [`Ptx::to_bytes`] gave; nothing of other bytes. Machine code has no text.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(END.len()).position(|window| window == END)?;
        let (lines, code) = (&bytes[..end], &bytes[end + END.len()..]);
        let mut lines = std::str::from_utf8(lines).ok()?.lines();
        let mut words = lines.next()?.strip_prefix("kernel ")?.split_whitespace();
        let mut ptx = kernel(&mut words)?;
        match words.next()? {
            "machine" => ptx.machine_code = Some(code.to_vec()),
            "text" => ptx.text = std::str::from_utf8(code).ok()?.to_string(),
            _ => return None,
        }
        for line in lines {
            let mut words = line.split_whitespace();
            match words.next()? {
                "parameter" => ptx.parameters.push(parameter(&mut words)?),
                "map" => ptx.maps.push(ArrayMap::read(&mut words)?),
                kind => ptx.hidden.push(input(kind, &mut words)?),
            }
        }
        ptx.is_possible().then_some(ptx)
    }

    /// Whether code generation could have made it for some machine, so that no launch of it computes nonsense.
    fn is_possible(&self) -> bool {
        let fits = |each: u32, most: fn(&Target) -> u32| {
            let all = u64::from(each) * u64::from(self.programs);
            let gpus = Target::GPUS.iter();
            gpus.map(most).max().is_some_and(|most| all <= most.into())
        };
        is_identifier(&self.name)
            && self.programs.is_power_of_two()
            && self.threads > 0
            && self.threads.is_multiple_of(WARP_LANES)
            && fits(self.threads, |target| target.gpu.most_warps * WARP_LANES)
            && fits(self.shared_bytes, |target| target.gpu.shared_bytes)
            && self.parameters.iter().all(|(it, _)| it.divisor > 0)
            && self.hidden.iter().all(|&input| self.has(input))
            && self.maps.iter().all(|map| self.has_array(map))
    }

    /// The type of a parameter's elements, if it is memory.
    fn memory(&self, index: usize) -> Option<DType> {
        let (_, ty) = self.parameters.get(index)?;
        ty.pointee().map(|(dtype, _)| dtype)
    }

    fn has(&self, input: Input) -> bool {
        match input {
            Input::Number(index) => self.parameters.len() > index && self.memory(index).is_none(),
            Input::Address(index) => self.memory(index).is_some(),
            Input::Length(index, dtype) => self.memory(index) == Some(dtype),
            Input::Grid(axis) => axis < GRID_AXES,
            Input::ErrorRecord => true,
        }
    }

    fn has_array(&self, map: &ArrayMap) -> bool {
        (1..=MOST_AXES).contains(&map.shape.len())
            && map.shape.iter().all(|it| (1..=LONGEST).contains(it))
            && matches!(map.swizzle, 0 | 32 | 64 | 128)
            && self.memory(map.parameter) == Some(map.dtype)
    }
}

fn kernel(words: &mut SplitWhitespace<'_>) -> Option<Ptx> {
    Some(Ptx {
        name: words.next()?.to_string(),
        threads: words.next()?.parse().ok()?,
        programs: words.next()?.parse().ok()?,
        shared_bytes: words.next()?.parse().ok()?,
        grid: match words.next()? {
            "direct" => GridMapping::Direct,
            "linear" => GridMapping::Linear,
            _ => return None,
        },
        begins_early: match words.next()? {
            EARLY => true,
            LATE => false,
            _ => return None,
        },
        #[cfg(feature = "llvm")]
        reads_registers: false,
        text: String::new(),
        machine_code: None,
        llvm_before: String::new(),
        llvm_after: String::new(),
        parameters: Vec::new(),
        hidden: Vec::new(),
        maps: Vec::new(),
    })
}

fn parameter(words: &mut SplitWhitespace<'_>) -> Option<(Parameter, Type)> {
    let parameter = Parameter {
        name: words.next()?.to_string(),
        access: match words.next()? {
            "read" => Access::Read,
            "write" => Access::ReadWrite,
            _ => return None,
        },
        divisor: words.next()?.parse().ok()?,
        within: within(words.next()?)?,
        tiled: words.next()?.parse().ok()?,
    };
    let shape = words.next()?;
    let dtype = DType::from_name(words.next()?)?;
    let ty = match shape {
        "pointer" => Type::pointer(dtype, Space::Global),
        "number" => Type::scalar(dtype),
        _ => return None,
    };
    Some((parameter, ty))
}

/// What an integer lies in, if that is known; nothing of other words.
fn within(word: &str) -> Option<Option<[i64; 2]>> {
    if word == ANY {
        return Some(None);
    }
    let (least, most) = word.split_once("..")?;
    Some(Some([least.parse().ok()?, most.parse().ok()?]))
}

fn input(kind: &str, words: &mut SplitWhitespace<'_>) -> Option<Input> {
    let mut index = || words.next()?.parse().ok();
    Some(match kind {
        "number" => Input::Number(index()?),
        "address" => Input::Address(index()?),
        "length" => Input::Length(index()?, DType::from_name(words.next()?)?),
        "grid" => Input::Grid(index()?),
        "record" => Input::ErrorRecord,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Ptx {
        let parameter = |name, access, divisor, tiled| Parameter {
            divisor,
            tiled,
            ..Parameter::new(name, access)
        };
        let pointer = Type::pointer(DType::BF16, Space::Global);
        let mut ptx =
            kernel(&mut "softmax 128 2 4096 linear early".split_whitespace()).expect("is whole");
        ptx.text = "// first\n\n.version 8.7\n".to_string();
        ptx.parameters = vec![
            (parameter("x", Access::Read, 16, true), pointer),
            (parameter("y", Access::ReadWrite, 2, false), pointer),
            (
                parameter("n", Access::Read, 1, false),
                Type::scalar(DType::I32),
            ),
        ];
        ptx.parameters[2].0.within = Some([-5, 4096]);
        ptx.hidden = vec![
            Input::Number(2),
            Input::Address(0),
            Input::Length(1, DType::BF16),
            Input::Grid(1),
            Input::ErrorRecord,
        ];
        ptx
    }

    #[test]
    fn all_comes_back() {
        let text = sample();
        let machine = Ptx {
            machine_code: Some(vec![0, 10, 10, 255]),
            text: String::new(),
            ..sample()
        };
        for ptx in [text, machine] {
            let read = Ptx::from_bytes(&ptx.to_bytes()).expect("is whole");
            assert_eq!(format!("{read:?}"), format!("{ptx:?}"));
        }
    }

    /// Each word of the lines in turn becomes another one: what is still taken has numbers that a launch can use.
    #[test]
    fn no_word_of_an_entry_is_believed() {
        let map = "0 bf16 128 2 64 64 i32 number 2 i64 cast i32 number 2 i64 constant 64";
        let map = ArrayMap::read(&mut map.split_whitespace()).expect("is whole");
        let mut sample = sample();
        sample.maps = vec![map];
        let bytes = sample.to_bytes();
        let end = bytes.windows(2).position(|window| window == END);
        let (lines, code) = bytes.split_at(end.expect("is there"));
        let lines = std::str::from_utf8(lines).expect("is text");
        let words: Vec<&str> = lines.split_inclusive([' ', '\n']).collect();
        let with = |at: usize, other: &str| {
            let mut changed = words.clone();
            let word = words[at].trim_end();
            let other = format!("{other}{}", &words[at][word.len()..]);
            changed[at] = &other;
            Ptx::from_bytes(&[changed.concat().as_bytes(), code].concat())
        };
        let at = |word: &str| words.iter().position(|it| it.trim_end() == word);
        for (word, others) in [
            ("128", ["0", "1", "2048", "4294967295"]),
            ("2", ["0", "3", "16", "2147483648"]),
            ("4096", ["1000000", "4294967295", "-1", "x"]),
            ("softmax", ["0", "a.b", "", "\u{e4}"]),
            ("16", ["0", "-1", "x", ""]),
            ("64", ["0", "257", "-1", ""]),
        ] {
            for other in others {
                let found = with(at(word).expect("is there"), other);
                assert!(found.is_none(), "{word} became {other}: {found:?}");
            }
        }
        let refused = (0..words.len()).filter(|&index| with(index, "0").is_none());
        // What may be 0: shared memory, the first parameter or axis of an input, the index of a number in a map,
        // the swizzle, a constant, a name.
        assert!(refused.count() > words.len() / 2);
        for index in 0..words.len() {
            for other in [
                "0",
                "1",
                "7",
                "4294967295",
                "18446744073709551615",
                "",
                "i8",
            ] {
                let Some(ptx) = with(index, other) else {
                    continue;
                };
                assert!(ptx.threads() > 0 && ptx.shared_bytes() <= 1 << 20);
                let launch = exactile_core::launch::Launch::new([1, 1, 1], &[]);
                let (signature, words) = (ptx.signature(), &mut crate::launch::Words::new());
                assert!(crate::launch::marshal(&ptx, &signature, &launch, 132, words).is_err());
            }
        }
    }

    #[test]
    fn other_bytes_are_no_kernel() {
        let bytes = sample().to_bytes();
        let end = bytes.windows(2).position(|window| window == END);
        for length in 0..end.expect("is there") + END.len() {
            assert!(Ptx::from_bytes(&bytes[..length]).is_none(), "{length}");
        }
        let text = String::from_utf8(bytes).expect("is text");
        for (word, other) in [
            ("read", "reads"),
            ("bf16", "bf17"),
            ("linear", "curved"),
            ("early", "never"),
            ("128", "-1"),
            ("grid", "lattice"),
            ("text", "texts"),
        ] {
            let changed = text.replacen(word, other, 1);
            assert!(Ptx::from_bytes(changed.as_bytes()).is_none(), "{other}");
        }
    }
}
