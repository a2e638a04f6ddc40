//! Fields of op rows: how each kind of field is visited, written and read. Never per op.

use super::{
    AtomicOp, Axis, Bits, Cache, Direction, Indices, Literal, MemoryOrder, NumberFormat, Order,
    Precision, Region, RoleRegions, Scope, SortOrder, Value,
};

/// Writes fields in the text form.
pub trait FieldWriter {
    /// A positional operand.
    fn operand(&mut self, value: Value);
    /// A positional list of operands, in brackets.
    fn operands(&mut self, values: &[Value]);
    /// An operand written `name=%value`.
    fn named_operand(&mut self, name: &str, value: Value);
    /// An attribute written `name=text`.
    fn attribute(&mut self, name: &str, text: &str);
    /// A literal attribute.
    fn literal(&mut self, name: &str, literal: Literal);
    /// A region in braces.
    fn region(&mut self, region: Region);
}

/// Reads fields from the text form. Errors are recorded by the reader; `Err(())` means one was.
pub trait FieldReader {
    /// A positional operand.
    fn operand(&mut self) -> Result<Value, ReadError>;
    /// A positional list of operands, in brackets.
    fn operands(&mut self) -> Result<Vec<Value>, ReadError>;
    /// An operand written `name=%value`, if it comes next.
    fn named_operand(&mut self, name: &str) -> Result<Option<Value>, ReadError>;
    /// The text of the attribute `name`.
    fn attribute(&mut self, name: &str) -> Result<String, ReadError>;
    /// The text of the attribute `name`, if it comes next.
    fn optional_attribute(&mut self, name: &str) -> Result<Option<String>, ReadError>;
    /// A literal attribute.
    fn literal(&mut self, name: &str) -> Result<Literal, ReadError>;
    /// A region in braces. Regions are the last fields of an op, so a reader may fill them later.
    fn region(&mut self) -> Result<Region, ReadError>;
}

/// The message of a syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError(pub String);

impl ReadError {
    /// What is found where something else is expected.
    pub fn no(found: &str, expected: &str) -> Self {
        Self(format!("`{found}` is no {expected}"))
    }
}

/// A kind of field.
pub trait Field: Sized {
    /// Writes the field.
    fn write(&self, name: &str, writer: &mut dyn FieldWriter);
    /// Reads the field.
    fn read(name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError>;
    /// Calls `visit` with each operand.
    fn values(&self, _visit: &mut dyn FnMut(Value)) {}
    /// Replaces each operand.
    fn map_values(&mut self, _map: &mut dyn FnMut(Value) -> Value) {}
    /// Calls `visit` with each region.
    fn regions(&self, _visit: &mut dyn FnMut(Region)) {}
    /// Replaces each region.
    fn map_regions(&mut self, _map: &mut dyn FnMut(Region) -> Region) {}
}

impl Field for Value {
    fn write(&self, _name: &str, writer: &mut dyn FieldWriter) {
        writer.operand(*self);
    }
    fn read(_name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
        reader.operand()
    }
    fn values(&self, visit: &mut dyn FnMut(Value)) {
        visit(*self);
    }
    fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        *self = map(*self);
    }
}

impl Field for Option<Value> {
    fn write(&self, name: &str, writer: &mut dyn FieldWriter) {
        if let Some(value) = self {
            writer.named_operand(name, *value);
        }
    }
    fn read(name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
        reader.named_operand(name)
    }
    fn values(&self, visit: &mut dyn FnMut(Value)) {
        if let Some(value) = self {
            visit(*value);
        }
    }
    fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        if let Some(value) = self {
            *value = map(*value);
        }
    }
}

/// A list of operands.
pub type Values = Vec<Value>;

impl Field for Values {
    fn write(&self, _name: &str, writer: &mut dyn FieldWriter) {
        writer.operands(self);
    }
    fn read(_name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
        reader.operands()
    }
    fn values(&self, visit: &mut dyn FnMut(Value)) {
        self.iter().for_each(|value| visit(*value));
    }
    fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        for value in self {
            *value = map(*value);
        }
    }
}

impl Field for Region {
    fn write(&self, _name: &str, writer: &mut dyn FieldWriter) {
        writer.region(*self);
    }
    fn read(_name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
        reader.region()
    }
    fn regions(&self, visit: &mut dyn FnMut(Region)) {
        visit(*self);
    }
    fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
        *self = map(*self);
    }
}

impl Field for RoleRegions {
    fn write(&self, name: &str, writer: &mut dyn FieldWriter) {
        let warps: Indices = self.iter().map(|&(warps, _)| warps).collect();
        warps.write(name, writer);
        self.iter().for_each(|&(_, region)| writer.region(region));
    }
    fn read(name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
        let warps = Indices::read(name, reader)?;
        let roles = warps.into_iter().map(|warps| Ok((warps, reader.region()?)));
        roles.collect()
    }
    fn regions(&self, visit: &mut dyn FnMut(Region)) {
        self.iter().for_each(|&(_, region)| visit(region));
    }
    fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
        for (_, region) in self {
            *region = map(*region);
        }
    }
}

impl Field for Literal {
    fn write(&self, name: &str, writer: &mut dyn FieldWriter) {
        writer.literal(name, *self);
    }
    fn read(name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
        reader.literal(name)
    }
}

/// Fields whose text is one word, or which are not there.
macro_rules! optional_word_field {
    ($($Kind:ty: $expected:literal;)*) => { $(
        impl Field for Option<$Kind> {
            fn write(&self, name: &str, writer: &mut dyn FieldWriter) {
                if let Some(word) = self {
                    writer.attribute(name, word.word());
                }
            }
            fn read(name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
                let Some(text) = reader.optional_attribute(name)? else {
                    return Ok(None);
                };
                let found = <$Kind>::from_word(&text);
                found.map(Some).ok_or_else(|| ReadError::no(&text, $expected))
            }
        }
    )* };
}

optional_word_field! {
    Cache: "hint for caches";
    MemoryOrder: "order of memory: `acquire`, `release` or `acquire_release`";
    NumberFormat: "format of numbers: `hexadecimal`";
    Scope: "scope: `program` or `system`";
}

impl Field for Option<Axis> {
    fn write(&self, name: &str, writer: &mut dyn FieldWriter) {
        if let Some(axis) = self {
            axis.write(name, writer);
        }
    }
    fn read(name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
        let Some(text) = reader.optional_attribute(name)? else {
            return Ok(None);
        };
        let axis = text.parse().map(Axis);
        axis.map(Some).map_err(|_| ReadError::no(&text, "axis"))
    }
}

/// Fields whose text is one word.
macro_rules! word_field {
    ($($Kind:ty: $write:expr, $read:expr, $expected:literal;)*) => { $(
        impl Field for $Kind {
            fn write(&self, name: &str, writer: &mut dyn FieldWriter) {
                let write: fn(&Self) -> String = $write;
                writer.attribute(name, &write(self));
            }
            fn read(name: &str, reader: &mut dyn FieldReader) -> Result<Self, ReadError> {
                let read: fn(&str) -> Option<Self> = $read;
                let text = reader.attribute(name)?;
                read(&text).ok_or_else(|| {
                    ReadError(format!(concat!("`{}={}` is not ", $expected), name, text))
                })
            }
        }
    )* };
}

word_field! {
    i64: ToString::to_string, |text| text.parse().ok(), "an integer";
    String: |text| quote(text), unquote, "a text in quotes";
    Axis: |axis| axis.0.to_string(), |text| text.parse().ok().map(Axis), "an axis";
    Order: |order| order.word().to_string(), Order::from_word, "an order: `tree` or `any`";
    Direction: |direction| direction.word().to_string(), Direction::from_word, "a direction: `forward` or `reverse`";
    SortOrder: |direction| direction.word().to_string(), SortOrder::from_word, "a direction: `ascending` or `descending`";
    Precision: |precision| precision.word().to_string(), Precision::from_word, "a precision: `ieee` or `hopper`";
    AtomicOp: |op| op.word().to_string(), AtomicOp::from_word, "an atomic op: `add`, `min`, `max`, `and`, `or`, `xor`, `exchange` or `load`";
    Indices: write_indices, |text| read_list(text, |item| item.parse().ok()), "a list of indices such as `[1, 0]`";
    Bits: write_bits, |text| read_list(text, read_bit), "a list of bits such as `[1, -, 0]`";
}

fn write_indices(indices: &Indices) -> String {
    format!("{indices:?}")
}

fn write_bits(bits: &Bits) -> String {
    let item = |bit: &Option<u8>| bit.map_or("-".to_string(), |bit| bit.to_string());
    let items: Vec<String> = bits.iter().map(item).collect();
    format!("[{}]", items.join(", "))
}

fn read_bit(item: &str) -> Option<Option<u8>> {
    match item {
        "-" => Some(None),
        _ => item.parse().ok().map(Some),
    }
}

fn read_list<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    if inner.is_empty() {
        return Some(Vec::new());
    }
    inner.split(',').map(|text| item(text.trim())).collect()
}

/// A text as the text form writes it: in quotes, on one line, without a character that means something there.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' | ';' => quoted.extend(character.escape_unicode()),
            ' '..='~' => quoted.push(character),
            _ => quoted.extend(character.escape_unicode()),
        }
    }
    quoted.push('"');
    quoted
}

/// The text that [`quote`] wrote; `None` for what is none.
pub fn unquote(quoted: &str) -> Option<String> {
    let mut rest = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    while let Some((plain, escaped)) = rest.split_once('\\') {
        let (code, after) = escaped.strip_prefix("u{")?.split_once('}')?;
        text.push_str(plain);
        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}
