//! Compiled kernels as bytes: what a launch must know of them in lines of words, then the code.

use std::str::SplitWhitespace;

use exactile_core::ir::{Access, DType, Parameter, Space, Type};
use exactile_core::launch::{ArrayMap, Input};

use crate::codegen::GridMapping;
use crate::ptx::Ptx;

/// What ends the lines.
const END: &[u8] = b"\n\n";

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
        let mut lines = format!("kernel {name} {threads} {programs} {shared} {grid} {kind}");
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
                tiled,
                ..
            } = parameter;
            lines.push_str(&format!(
                "\nparameter {name} {access} {divisor} {tiled} {shape} {dtype}"
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
        Some(ptx)
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
            kernel(&mut "softmax 128 2 4096 linear".split_whitespace()).expect("is whole");
        ptx.text = "// first\n\n.version 8.7\n".to_string();
        ptx.parameters = vec![
            (parameter("x", Access::Read, 16, true), pointer),
            (parameter("y", Access::ReadWrite, 2, false), pointer),
            (
                parameter("n", Access::Read, 1, false),
                Type::scalar(DType::I32),
            ),
        ];
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
            ("128", "-1"),
            ("grid", "lattice"),
            ("text", "texts"),
        ] {
            let changed = text.replacen(word, other, 1);
            assert!(Ptx::from_bytes(changed.as_bytes()).is_none(), "{other}");
        }
    }
}
