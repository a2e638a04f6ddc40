//! Prints errors with the source line and a caret under the place.

use crate::diagnostic::Diagnostics;

/// The errors, each with its line of source and a caret when `source_of` knows the file.
pub fn render(diagnostics: &Diagnostics, source_of: &dyn Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics.iter() {
        let loc = &diagnostic.loc;
        text.push_str(&format!("error: {}\n", diagnostic.message));
        if loc.is_known() {
            text.push_str(&format!("  --> {loc}\n"));
            let source = source_of(&loc.file).unwrap_or_default();
            if let Some(line) = source.lines().nth(loc.line as usize - 1) {
                let margin = loc.line.to_string();
                let blank = " ".repeat(margin.len());
                let indent = " ".repeat((loc.column as usize).saturating_sub(1));
                text.push_str(&format!("{margin} | {line}\n{blank} | {indent}^\n"));
            }
        }
        for note in &diagnostic.notes {
            text.push_str(&format!("  note: {note}\n"));
        }
    }
    if diagnostics.more() > 0 {
        text.push_str(&format!("error: {} more errors\n", diagnostics.more()));
    }
    text
}
