//! Views that show a small part of a tile, for machines that hold tiles in registers.
//!
//! There a view is no instruction: it asks for its operand in a layout in which each lane has what the
//! view shows and, in further registers, what it does not. That is cheap where little is left out, or where views that
//! differ in their offset alone show what one of them leaves out, such as the parts of a tile. Where
//! more is, all lanes look at what they hold: what the view shows is selected, the rest is zero bits, and a
//! reduction by `or` brings it together.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{
    BinaryOp, Bits, CompareOp, DType, Func, Inst, Literal, Op, Order, Shape, Type, Value, op,
};
use crate::passes::rewrite::{Rewriter, rewrite};

/// Log2 of how many times as large a tile views may show a part of.
const LEFT_OUT: usize = 3;

/// Replaces each view that leaves out more by a reduction, unless others show it.
pub fn reduce_small_views(func: &mut Func) {
    let small = small_views(func);
    rewrite(func, &mut |rewriter, inst| {
        let func = rewriter.builder.func();
        let Op::View(view) = func.op(inst).clone() else {
            return None;
        };
        if !small.contains(&inst) {
            return None;
        }
        let part = Part::of(func, &view);
        let ty = func.ty(*func.inst(inst).results.first()?);
        Some(vec![part.shown(rewriter, &view, ty)])
    });
}

/// The views that leave out more of a tile than others like them show.
fn small_views(func: &Func) -> BTreeSet<Inst> {
    let mut alike: BTreeMap<(Value, &Bits), Vec<(Inst, &op::View)>> = BTreeMap::new();
    for inst in func.all_insts() {
        if let Op::View(view) = func.op(inst) {
            let views = alike.entry((view.x, &view.bits)).or_default();
            views.push((inst, view));
        }
    }
    let small = alike.into_values().filter(|views| {
        let left_out = Part::of(func, views[0].1).left_out;
        let places = views.iter().map(|(_, view)| view.offset.cast_unsigned());
        let shown: BTreeSet<u64> = places.map(|it| Part::gathered(&left_out, it)).collect();
        shown.len() << LEFT_OUT < 1 << left_out.len()
    });
    small.flatten().map(|(inst, _)| inst).collect()
}

/// What a view shows of its operand, and what not: bits of the operand's index.
struct Part {
    shown: Vec<u8>,
    left_out: Vec<u8>,
}

impl Part {
    fn of(func: &Func, view: &op::View) -> Self {
        let all = 0..func.ty(view.x).shape.elements().trailing_zeros() as u8;
        let (shown, left_out) = all.partition(|&bit| view.bits.contains(&Some(bit)));
        Self { shown, left_out }
    }

    /// The bits of `number` at these places, next to each other.
    fn gathered(places: &[u8], number: u64) -> u64 {
        let bits = places.iter().zip(0..);
        bits.fold(0, |sum, (&place, at)| sum | (number >> place & 1) << at)
    }

    fn shown(&self, rewriter: &mut Rewriter, view: &op::View, ty: Type) -> Value {
        let builder = &mut rewriter.builder;
        let dtype = ty.dtype().unwrap_or(DType::Bool);
        let x = match dtype.is_float() {
            true => builder.bitcast(view.x, dtype.unsigned()),
            false => view.x,
        };
        let dims = [1 << self.shown.len(), 1 << self.left_out.len()];
        let shape = Shape::new(&dims).expect("broken invariant: as many elements as the operand");
        let whole = builder.ty(x).with_shape(shape);
        let places = self.left_out.iter().chain(&self.shown);
        let x = self.view(rewriter, x, places.copied().map(Some).collect(), 0, whole);
        let wanted = Self::gathered(&self.left_out, view.offset.cast_unsigned());
        let is_wanted = self.wanted(rewriter, wanted, whole);
        let builder = &mut rewriter.builder;
        let bits = whole.dtype().unwrap_or(dtype);
        let zero = Literal::from_bits(bits, 0);
        let zero = builder.filled(zero, shape);
        let x = builder.select(is_wanted, x, zero);
        let parts = builder.reduce(&[x], 1, Order::Tree, |builder, lower, higher| {
            vec![builder.binary(BinaryOp::Or, lower[0], higher[0])]
        });
        let place = |bit: u8| self.shown.iter().position(|&other| other == bit);
        let places = view.bits.iter();
        let places = places.map(|bit| bit.and_then(place).map(|place| place as u8));
        let places = places.collect();
        let offset = Self::gathered(&self.shown, view.offset.cast_unsigned());
        let x = self.view(rewriter, parts[0], places, offset, ty.with_dtype(bits));
        match dtype.is_float() {
            true => rewriter.builder.bitcast(x, dtype),
            false => x,
        }
    }

    /// Where the second coordinate of a tile is `wanted`.
    fn wanted(&self, rewriter: &mut Rewriter, wanted: u64, whole: Type) -> Value {
        let builder = &mut rewriter.builder;
        let (start, end) = (0, 1 << self.left_out.len());
        let index = builder.value(Op::Arange(op::Arange { start, end }));
        let literal = Literal::from_bits(DType::I64, wanted);
        let literal = builder.filled(literal, builder.ty(index).shape);
        let equal = builder.compare(CompareOp::Eq, index, literal);
        let mut bits: Bits = (0..self.left_out.len() as u8).map(Some).collect();
        bits.resize(self.left_out.len() + self.shown.len(), None);
        self.view(rewriter, equal, bits, 0, whole.with_dtype(DType::Bool))
    }

    fn view(&self, rewriter: &mut Rewriter, x: Value, bits: Bits, offset: u64, ty: Type) -> Value {
        let op = Op::View(op::View {
            x,
            bits,
            offset: offset.cast_signed(),
        });
        rewriter.builder.declared(op, ty)
    }
}

#[cfg(test)]
mod tests {
    use super::reduce_small_views;
    use crate::passes::views::views;
    use crate::text::parse;
    use crate::verify;

    /// How many reductions the first so many of sixteen parts of a row take.
    fn reductions(parts: usize) -> usize {
        let part = |at: usize| {
            let start = 16 * at;
            format!(
                "%p{at} = slice %x, axis=0, start={start}, count=16 : tile<16xf32>
                 store %out, %j, %p{at}
                 "
            )
        };
        let parts: String = (0..parts).map(part).collect();
        let source = format!(
            "func @f block (%in: ptr<f32>, %out: ptr<f32> write) {{
               %i = arange start=0, end=256 : tile<256xi64>
               %j = arange start=0, end=16 : tile<16xi64>
               %x = load %in, %i : tile<256xf32>
               {parts}
             }}"
        );
        let mut func = parse(&source, "test.bir").expect("parses");
        views(&mut func);
        reduce_small_views(&mut func);
        let func = verify::block(func).expect("is valid after");
        func.to_string().matches("= reduce ").count()
    }

    #[test]
    fn parts_that_show_a_tile_together_take_none() {
        assert_eq!(reductions(1), 1);
        for parts in [2, 16] {
            assert_eq!(reductions(parts), 0);
        }
    }
}
