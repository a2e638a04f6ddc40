//! Structured control flow as CLIF blocks with parameters.

use std::collections::BTreeMap;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder};
use exactile_core::ir::{Type, Value, op};

use super::Codegen;
use super::ahead::Loop;
use super::lanes::Repr;
use crate::Error;

impl Codegen<'_> {
    /// A new block with parameters for values of these types.
    fn block_for(&mut self, values: &[Value]) -> clif::Block {
        let block = self.builder.create_block();
        for &value in values {
            for ty in self.canonical_types(self.ty(value)) {
                self.builder.append_block_param(block, ty);
            }
        }
        block
    }

    /// Binds values to the parameters of a block, after the first `skip`.
    fn bind(&mut self, block: clif::Block, skip: usize, values: &[Value]) {
        let parameters = self.builder.block_params(block).to_vec();
        let mut rest = &parameters[skip..];
        for &value in values {
            let ty: Type = self.ty(value);
            let (own, after) = rest.split_at(self.canonical_types(ty).len());
            self.values[value] = Some(self.of_parameters(own, ty));
            rest = after;
        }
    }

    /// Block arguments of values in their canonical form.
    fn arguments(&mut self, values: &[Value]) -> Vec<BlockArg> {
        let mut arguments = Vec::new();
        for &value in values {
            let repr: Repr = self.canonical(self.repr(value), self.ty(value));
            arguments.extend(repr.pieces().iter().map(|&piece| BlockArg::from(piece)));
        }
        arguments
    }

    pub(super) fn for_loop(&mut self, op: &op::For, results: &[Value]) -> Result<(), Error> {
        let op::For {
            init, step, body, ..
        } = op;
        let (step, body) = (*step, *body);
        let bounds = (op.lower, op.upper);
        let (lower, upper) = (self.single(bounds.0), self.single(bounds.1));
        let parameters = self.func.region(body).parameters.clone();
        let inside = self.block_for(&parameters);
        let after = self.block_for(results);
        let start = self.arguments(init);
        let enter = self.builder.ins().icmp(IntCC::SignedLessThan, lower, upper);
        let with_index = [vec![BlockArg::from(lower)], start.clone()].concat();
        self.builder
            .ins()
            .brif(enter, inside, &with_index, after, &start);
        self.builder.switch_to_block(inside);
        self.bind(inside, 0, &parameters);
        let index = self.single(parameters[0]);
        self.enter_loop(parameters[0], step, bounds);
        self.region(body)?;
        self.loops.pop();
        let next = self.arguments(self.func.yielded(body));
        // While the index is below the bound, their difference fits 64 unsigned bits, so the test
        // is right where index + step would overflow.
        let left = self.builder.ins().isub(upper, index);
        let again = self
            .builder
            .ins()
            .icmp_imm_u(IntCC::UnsignedGreaterThan, left, step);
        let following = self.builder.ins().iadd_imm_s(index, step);
        let with_index = [vec![BlockArg::from(following)], next.clone()].concat();
        self.builder
            .ins()
            .brif(again, inside, &with_index, after, &next);
        self.builder.switch_to_block(after);
        self.bind(after, 0, results);
        Ok(())
    }

    fn enter_loop(&mut self, index: Value, step: i64, (lower, upper): (Value, Value)) {
        let known = |value: Value| self.constant(value).map(|literal| literal.bits as i64);
        let extent = known(lower).zip(known(upper));
        let extent = extent.map(|(lower, upper)| upper.saturating_sub(lower));
        let around = Loop {
            index,
            step,
            extent,
        };
        self.loops.push(around);
    }

    pub(super) fn branch(&mut self, op: &op::If, results: &[Value]) -> Result<(), Error> {
        let condition = self.single(op.condition);
        let (then, otherwise) = (self.builder.create_block(), self.builder.create_block());
        let after = self.block_for(results);
        self.builder
            .ins()
            .brif(condition, then, &[], otherwise, &[]);
        let before = self.asked.clone();
        let mut asked = BTreeMap::new();
        for (block, region) in [(then, op.on_true), (otherwise, op.on_false)] {
            self.builder.switch_to_block(block);
            self.asked.clone_from(&before);
            self.region(region)?;
            asked.append(&mut self.asked);
            let yielded = self.arguments(self.func.yielded(region));
            self.builder.ins().jump(after, &yielded);
        }
        self.asked = asked;
        self.builder.switch_to_block(after);
        self.bind(after, 0, results);
        Ok(())
    }

    pub(super) fn while_loop(&mut self, op: &op::While, results: &[Value]) -> Result<(), Error> {
        let op::While { init, before, body } = op;
        let (before, body) = (*before, *body);
        let tested = self.func.region(before).parameters.clone();
        let carried = self.func.region(body).parameters.clone();
        let header = self.block_for(&tested);
        let inside = self.block_for(&carried);
        let after = self.block_for(results);
        let start = self.arguments(init);
        self.builder.ins().jump(header, &start);
        self.builder.switch_to_block(header);
        self.bind(header, 0, &tested);
        self.region(before)?;
        let yielded = self.func.yielded(before);
        let condition = self.single(yielded[0]);
        let values = self.arguments(&yielded[1..]);
        self.builder
            .ins()
            .brif(condition, inside, &values, after, &values);
        self.builder.switch_to_block(inside);
        self.bind(inside, 0, &carried);
        self.region(body)?;
        let next = self.arguments(self.func.yielded(body));
        self.builder.ins().jump(header, &next);
        self.builder.switch_to_block(after);
        self.bind(after, 0, results);
        Ok(())
    }
}
