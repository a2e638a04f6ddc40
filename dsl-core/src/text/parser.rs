//! Parses a function. Types come from the text as they stand; the verifier judges them.

mod fields;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lexer::{Token, TokenKind, tokenize};
use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::ir::field::ReadError;
use crate::ir::{
    Access, DType, Element, Func, Layout, Op, Parameter, Region, Shape, Space, Stage, Type, Value,
    most_depth,
};
use crate::target::ScheduleField;

/// Parses one function; `file` names the text in locations. All syntax errors that can be told
/// apart come at once.
pub fn parse(source: &str, file: &str) -> Result<Func, Diagnostics> {
    let mut parser = Parser {
        tokens: tokenize(source),
        position: 0,
        start: 0,
        file: Arc::from(file),
        func: Func::new("", Stage::Block),
        nested: Vec::new(),
        names: BTreeMap::new(),
        layouts: BTreeMap::new(),
        first: true,
        diagnostics: Diagnostics::new(),
    };
    if let Err(error) = parser.function() {
        parser.report(error);
    }
    parser.diagnostics.into_result(parser.func)
}

pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
    /// The first token of the current instruction.
    start: usize,
    file: Arc<str>,
    pub(super) func: Func,
    /// The regions of the op being read, which come after its other fields.
    nested: Vec<Region>,
    names: BTreeMap<String, Value>,
    pub(super) layouts: BTreeMap<String, Layout>,
    first: bool,
    diagnostics: Diagnostics,
}

/// An instruction whose regions are being read: a list of them stands for recursion.
struct Open<'a> {
    /// The first token.
    start: Token<'a>,
    names: Vec<Token<'a>>,
    op: Op,
    /// The regions that come next.
    left: std::vec::IntoIter<Region>,
    /// Where the instruction stands.
    outer: Region,
}

pub(super) type Parsed<T> = Result<T, ReadError>;

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Token<'a> {
        self.tokens[self.position]
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.position += 1;
        }
        token
    }

    fn loc(&self, token: Token<'_>) -> Loc {
        Loc {
            file: Arc::clone(&self.file),
            line: token.line,
            column: token.column,
        }
    }

    fn report(&mut self, error: ReadError) {
        let mut token = self.peek();
        // What is wrong with the last word of a line is not the fault of the next line.
        if self.position > self.start {
            let last = self.tokens[self.position - 1];
            token = if last.line < token.line { last } else { token };
        }
        let loc = self.loc(token);
        self.diagnostics.push(Diagnostic::new(loc, error.0));
    }

    pub(super) fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        let token = self.peek();
        Err(ReadError(match token.kind {
            TokenKind::End => format!("expected {expected}, found the end of the text"),
            TokenKind::Value => format!("expected {expected}, found `%{}`", token.text),
            TokenKind::Symbol => format!("expected {expected}, found `@{}`", token.text),
            TokenKind::Layout => format!("expected {expected}, found `#{}`", token.text),
            TokenKind::Word | TokenKind::Quoted | TokenKind::Punctuation => {
                format!("expected {expected}, found `{}`", token.text)
            }
        }))
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let token = self.peek();
        let found = matches!(token.kind, TokenKind::Word | TokenKind::Punctuation);
        if found && token.text == text {
            self.position += 1;
            return true;
        }
        false
    }

    pub(super) fn expect(&mut self, text: &str) -> Parsed<()> {
        if self.eat(text) {
            Ok(())
        } else {
            self.unexpected(&format!("`{text}`"))
        }
    }

    pub(super) fn token(&mut self, kind: TokenKind, expected: &str) -> Parsed<&'a str> {
        if self.peek().kind == kind {
            Ok(self.next().text)
        } else {
            self.unexpected(expected)
        }
    }

    pub(super) fn word(&mut self, expected: &str) -> Parsed<&'a str> {
        self.token(TokenKind::Word, expected)
    }

    pub(super) fn integer<T: std::str::FromStr>(&mut self, expected: &str) -> Parsed<T> {
        let word = self.word(expected)?;
        word.parse()
            .map_err(|_| ReadError(format!("`{word}` is not {expected}")))
    }

    fn function(&mut self) -> Parsed<()> {
        self.expect("func")?;
        self.func.name = self.token(TokenKind::Symbol, "`@name`")?.to_string();
        let stages = "`block`, `schedule` or `lane`";
        let stage = self.word(&format!("a stage: {stages}"))?;
        self.func.stage = Stage::from_word(stage)
            .ok_or_else(|| ReadError(format!("unknown stage `{stage}`: expected {stages}")))?;
        if self.eat("warps") {
            self.expect("=")?;
            self.func.warps = self.integer("a number of warps")?;
        }
        for &field in ScheduleField::ALL {
            let name = field.row().name;
            if field.row().kept && self.eat(name) {
                self.expect("=")?;
                let value = self.integer(&format!("a number for `{name}`"))?;
                self.func.schedule.set(field, Some(value));
            }
        }
        self.expect("(")?;
        while !self.eat(")") {
            self.parameter()?;
            if !self.eat(",") && self.peek().text != ")" {
                return self.unexpected("`,` or `)`");
            }
        }
        self.expect("{")?;
        self.layouts()?;
        self.insts()?;
        if self.peek().kind != TokenKind::End {
            return self.unexpected("the end of the text");
        }
        Ok(())
    }

    fn parameter(&mut self) -> Parsed<()> {
        let token = self.peek();
        let value_name = self.token(TokenKind::Value, "a parameter `%name`")?;
        let name = if self.peek().text == ":" {
            value_name
        } else {
            self.word("a parameter name")?
        };
        self.expect(":")?;
        let (ty, _) = self.ty()?;
        let mut parameter = Parameter::new(name, Access::Read);
        loop {
            if self.eat("write") {
                parameter.access = Access::ReadWrite;
            } else if self.eat("tiled") {
                parameter.tiled = true;
            } else if self.eat("divisor") {
                self.expect("=")?;
                parameter.divisor = self.integer("a divisor")?;
            } else if self.eat("least") {
                self.expect("=")?;
                let least = self.integer("the least integer")?;
                for expected in ["most", "="] {
                    self.expect(expected)?;
                }
                parameter.within = Some([least, self.integer("the greatest integer")?]);
            } else {
                break;
            }
        }
        let value = self.func.add_parameter(parameter, ty);
        self.define(token, value_name, value);
        Ok(())
    }

    fn define(&mut self, token: Token<'_>, name: &str, value: Value) {
        if self.names.insert(name.to_string(), value).is_some() {
            let loc = self.loc(token);
            self.diagnostics
                .error(&loc, format!("`%{name}` is defined twice"));
        }
    }

    /// The instructions of the body up to its end, and of all regions in it.
    fn insts(&mut self) -> Parsed<()> {
        let mut region = self.func.body();
        let mut open = Vec::new();
        let most = most_depth(self.func.stage);
        loop {
            let mut start = self.peek();
            let read = if self.eat("}") {
                let Some(owner) = open.pop() else {
                    return Ok(());
                };
                Ok(owner)
            } else if start.kind == TokenKind::End {
                return self.unexpected("`}`");
            } else {
                self.inst(region)
            };
            let read = read.and_then(|owner| {
                (start, region) = (owner.start, owner.outer);
                self.advance(owner)
            });
            match read {
                Ok(None) => {}
                Ok(Some(_)) if open.len() == most => {
                    let message = format!("regions nest more than {most} deep");
                    return Err(ReadError(message));
                }
                Ok(Some((inner, owner))) => {
                    region = inner;
                    open.push(owner);
                }
                Err(error) => {
                    self.report(error);
                    let line = start.line;
                    while self.peek().line <= line && self.peek().kind != TokenKind::End {
                        self.position += 1;
                    }
                }
            }
        }
    }

    /// Reads an instruction up to its first region.
    fn inst(&mut self, outer: Region) -> Parsed<Open<'a>> {
        let start = self.peek();
        self.start = self.position;
        let mut names = Vec::new();
        while self.peek().kind == TokenKind::Value {
            names.push(self.next());
            if !self.eat(",") {
                self.expect("=")?;
                break;
            }
        }
        let mnemonic = self.word("an op")?;
        self.first = true;
        self.nested.clear();
        let op = Op::read(mnemonic, self);
        let op = op.unwrap_or_else(|| Err(ReadError(format!("unknown op `{mnemonic}`"))))?;
        Ok(Open {
            start,
            names,
            op,
            left: std::mem::take(&mut self.nested).into_iter(),
            outer,
        })
    }

    /// Reads the head of the next region of an instruction, or what follows its last one.
    fn advance(&mut self, mut owner: Open<'a>) -> Parsed<Option<(Region, Open<'a>)>> {
        if let Some(region) = owner.left.next() {
            self.head(region)?;
            return Ok(Some((region, owner)));
        }
        let names = owner.names;
        let mut types = Vec::new();
        if !names.is_empty() {
            self.expect(":")?;
            types.push(self.ty()?);
            while self.eat(",") {
                types.push(self.ty()?);
            }
        }
        if types.len() != names.len() {
            return Err(ReadError(format!(
                "{} results but {} types",
                names.len(),
                types.len()
            )));
        }
        let loc = self.loc(owner.start);
        let (types, layouts): (Vec<Type>, Vec<Option<Layout>>) = types.into_iter().unzip();
        let inst = self.func.add_inst(owner.op, &types, loc);
        let results = self.func.inst(inst).results.clone();
        for ((token, value), layout) in names.into_iter().zip(results).zip(layouts) {
            self.func.set_layout(value, layout);
            self.define(token, token.text, value);
        }
        self.func.region_mut(owner.outer).insts.push(inst);
        Ok(None)
    }

    /// The parameters of a region and its opening brace.
    fn head(&mut self, region: Region) -> Parsed<()> {
        self.expect("(")?;
        while !self.eat(")") {
            let token = self.peek();
            let name = self.token(TokenKind::Value, "a parameter `%name`")?;
            self.expect(":")?;
            let (ty, layout) = self.ty()?;
            let value = self.func.add_region_parameter(region, ty);
            self.func.set_layout(value, layout);
            self.define(token, name, value);
            if !self.eat(",") && self.peek().text != ")" {
                return self.unexpected("`,` or `)`");
            }
        }
        self.expect("{")
    }

    /// A type, and the layout of a tile if it is stated.
    fn ty(&mut self) -> Parsed<(Type, Option<Layout>)> {
        let slots = self.eat("buffer");
        let row = !slots && self.eat("row");
        let pending = !slots && !row && self.eat("pending");
        if !slots && !row && !pending && !self.eat("tile") {
            let word = self.word("a type")?;
            let (element, shape) = (self.element(word)?, Shape::SCALAR);
            return Ok((Type { element, shape }, None));
        }
        self.expect("<")?;
        let word = self.word("extents and an element, such as `8x4xf32`")?;
        let mut dims = Vec::new();
        let mut rest = word;
        while rest.starts_with(|c: char| c.is_ascii_digit()) {
            let (extent, after) = rest.split_once('x').unwrap_or((rest, ""));
            let number = extent.parse();
            dims.push(number.map_err(|_| ReadError::no(extent, "extent"))?);
            rest = after;
        }
        let mut element = self.element(rest)?;
        if slots {
            let count = (!dims.is_empty()).then(|| dims.remove(0));
            let count = count.and_then(|count| u8::try_from(count).ok());
            element = match (element, count) {
                (Element::Number(dtype), Some(count)) => Element::Buffer(dtype, count),
                (_, _) => return Err(ReadError::no(word, "buffer")),
            };
        }
        if row {
            let Element::Number(dtype) = element else {
                return Err(ReadError::no(word, "row"));
            };
            element = Element::Row(dtype);
        }
        if pending {
            element = element
                .pending()
                .ok_or_else(|| ReadError::no(word, "type of sums"))?;
        }
        let layout = self.layout()?;
        self.expect(">")?;
        let shape = Shape::new(&dims).map_err(ReadError)?;
        Ok((Type { element, shape }, layout))
    }

    fn element(&mut self, word: &str) -> Parsed<Element> {
        if !["ptr", "accumulator", "tensor"].contains(&word) {
            let dtype = self.dtype(word)?;
            return Ok(Element::Number(dtype));
        }
        self.expect("<")?;
        let dtype = self.word("a data type")?;
        let dtype = self.dtype(dtype)?;
        if word != "ptr" {
            self.expect(",")?;
            let element = match word {
                "accumulator" => Element::Accumulator(dtype, self.integer("a number of levels")?),
                _ => Element::Tensor(dtype, self.integer("a rank")?),
            };
            self.expect(">")?;
            return Ok(element);
        }
        let space = if self.eat(",") {
            match self.word("`shared` or `scratch`")? {
                "shared" => Space::Shared,
                "scratch" => Space::Scratch,
                other => return Err(ReadError(format!("unknown memory space `{other}`"))),
            }
        } else {
            Space::Global
        };
        self.expect(">")?;
        Ok(Element::Pointer(dtype, space))
    }

    fn dtype(&self, word: &str) -> Parsed<DType> {
        DType::from_name(word).ok_or_else(|| ReadError(format!("unknown type `{word}`")))
    }

    fn separate(&mut self) -> Parsed<()> {
        if std::mem::replace(&mut self.first, false) {
            Ok(())
        } else {
            self.expect(",")
        }
    }

    fn value(&mut self) -> Parsed<Value> {
        let name = self.token(TokenKind::Value, "an operand `%name`")?;
        self.names.get(name).copied().ok_or_else(|| {
            self.position -= 1;
            ReadError(format!("`%{name}` is not defined"))
        })
    }
}
