//! Other layouts than those that are chosen: a program gives the same bits in any.

use exactile_core::ir::index_map::dim_bits;
use exactile_core::ir::{Func, Op, Shape, Value};
use exactile_core::layout::LinearLayout;
use exactile_core::random::Random;
use exactile_core::target::LANE_BITS;

/// Log2 of the registers of a tile, beyond which lanes and warps have as much of it as they can.
const MOST_REGISTERS: u32 = 5;

/// How many tiles get another layout: each that has one is moved to it and from it, which makes a large program's
/// code many times as long.
const MOST_CHANGED: usize = 24;

/// Changes the layouts of some tiles of a schedule function, and leaves some to their uses.
pub(super) fn vary(func: &mut Func, random: &mut Random) {
    let warp_bits = func.warps.trailing_zeros();
    // An atomic with a result must have each element in one lane.
    let insts = func.all_insts().into_iter();
    let fetches = insts.filter(|&inst| matches!(func.op(inst), Op::AtomicFetch(_)));
    let kept: Vec<Value> = fetches.map(|inst| func.inst(inst).results[0]).collect();
    let free = |value: &Value| func.layout(*value).is_some() && !kept.contains(value);
    let mut values: Vec<Value> = func.values().filter(free).collect();
    random.shuffle(&mut values);
    values.truncate(MOST_CHANGED.min((values.len() * 2).div_ceil(3)));
    for value in values {
        let layout = (!random.one_in(8)).then(|| layout(&func.ty(value).shape, warp_bits, random));
        let layout = layout.map(|layout| func.intern(layout));
        func.set_layout(value, layout);
    }
}

/// A layout in which the bits of places hold bits of the index in any order; some lanes and warps may
/// have the same, and some bits of places may add several bits of the index.
fn layout(shape: &Shape, warp_bits: u32, random: &mut Random) -> LinearLayout {
    let bits = dim_bits(shape);
    let mut columns: Vec<u64> = (0..bits.iter().sum::<u32>()).map(|bit| 1 << bit).collect();
    random.shuffle(&mut columns);
    if columns.len() > 1 && random.one_in(4) {
        columns[0] ^= columns[1];
    }
    let mut places = vec![0; (LANE_BITS + warp_bits) as usize];
    let spare = columns.len() as u32 <= MOST_REGISTERS;
    for place in &mut places {
        if !(spare && random.one_in(3)) {
            *place = columns.pop().unwrap_or(0);
        }
    }
    random.shuffle(&mut places);
    let warp = places.split_off(LANE_BITS as usize);
    LinearLayout::new(bits, columns, places, warp)
        .expect("broken invariant: each bit of the index has a place")
}
