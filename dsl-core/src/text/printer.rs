//! Prints a function; equal functions give equal text.

use std::fmt::{self, Write};

use std::collections::BTreeMap;

use super::{layouts, number};
use crate::entity::EntityMap;
use crate::ir::field::FieldWriter;
use crate::ir::{Access, Func, Inst, Layout, Literal, Region, Stage, Value};

impl fmt::Display for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

fn print(func: &Func) -> String {
    let mut printer = Printer {
        func,
        text: String::new(),
        numbers: EntityMap::filled(func.value_count(), None),
        layouts: layouts::numbered(func),
        next: 0,
        indent: 0,
        first: true,
    };
    printer.function();
    printer.text
}

struct Printer<'a> {
    func: &'a Func,
    text: String,
    numbers: EntityMap<Value, Option<u32>>,
    layouts: BTreeMap<Layout, usize>,
    next: u32,
    indent: usize,
    first: bool,
}

impl Printer<'_> {
    fn put(&mut self, arguments: fmt::Arguments<'_>) {
        self.text
            .write_fmt(arguments)
            .expect("broken invariant: writing to a string succeeds");
    }

    fn name(&self, value: Value) -> String {
        match self.numbers[value] {
            Some(number) => format!("%{number}"),
            None => format!("%undefined_{}", value.to_string().trim_start_matches('%')),
        }
    }

    fn define(&mut self, value: Value) -> String {
        self.numbers[value] = Some(self.next);
        self.next += 1;
        self.name(value)
    }

    fn ty(&self, value: Value) -> String {
        let mut text = self.func.ty(value).to_string();
        let layout = self.func.layout(value);
        if let Some(number) = layout.and_then(|layout| self.layouts.get(&layout))
            && text.ends_with('>')
        {
            text.insert_str(text.len() - 1, &format!(", #l{number}"));
        }
        text
    }

    fn function(&mut self) {
        let func = self.func;
        self.put(format_args!("func @{} {}", func.name, func.stage.word()));
        if func.stage != Stage::Block {
            self.put(format_args!(" warps={}", func.warps));
            for (field, value) in func.schedule.chosen() {
                self.put(format_args!(" {}={value}", field.row().name));
            }
        }
        self.text.push_str(" (");
        for (index, &value) in func.arguments().iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            let name = self.define(value);
            self.put(format_args!("{separator}{name}"));
            let ty = func.ty(value);
            let Some(parameter) = func.parameters.get(index) else {
                self.put(format_args!(": {ty}"));
                continue;
            };
            self.put(format_args!(" {}: {ty}", parameter.name));
            if parameter.access == Access::ReadWrite {
                self.text.push_str(" write");
            }
            if parameter.tiled {
                self.text.push_str(" tiled");
            }
            if parameter.divisor != 1 {
                self.put(format_args!(" divisor={}", parameter.divisor));
            }
            if let Some([least, most]) = parameter.within {
                self.put(format_args!(" least={least} most={most}"));
            }
        }
        self.text.push_str(") {\n");
        let mut layouts: Vec<(usize, Layout)> = self
            .layouts
            .iter()
            .map(|(&layout, &number)| (number, layout))
            .collect();
        layouts.sort_unstable();
        for (number, layout) in layouts {
            self.put(format_args!(
                "  #l{number} = {}\n",
                layouts::written(func.linear(layout))
            ));
        }
        self.insts(func.body());
        self.text.push_str("}\n");
    }

    fn insts(&mut self, region: Region) {
        self.indent += 2;
        for &inst in &self.func.region(region).insts {
            self.inst(inst);
        }
        self.indent -= 2;
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.func.inst(inst);
        let indent = self.indent;
        self.put(format_args!("{:indent$}", ""));
        let names: Vec<String> = data
            .results
            .iter()
            .map(|&value| self.define(value))
            .collect();
        if !names.is_empty() {
            self.put(format_args!("{} = ", names.join(", ")));
        }
        self.text.push_str(data.op.mnemonic());
        self.first = true;
        data.op.write_fields(self);
        let types: Vec<String> = data.results.iter().map(|&value| self.ty(value)).collect();
        if !types.is_empty() {
            self.put(format_args!(" : {}", types.join(", ")));
        }
        self.text.push('\n');
    }

    fn separate(&mut self) {
        self.text.push_str(if self.first { " " } else { ", " });
        self.first = false;
    }
}

impl FieldWriter for Printer<'_> {
    fn operand(&mut self, value: Value) {
        self.separate();
        let name = self.name(value);
        self.text.push_str(&name);
    }

    fn operands(&mut self, values: &[Value]) {
        self.separate();
        let names: Vec<String> = values.iter().map(|&value| self.name(value)).collect();
        self.put(format_args!("[{}]", names.join(", ")));
    }

    fn named_operand(&mut self, name: &str, value: Value) {
        self.separate();
        let value = self.name(value);
        self.put(format_args!("{name}={value}"));
    }

    fn attribute(&mut self, name: &str, text: &str) {
        self.separate();
        self.put(format_args!("{name}={text}"));
    }

    fn literal(&mut self, name: &str, literal: Literal) {
        self.separate();
        self.put(format_args!(
            "{name}={}({})",
            literal.dtype,
            number::format(literal)
        ));
    }

    fn region(&mut self, region: Region) {
        let parameters = self.func.region(region).parameters.clone();
        let typed: Vec<String> = parameters
            .iter()
            .map(|&value| format!("{}: {}", self.define(value), self.ty(value)))
            .collect();
        self.put(format_args!(" ({}) {{\n", typed.join(", ")));
        self.insts(region);
        let indent = self.indent;
        self.put(format_args!("{:indent$}}}", ""));
    }
}
