//! Layouts in the text form: declared where the body begins, by what each bit of a place adds to an index.
//!
//! ```text
//! #l0 = layout 2x64, register=[[0, 1]], lane=[[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp=[[1, 0]]
//! ```
//! The index of a tile with one axis is a number and no list.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use crate::ir::field::ReadError;
use crate::ir::index_map::{dim_bits, dim_offset};
use crate::ir::linear::LinearLayout;
use crate::ir::{Func, Layout, Shape};

/// The most bits of a place that are read: of its register, of its lane or of its warp.
const MOST_BITS: usize = 20;

/// The layouts of a function, numbered in the order in which values with them are defined.
pub(super) fn numbered(func: &Func) -> BTreeMap<Layout, usize> {
    let mut numbers = BTreeMap::new();
    for inst in func.all_insts() {
        let regions = func.op(inst).regions().into_iter();
        let parameters = regions.flat_map(|region| func.region(region).parameters.clone());
        let values = parameters.chain(func.inst(inst).results.iter().copied());
        for layout in values.filter_map(|value| func.layout(value)) {
            let next = numbers.len();
            numbers.entry(layout).or_insert(next);
        }
    }
    numbers
}

/// What stands after `#l0 = `.
pub(crate) fn written(layout: &LinearLayout) -> String {
    let extents: Vec<String> = layout.shape().iter().map(u64::to_string).collect();
    let mut text = format!("layout {}", extents.join("x"));
    let places = [
        ("register", layout.register_columns()),
        ("lane", layout.lane_columns()),
        ("warp", layout.warp_columns()),
    ];
    for (name, columns) in places {
        let indices = columns.iter().map(|&column| {
            let index = layout.coordinates(column);
            match index[..] {
                [index] => index.to_string(),
                _ => format!("{index:?}"),
            }
        });
        let indices: Vec<String> = indices.collect();
        write!(text, ", {name}=[{}]", indices.join(", "))
            .expect("broken invariant: writing to a string succeeds");
    }
    text
}

impl Parser<'_> {
    /// The declarations of layouts.
    pub(super) fn layouts(&mut self) -> Parsed<()> {
        while self.peek().kind == TokenKind::Layout {
            let name = self.next().text.to_string();
            self.expect("=")?;
            self.expect("layout")?;
            let layout = self.linear()?;
            let layout = self.func.intern(layout);
            if self.layouts.insert(name.clone(), layout).is_some() {
                return Err(ReadError(format!("`#{name}` is defined twice")));
            }
        }
        Ok(())
    }

    /// The layout in the angle brackets of a type, if one comes next.
    pub(super) fn layout(&mut self) -> Parsed<Option<Layout>> {
        if !self.eat(",") {
            return Ok(None);
        }
        let name = self.token(TokenKind::Layout, "a layout `#name`")?;
        let layout = self.layouts.get(name).copied();
        let unknown = || ReadError(format!("`#{name}` is not defined"));
        layout.map(Some).ok_or_else(unknown)
    }

    fn linear(&mut self) -> Parsed<LinearLayout> {
        let word = self.word("extents, such as `8x4`")?;
        let mut extents = Vec::new();
        for extent in word.split('x') {
            let extent = extent.parse().ok();
            extents.push(extent.ok_or_else(|| ReadError(format!("`{word}` are no extents")))?);
        }
        let shape = Shape::new(&extents).map_err(ReadError)?;
        let mut columns = Vec::new();
        for place in ["register", "lane", "warp"] {
            self.expect(",")?;
            self.expect(place)?;
            self.expect("=")?;
            columns.push(self.indices(&shape)?);
        }
        let [register, lane, warp] = columns.try_into().unwrap_or_default();
        LinearLayout::new(dim_bits(&shape), register, lane, warp)
            .map_err(|error| ReadError(error.to_string()))
    }

    /// Indices into a tile, each as a flat one.
    fn indices(&mut self, shape: &Shape) -> Parsed<Vec<u64>> {
        self.expect("[")?;
        let mut indices = Vec::new();
        while !self.eat("]") {
            let listed = shape.rank() != 1;
            if listed {
                self.expect("[")?;
            }
            let mut flat = 0;
            for axis in 0..shape.rank() {
                if axis > 0 {
                    self.expect(",")?;
                }
                let index: u64 = self.integer("an index")?;
                if index >= shape.extent(axis) as u64 {
                    let message = format!("index {index} is outside of axis {axis} of {shape}");
                    return Err(ReadError(message));
                }
                flat |= index << dim_offset(&dim_bits(shape), axis);
            }
            if listed {
                self.expect("]")?;
            }
            indices.push(flat);
            if indices.len() > MOST_BITS {
                let message = format!("more than {MOST_BITS} bits of a place");
                return Err(ReadError(message));
            }
            if !self.eat(",") && self.peek().text != "]" {
                return self.unexpected("`,` or `]`");
            }
        }
        Ok(indices)
    }
}
