//! What a loop that runs ahead carries in addition: values of the iteration ahead, and which slot is that of its own.

use super::nested::Onward;
use super::{Own, Pipeliner};
use crate::ir::{CompareOp, DType, Inst, Layout, Type, Value, op};

impl Pipeliner {
    /// Results of the loop for what it carries in addition.
    pub(super) fn add_results(&mut self, inst: Inst, state: &[Value]) {
        let func = self.builder.func_mut();
        for &value in state {
            let (ty, layout) = (func.ty(value), func.layout(value));
            let result = func.add_result(inst, ty);
            func.set_layout(result, layout);
        }
    }

    /// Parameters of the body for the carried values of the iteration ahead, and where it is if copies go on from run to run,
    /// then for the slot of its own, and how many boxes have filled that before, where it takes boxes.
    pub(super) fn carry_all(&mut self, op: &op::For, onward: Option<&Onward>) -> Vec<Value> {
        let mut parameters = Vec::new();
        for at in self.ahead.carried.clone() {
            let (ty, layout) = (self.func().ty(op.init[at]), self.func().layout(op.init[at]));
            parameters.push(self.carry(ty, layout));
        }
        for ty in onward.map_or_else(Vec::new, |onward| self.types_of(onward)) {
            parameters.push(self.carry(ty, None));
        }
        for _ in 0..=usize::from(self.copies_boxes()) {
            parameters.push(self.carry(Type::scalar(DType::I32), None));
        }
        parameters
    }

    /// Of what the loop carries, what is for an iteration of its own.
    pub(super) fn own(&self, carried: &[Value]) -> Own {
        let last = carried.len() - 1;
        match self.copies_boxes() {
            true => Own {
                slot: carried[last - 1],
                turn: Some(carried[last]),
            },
            false => Own {
                slot: carried[last],
                turn: None,
            },
        }
    }

    /// A parameter of the body.
    pub(super) fn carry(&mut self, ty: Type, layout: Option<Layout>) -> Value {
        let func = self.builder.func_mut();
        let parameter = func.add_region_parameter(self.body, ty);
        func.set_layout(parameter, layout);
        parameter
    }

    /// The slot and the turn of the iteration after that of `own`.
    pub(super) fn following(&mut self, own: Own) -> Own {
        let last = self.builder.int32(self.stages as i32 - 1);
        let (zero, one) = (self.builder.int32(0), self.builder.int32(1));
        self.following_by(own, [last, zero, one])
    }

    pub(super) fn following_by(
        &mut self,
        Own { slot, turn }: Own,
        [last, zero, one]: [Value; 3],
    ) -> Own {
        let is_last = self.builder.compare(CompareOp::Eq, slot, last);
        let after = self.builder.add(slot, one);
        let slot = self.builder.select(is_last, zero, after);
        let turn = turn.map(|turn| {
            let later = self.builder.add(turn, one);
            self.builder.select(is_last, later, turn)
        });
        Own { slot, turn }
    }
}
