//! The header of an NPY file: a Python dictionary of three entries, of which only the form that
//! NumPy writes for arrays of numbers is read.

use std::io::Read;

use exactile_core::ir::DType;

/// The most bytes of a header's text: NumPy's own take a few hundred.
const MOST_BYTES: usize = 1 << 16;

/// The most axes of an array, as in NumPy.
const MOST_AXES: usize = 64;

/// Bytes of the header that an error shows.
const SHOWN: usize = 80;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// How an array lies in its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) big_endian: bool,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
    /// Bytes before the numbers.
    pub(super) bytes: usize,
}

/// Why a header was not read.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The file ends, or the system refuses to read it.
    Read(std::io::Error),
    /// It is not what it should be.
    Malformed(String),
}

fn malformed<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Malformed(message.into()))
}

impl Header {
    /// Reads up to the first byte of the numbers.
    pub(super) fn read(reader: &mut impl Read) -> Result<Self, Refusal> {
        let mut start = [0; 8];
        fill(reader, &mut start)?;
        let [magic @ .., major, minor] = &start;
        if magic != MAGIC {
            return malformed("the magic bytes are missing");
        }
        let mut length = [0; 4];
        let length_bytes = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => return malformed(format!("version {major}.{minor} is not known")),
        };
        fill(reader, &mut length[..length_bytes])?;
        let length = u32::from_le_bytes(length);
        let Some(text_bytes) = usize::try_from(length).ok().filter(|&n| n <= MOST_BYTES) else {
            return malformed(format!(
                "a header of {length} bytes, expected at most {MOST_BYTES}"
            ));
        };
        let mut text = vec![0; text_bytes];
        fill(reader, &mut text)?;
        let before = start.len() + length_bytes;
        let entries = Cursor::new(&text, before).entries()?;
        Ok(Self {
            bytes: before + text_bytes,
            ..entries
        })
    }

    /// The file's first bytes in version 1.0; numbers begin at a multiple of 64.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        const PREFIX: usize = 10;
        let order = if self.big_endian { '>' } else { '<' };
        let order = if self.dtype.bytes() == 1 { '|' } else { order };
        let kind = format!("{order}{}", self.dtype.npy());
        let fortran = if self.fortran_order { "True" } else { "False" };
        let extents: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let comma = if extents.len() == 1 { "," } else { "" };
        let mut text = format!(
            "{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': ({}{comma}), }}",
            extents.join(", ")
        );
        while !(PREFIX + text.len() + 1).is_multiple_of(64) {
            text.push(' ');
        }
        text.push('\n');
        let mut bytes = [MAGIC.as_slice(), &[1, 0]].concat();
        bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }
}

fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> Result<(), Refusal> {
    reader.read_exact(bytes).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            Refusal::Malformed("the file ends within its header".to_string())
        } else {
            Refusal::Read(error)
        }
    })
}

/// A place in the text of a header.
struct Cursor<'a> {
    text: &'a [u8],
    position: usize,
    /// Bytes of the file before the text.
    before: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a [u8], before: usize) -> Self {
        Self {
            text,
            position: 0,
            before,
        }
    }

    /// The three entries, each once, and nothing else.
    fn entries(mut self) -> Result<Header, Refusal> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let place = self.position;
            let repeated = match self.quoted()? {
                b"descr" => {
                    self.expect(b':')?;
                    descr.replace(self.descr()?).is_some()
                }
                b"fortran_order" => {
                    self.expect(b':')?;
                    fortran_order.replace(self.boolean()?).is_some()
                }
                b"shape" => {
                    self.expect(b':')?;
                    shape.replace(self.shape()?).is_some()
                }
                _ => return self.refuse_at(place, "an unknown entry"),
            };
            if repeated {
                return self.refuse_at(place, "an entry for the second time");
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        self.skip_space();
        if self.position < self.text.len() {
            return self.refuse("text after the header's end");
        }
        match (descr, fortran_order, shape) {
            (Some((dtype, big_endian)), Some(fortran_order), Some(shape)) => Ok(Header {
                dtype,
                big_endian,
                fortran_order,
                shape,
                bytes: 0,
            }),
            (None, _, _) => self.refuse("no entry `descr`"),
            (_, None, _) => self.refuse("no entry `fortran_order`"),
            (_, _, None) => self.refuse("no entry `shape`"),
        }
    }

    /// A data type and whether it is big-endian.
    fn descr(&mut self) -> Result<(DType, bool), Refusal> {
        self.skip_space();
        let place = self.position;
        let quoted = self.quoted()?;
        let Some((&order, kind)) = quoted.split_first() else {
            return self.refuse_at(place, "no data type");
        };
        let found = DType::ALL.iter().find(|it| it.npy().as_bytes() == kind);
        let Some(&dtype) = found else {
            return self.refuse_at(place, "an unsupported data type");
        };
        match (order, dtype.bytes()) {
            (b'|', 1) | (b'<', _) => Ok((dtype, false)),
            (b'>', _) => Ok((dtype, true)),
            _ => self.refuse_at(place, "an unsupported byte order"),
        }
    }

    fn boolean(&mut self) -> Result<bool, Refusal> {
        self.skip_space();
        for (word, value) in [("False", false), ("True", true)] {
            if self.text[self.position..].starts_with(word.as_bytes()) {
                self.position += word.len();
                return Ok(value);
            }
        }
        self.refuse("neither `True` nor `False`")
    }

    /// A flat tuple; that of one extent needs its comma, as in Python.
    fn shape(&mut self) -> Result<Vec<usize>, Refusal> {
        let mut extents = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            if extents.len() == MOST_AXES {
                return self.refuse(&format!("more than {MOST_AXES} axes"));
            }
            extents.push(self.extent()?);
            if !self.take(b',') {
                if extents.len() == 1 {
                    return self.refuse("no comma after the only extent");
                }
                self.expect(b')')?;
                break;
            }
        }
        Ok(extents)
    }

    /// A decimal number, with the `L` of Python 2.
    fn extent(&mut self) -> Result<usize, Refusal> {
        self.skip_space();
        let rest = &self.text[self.position..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = &rest[..count];
        if count == 0 || (count > 1 && digits[0] == b'0') {
            return self.refuse("no decimal number");
        }
        let value = digits.iter().try_fold(0usize, |value, digit| {
            value
                .checked_mul(10)?
                .checked_add(usize::from(digit - b'0'))
        });
        let Some(value) = value else {
            return self.refuse("an extent that is too large");
        };
        self.position += count;
        if self.text.get(self.position) == Some(&b'L') {
            self.position += 1;
        }
        Ok(value)
    }

    /// What stands between two quotes of one kind, without escapes.
    fn quoted(&mut self) -> Result<&'a [u8], Refusal> {
        self.skip_space();
        let quote = match self.text.get(self.position) {
            Some(&quote @ (b'\'' | b'"')) => quote,
            Some(_) | None => return self.refuse("no quoted text"),
        };
        let inside = &self.text[self.position + 1..];
        match inside
            .iter()
            .position(|&byte| byte == quote || byte == b'\\')
        {
            Some(end) if inside[end] == quote => {
                self.position += end + 2;
                Ok(&inside[..end])
            }
            Some(_) | None => self.refuse("quoted text without an end"),
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.position) {
            self.position += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.get(self.position) == Some(&byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Refusal> {
        match self.take(byte) {
            true => Ok(()),
            false => self.refuse(&format!("no `{}`", char::from(byte))),
        }
    }

    fn refuse<T>(&self, what: &str) -> Result<T, Refusal> {
        self.refuse_at(self.position, what)
    }

    fn refuse_at<T>(&self, position: usize, what: &str) -> Result<T, Refusal> {
        let rest = &self.text[position..];
        let printed = |&byte: &u8| match byte {
            b' '..=b'~' => char::from(byte).to_string(),
            _ => byte.escape_ascii().to_string(),
        };
        let shown: String = rest.iter().take(SHOWN).map(printed).collect();
        malformed(format!(
            "{what} at byte {}: `{shown}`",
            self.before + position
        ))
    }
}

#[cfg(test)]
mod tests {
    use exactile_core::random::Random;

    use super::*;

    fn parse(text: &str) -> Result<Header, String> {
        Cursor::new(text.as_bytes(), 10)
            .entries()
            .map_err(|refusal| match refusal {
                Refusal::Malformed(message) => message,
                Refusal::Read(error) => error.to_string(),
            })
    }

    #[test]
    fn entries_come_in_any_order_and_spelling() {
        let written = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 30), }  \n";
        let header = parse(written).expect("as NumPy writes it");
        assert_eq!(
            (header.dtype, &header.shape[..]),
            (DType::F32, &[2, 30][..])
        );
        for same in [
            "{\"shape\":(2,30),\"fortran_order\":False,\"descr\":\"<f4\"}",
            "{ 'shape' : ( 2L , 30L , ) ,\n'descr':'<f4','fortran_order' : False,}",
        ] {
            assert_eq!(parse(same), Ok(header.clone()), "{same}");
        }
    }

    #[test]
    fn all_else_is_refused_with_its_place() {
        let with = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}")
        };
        let good = with("'<i2'", "True", "()");
        assert!(parse(&good).is_ok());
        for (text, expected) in [
            (String::new(), "no `{` at byte 10"),
            ("{}".to_string(), "no entry `descr`"),
            (
                "{'descr': '<i2', 'shape': ()}".to_string(),
                "no entry `fortran_order`",
            ),
            (good.replace("shape", "extra"), "unknown entry at byte 50"),
            (
                good.replace("'fortran_order': True", "'descr': '<i2'"),
                "second time",
            ),
            (format!("{good} ,"), "text after the header's end at byte"),
            (
                with("'<c8'", "True", "()"),
                "unsupported data type at byte 20: `'<c8'",
            ),
            (with("'|i2'", "True", "()"), "unsupported byte order"),
            (with("'=i2'", "True", "()"), "unsupported byte order"),
            (with("''", "True", "()"), "no data type"),
            (with("[('a', '<i2')]", "True", "()"), "no quoted text"),
            (with("'<i2\\'", "True", "()"), "without an end"),
            (with("'<i2'", "true", "()"), "neither `True` nor `False`"),
            (with("'<i2'", "1", "()"), "neither `True` nor `False`"),
            (with("'<i2'", "True", "3"), "no `(`"),
            (with("'<i2'", "True", "(3)"), "no comma"),
            (with("'<i2'", "True", "(,)"), "no decimal number"),
            (with("'<i2'", "True", "(-1,)"), "no decimal number"),
            (with("'<i2'", "True", "(03,)"), "no decimal number"),
            (with("'<i2'", "True", "(1.0,)"), "no comma"),
            (with("'<i2'", "True", "((1,),)"), "no decimal number"),
            (
                with("'<i2'", "True", "(18446744073709551616,)"),
                "too large",
            ),
            (
                with("'<i2'", "True", &format!("({})", "1,".repeat(65))),
                "more than 64 axes",
            ),
        ] {
            let message = parse(&text).expect_err(&text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    /// A header that is read says the same when it is written again.
    #[test]
    fn mutants_are_refused_or_mean_what_they_say() {
        let good = b"{'descr': '>f8', 'fortran_order': True, 'shape': (12, 3L, 456,), }    \n";
        let mut numbers = Random::new(1);
        let mut random = |bound: usize| numbers.below(bound);
        let mut accepted = 0;
        for _ in 0..100_000 {
            let mut text = good.to_vec();
            for _ in 0..=random(3) {
                let place = random(text.len());
                match random(4) {
                    0 => text[place] = random(256) as u8,
                    1 => drop(text.remove(place)),
                    2 => text.insert(place, good[random(good.len())]),
                    _ => text[place] = b"(){}[],:'L019 "[random(14)],
                }
            }
            let Ok(header) = Cursor::new(&text, 10).entries() else {
                continue;
            };
            accepted += 1;
            let bytes = header.to_bytes();
            let again = Header::read(&mut bytes.as_slice()).expect("written by us");
            assert_eq!(again.bytes, bytes.len());
            assert_eq!(Header { bytes: 0, ..again }, header);
        }
        assert!((1_000..50_000).contains(&accepted), "{accepted}");
    }
}
