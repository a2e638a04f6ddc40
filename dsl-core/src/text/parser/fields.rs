//! Fields of ops from the text form.

use super::{Parsed, Parser};
use crate::ir::field::{FieldReader, ReadError};
use crate::ir::{Literal, Region, Value};
use crate::text::lexer::TokenKind;
use crate::text::number;

impl Parser<'_> {
    /// Whether the field `name` comes next, behind a comma where others are before it.
    fn comes(&self, name: &str) -> bool {
        let mut ahead = self.tokens[self.position..].iter().map(|token| token.text);
        let follows = self.first || ahead.next() == Some(",");
        follows && ahead.next() == Some(name) && ahead.next() == Some("=")
    }

    fn key(&mut self, name: &str) -> Parsed<()> {
        self.separate()?;
        self.expect(name)?;
        self.expect("=")
    }
}

impl FieldReader for Parser<'_> {
    fn operand(&mut self) -> Parsed<Value> {
        self.separate()?;
        self.value()
    }

    fn operands(&mut self) -> Parsed<Vec<Value>> {
        self.separate()?;
        self.expect("[")?;
        let mut values = Vec::new();
        while !self.eat("]") {
            values.push(self.value()?);
            if !self.eat(",") && self.peek().text != "]" {
                return self.unexpected("`,` or `]`");
            }
        }
        Ok(values)
    }

    fn named_operand(&mut self, name: &str) -> Parsed<Option<Value>> {
        if !self.comes(name) {
            return Ok(None);
        }
        self.key(name)?;
        self.value().map(Some)
    }

    fn attribute(&mut self, name: &str) -> Parsed<String> {
        self.key(name)?;
        if !self.eat("[") {
            let quoted = self.token(TokenKind::Quoted, "a text");
            return Ok(quoted.or_else(|_| self.word("a value"))?.to_string());
        }
        let mut text = String::from("[");
        while !self.eat("]") {
            if self.peek().kind == TokenKind::End {
                return self.unexpected("`]`");
            }
            text.push_str(self.next().text);
        }
        text.push(']');
        Ok(text)
    }

    fn optional_attribute(&mut self, name: &str) -> Parsed<Option<String>> {
        let comes = self.comes(name);
        comes.then(|| self.attribute(name)).transpose()
    }

    fn literal(&mut self, name: &str) -> Parsed<Literal> {
        self.key(name)?;
        let word = self.word("a typed number such as `f32(1.5)`")?;
        let dtype = self.dtype(word)?;
        self.expect("(")?;
        let mut text = self.word("a number")?.to_string();
        if self.eat(":") {
            text = format!("{text}:{}", self.word("bits")?);
        }
        self.expect(")")?;
        number::parse(dtype, &text)
            .ok_or_else(|| ReadError(format!("`{text}` is no number of type {dtype}")))
    }

    fn region(&mut self) -> Parsed<Region> {
        let region = self.func.add_region();
        self.nested.push(region);
        Ok(region)
    }
}
