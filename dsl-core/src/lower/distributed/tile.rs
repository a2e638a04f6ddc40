//! Tiles as registers: what is bound, in which layouts it is known, and how a use gets its layout.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::registers::Registers;
use super::{Lowering, Result};
use crate::entity::Entity;
use crate::ir::index_map::dim_bits;
use crate::ir::{DType, IndexMap, Op, Value};
use crate::layout::access::access_layout;
use crate::layout::assign::Origin;
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
    /// Computed values.
    bound: BTreeMap<Value, Tile>,
    /// Values in the layouts that uses have asked for.
    forms: BTreeMap<(Value, Rc<LinearLayout>), Registers>,
    /// Functions of the lane and the warp.
    pub(super) maps: BTreeMap<ThreadMap, Value>,
    /// The same as indices, with a constant added by exclusive or.
    pub(super) offsets: BTreeMap<(ThreadMap, u32), Value>,
}

impl Lowering<'_> {
    /// Binds a computed value in the current region.
    pub(super) fn bind(&mut self, value: Value, tile: Tile) {
        let scope = self
            .scopes
            .last_mut()
            .expect("broken invariant: a region is open");
        scope.bound.insert(value, tile);
    }

    /// Whether a computed value is known here.
    pub(super) fn is_bound(&self, value: Value) -> bool {
        let mut scopes = self.scopes.iter();
        scopes.any(|scope| scope.bound.contains_key(&value))
    }

    /// The registers of a computed value, in its own layout.
    pub(super) fn bound(&self, value: Value) -> Tile {
        let found = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.bound.get(&value));
        found
            .expect("broken invariant: operands are lowered before their uses")
            .clone()
    }

    /// A scalar.
    pub(super) fn scalar(&mut self, value: Value) -> Result<Value> {
        let layout = self.scalar_layout();
        let registers = self.get(value, &layout)?;
        Ok(self.register(&registers, 0))
    }

    /// The pointer or other value of an argument.
    pub(super) fn argument(&mut self, value: Value) -> Value {
        let tile = self.bound(value);
        self.register(&tile.registers, 0)
    }

    /// The registers of a value in `layout`: made there if it is cheap, renamed if it is a view,
    /// converted if it was computed in another layout.
    pub(super) fn get(&mut self, value: Value, layout: &Rc<LinearLayout>) -> Result<Registers> {
        let key = (value, Rc::clone(layout));
        if let Some(known) = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.forms.get(&key))
        {
            return Ok(known.clone());
        }
        if layout.registers() > self.target.gpu.tile_registers {
            return Err(self.too_large(layout));
        }
        let registers = match self.assignment.origin(value) {
            Origin::Cheap => self.cheap(value, layout)?,
            Origin::View => self.viewed(value, layout)?,
            Origin::Computed => {
                let tile = self.bound(value);
                if tile.layout == *layout {
                    return Ok(tile.registers);
                }
                let dtype = self.dtype(value)?;
                self.convert(&tile, dtype, layout)?
            }
        };
        let scope = self
            .scopes
            .last_mut()
            .expect("broken invariant: a region is open");
        scope.forms.insert(key, registers.clone());
        Ok(registers)
    }

    fn too_large(&self, layout: &LinearLayout) -> crate::diagnostic::Diagnostic {
        let (found, shape) = (layout.registers(), layout.shape());
        self.error(format!(
            "a tile of shape {shape:?} takes {found} registers of each lane, expected at most \
             {}",
            self.target.gpu.tile_registers
        ))
        .note("use a smaller tile or more warps")
    }

    /// The data type of a value of numbers.
    pub(super) fn dtype(&self, value: Value) -> Result<DType> {
        let ty = self.block.ty(value);
        ty.dtype()
            .ok_or_else(|| self.error(format!("`{ty}` is not a number")))
    }

    /// A shape op: the operand in the layout that the result's layout makes of it.
    pub(super) fn viewed(&mut self, value: Value, layout: &Rc<LinearLayout>) -> Result<Registers> {
        let Some((operand, map)) = self.view(value) else {
            let op = self.definition(value)?;
            return Err(self.error(format!("`{}` is not a shape op", op.mnemonic())));
        };
        let (asked, merged) = map
            .push(layout)
            .map_err(|error| self.layout_error(&error))?;
        let registers = self.get(operand, &Rc::new(asked))?;
        Ok(registers.renamed(&merged))
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

    /// The layout that a value has for free.
    pub(super) fn natural(&self, value: Value) -> Result<Rc<LinearLayout>> {
        let plain = || self.plain(&dim_bits(&self.block.ty(value).shape));
        match self.assignment.origin(value) {
            Origin::Computed => Ok(self.bound(value).layout),
            Origin::Cheap => Ok(plain()),
            Origin::View => {
                let Some((operand, map)) = self.view(value) else {
                    return Ok(plain());
                };
                let pulled = map.pull(&*self.natural(operand)?);
                Ok(Rc::new(pulled.map_err(|error| self.layout_error(&error))?))
            }
        }
    }

    /// A layout for a tile that nothing constrains.
    pub(super) fn plain(&self, dim_bits: &[u32]) -> Rc<LinearLayout> {
        let order: Vec<usize> = (0..dim_bits.len()).rev().collect();
        Rc::new(access_layout(
            dim_bits,
            &order,
            0,
            self.assignment.warp_bits,
        ))
    }

    /// The layout that was chosen for a computed value.
    pub(super) fn assigned(&self, value: Value) -> Rc<LinearLayout> {
        let layout = self.assignment.layout(value);
        Rc::clone(layout.expect("broken invariant: every computed value has a layout"))
    }
}
