//! Splits the text form into tokens with their places.

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    /// `%name`, without the sign.
    Value,
    /// `@name`, without the sign.
    Symbol,
    /// `#name`, without the sign.
    Layout,
    /// A word or number.
    Word,
    /// A text in quotes, with them.
    Quoted,
    /// One character of punctuation.
    Punctuation,
    /// The end of the text.
    End,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) line: u32,
    pub(super) column: u32,
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || "_.-+".contains(character)
}

/// How many characters of `text` stand before its end `rest`.
fn characters(text: &str, rest: &str) -> u32 {
    text[..text.len() - rest.len()].chars().count() as u32
}

/// All tokens, ended by one of kind [`TokenKind::End`].
pub(super) fn tokenize(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut last_line = 0;
    for (number, line) in source.lines().enumerate() {
        let code = line.split(';').next().unwrap_or("");
        last_line = number as u32 + 1;
        let mut rest = code;
        let mut column = 1;
        loop {
            let start = rest.trim_start();
            column += characters(rest, start);
            rest = start;
            let Some(first) = rest.chars().next() else {
                break;
            };
            let sigil = usize::from(['%', '@', '#'].contains(&first));
            let length = rest[sigil..]
                .find(|c| !is_word(c))
                .unwrap_or(rest.len() - sigil);
            let quoted = rest.strip_prefix('"').and_then(|text| text.find('"'));
            let (kind, start, end) = match first {
                _ if let Some(length) = quoted => (TokenKind::Quoted, 0, length + 2),
                '%' if length > 0 => (TokenKind::Value, 1, 1 + length),
                '@' if length > 0 => (TokenKind::Symbol, 1, 1 + length),
                '#' if length > 0 => (TokenKind::Layout, 1, 1 + length),
                _ if sigil == 0 && length > 0 => (TokenKind::Word, 0, length),
                _ => (TokenKind::Punctuation, 0, first.len_utf8()),
            };
            tokens.push(Token {
                kind,
                text: &rest[start..end],
                line: last_line,
                column,
            });
            column += characters(rest, &rest[end..]);
            rest = &rest[end..];
        }
    }
    tokens.push(Token {
        kind: TokenKind::End,
        text: "",
        line: last_line + 1,
        column: 1,
    });
    tokens
}
