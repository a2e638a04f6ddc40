//! Tiles as registers: what is bound, and where it lies.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::registers::Registers;
use super::{Lowering, Result};
use crate::entity::Entity;
use crate::ir::{DType, IndexMap, Op, Value};
use crate::layout::{LinearLayout, ThreadMap};

/// A tile in the layout in which it was computed.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) layout: Rc<LinearLayout>,
    pub(super) registers: Registers,
}

/// What a region knows.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Values, each in its layout.
    bound: BTreeMap<Value, Registers>,
    /// Functions of the lane and the warp.
    pub(super) maps: BTreeMap<ThreadMap, Value>,
    /// The same as indices, with a constant added by exclusive or.
    pub(super) offsets: BTreeMap<(ThreadMap, u32), Value>,
}

impl Lowering<'_> {
    /// Binds a value in the current region.
    pub(super) fn bind(&mut self, value: Value, registers: Registers) {
        let scope = self.scopes.last_mut();
        let scope = scope.expect("broken invariant: a region is open");
        scope.bound.insert(value, registers);
    }

    /// Whether a value is known here.
    pub(super) fn is_bound(&self, value: Value) -> bool {
        let mut scopes = self.scopes.iter();
        scopes.any(|scope| scope.bound.contains_key(&value))
    }

    /// The registers of a value.
    pub(super) fn get(&self, value: Value) -> Registers {
        let mut scopes = self.scopes.iter().rev();
        let found = scopes.find_map(|scope| scope.bound.get(&value));
        found
            .expect("broken invariant: operands are lowered before their uses")
            .clone()
    }

    /// The layout of a value.
    pub(super) fn layout(&self, value: Value) -> Rc<LinearLayout> {
        let layout = self.block.layout(value);
        layout.map_or_else(
            || self.scalar_layout(),
            |layout| Rc::clone(&self.layouts[layout.index()]),
        )
    }

    /// A value with its layout.
    pub(super) fn tile(&self, value: Value) -> Tile {
        Tile {
            layout: self.layout(value),
            registers: self.get(value),
        }
    }

    /// A scalar, the pointer of an argument included.
    pub(super) fn scalar(&mut self, value: Value) -> Value {
        let registers = self.get(value);
        self.register(&registers, 0)
    }

    /// The data type of a value of numbers.
    pub(super) fn dtype(&self, value: Value) -> Result<DType> {
        let ty = self.block.ty(value);
        ty.dtype()
            .ok_or_else(|| self.error(format!("`{ty}` is not a number")))
    }

    /// Of what a value shows elements, and where they are in it.
    pub(super) fn view(&self, value: Value) -> Option<(Value, IndexMap)> {
        let inst = self.definitions.get(value).copied().flatten()?;
        self.block.view(inst)
    }

    /// The op that defines a value.
    pub(super) fn definition(&self, value: Value) -> Result<Op> {
        let found = self.definitions.get(value).copied().flatten();
        let inst =
            found.ok_or_else(|| self.error(format!("value {} is undefined", value.index())))?;
        Ok(self.block.op(inst).clone())
    }
}
