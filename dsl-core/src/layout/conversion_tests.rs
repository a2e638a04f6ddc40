//! Runs conversion plans on a simulated thread block and counts bank conflicts.

use crate::layout::shared::{read_together, shared_slot};
use crate::layout::slots::SlotPlaces;
use crate::layout::{
    Conversion, ConversionLimits, LinearLayout, Point, SharedPlan, ShufflePlan, Span,
};
use crate::random::Random;
use crate::target::Target;

/// A layout that reaches every element, with free bits and, sometimes, mixed columns.
fn random_layout(
    random: &mut Random,
    dim_bits: &[u32],
    lanes: usize,
    warps: usize,
) -> LinearLayout {
    let bits = dim_bits.iter().sum::<u32>() as usize;
    let least = bits.saturating_sub(lanes + warps);
    let registers = least + random.below(3);
    let mut columns: Vec<u64> = (0..bits).map(|bit| 1 << bit).collect();
    columns.resize(registers + lanes + warps, 0);
    let kind = random.below(4);
    if kind > 0 {
        random.shuffle(&mut columns);
    }
    if kind == 2 {
        // Invertible row operations keep the rank.
        for _ in 0..bits {
            let (from, to) = (random.below(bits), random.below(bits));
            if from != to {
                for column in &mut columns {
                    *column ^= (*column >> from & 1) << to;
                }
            }
        }
    }
    if kind == 3 && bits > 0 {
        // Copies that are not zero columns.
        let fill = random.below(1 << bits) as u64;
        if let Some(free) = columns.iter_mut().find(|column| **column == 0) {
            *free = fill;
        }
    }
    let warp = columns.split_off(registers + lanes);
    let lane = columns.split_off(registers);
    LinearLayout::new(dim_bits.to_vec(), columns, lane, warp).expect("a valid layout")
}

/// The registers of a block, by register, lane and warp.
struct Block {
    lanes: u32,
    warps: u32,
    values: Vec<Option<u64>>,
}

impl Block {
    fn empty(layout: &LinearLayout) -> Block {
        let (lanes, warps) = (1 << layout.lane_bits(), 1 << layout.warp_bits());
        let count = layout.registers() * lanes * warps;
        Block {
            lanes,
            warps,
            values: vec![None; count as usize],
        }
    }

    fn holding(layout: &LinearLayout) -> Block {
        let mut block = Block::empty(layout);
        for register in 0..layout.registers() {
            block.each(|block, lane, warp| {
                let point = Point {
                    register,
                    lane,
                    warp,
                };
                *block.at(point) = Some(layout.apply(point));
            });
        }
        block
    }

    fn each(&mut self, mut visit: impl FnMut(&mut Block, u32, u32)) {
        for warp in 0..self.warps {
            for lane in 0..self.lanes {
                visit(self, lane, warp);
            }
        }
    }

    fn at(&mut self, point: Point) -> &mut Option<u64> {
        let index = (point.register * self.warps + point.warp) * self.lanes + point.lane;
        &mut self.values[index as usize]
    }
}

fn run_shuffles(plan: &ShufflePlan, mut source: Block, to: &LinearLayout) -> Block {
    let mut destination = Block::empty(to);
    for register in 0..to.registers() {
        destination.each(|block, lane, warp| {
            let chosen = register ^ plan.destination_select.apply(lane, warp);
            let round = &plan.rounds[plan.received[chosen as usize] as usize];
            let from = round.from.apply(lane, warp);
            let sent = round.sent ^ plan.source_select.apply(from, warp);
            *block.at(Point {
                register,
                lane,
                warp,
            }) = *source.at(Point {
                register: sent,
                lane: from,
                warp,
            });
        });
    }
    destination
}

/// Checks that lanes that access memory together meet in no bank.
fn check_banks(addresses: &[Option<u32>], vector_bytes: u32) {
    let together = (128 / vector_bytes).min(32) as usize;
    for group in addresses.chunks(together) {
        let mut words: Vec<u32> = Vec::new();
        for &address in group.iter().flatten() {
            assert_eq!(address % vector_bytes, 0, "an access is not aligned");
            words.extend((address..address + vector_bytes).map(|byte| byte / 4));
        }
        words.sort_unstable();
        words.dedup();
        let mut banks: Vec<u32> = words.iter().map(|word| word % 32).collect();
        banks.sort_unstable();
        let count = banks.len();
        banks.dedup();
        assert_eq!(banks.len(), count, "bank conflict in {group:?}");
    }
}

fn run_shared(plan: &SharedPlan, bytes: u32, mut source: Block, to: &LinearLayout) -> Block {
    let vector_bytes = bytes << plan.vector_bits;
    assert!(vector_bytes <= 16);
    let mut destination = Block::empty(to);
    let mut stored = 0_u64;
    for round in 0..plan.rounds() {
        let mut memory: Vec<Option<u64>> = vec![None; 1 << plan.scratch_bits];
        for (side, accesses) in [
            (&plan.store, plan.stores(round)),
            (&plan.load, plan.loads(round)),
        ] {
            let storing = std::ptr::eq(side, &plan.store);
            for access in accesses {
                for warp in 0..source.warps {
                    let mut addresses = vec![None; source.lanes as usize];
                    for lane in 0..source.lanes {
                        let owns = lane & plan.owner.lane == 0 && warp & plan.owner.warp == 0;
                        let now = access
                            .only_when
                            .is_none_or(|round| side.thread_round.apply(lane, warp) == round);
                        if !now || (storing && !owns) {
                            continue;
                        }
                        let offset = access.offset ^ side.thread.apply(lane, warp);
                        addresses[lane as usize] = Some(offset * bytes);
                        for (element, &register) in access.registers.iter().enumerate() {
                            let cell = &mut memory[offset as usize + element];
                            let point = Point {
                                register,
                                lane,
                                warp,
                            };
                            if storing {
                                assert_eq!(*cell, None, "stored twice");
                                *cell = *source.at(point);
                                stored += 1;
                            } else {
                                *destination.at(point) = *cell;
                            }
                        }
                    }
                    check_banks(&addresses, vector_bytes);
                }
            }
        }
    }
    assert_eq!(stored, 1 << to.tile_bits(), "each element is stored once");
    take_loaded(plan, &mut destination, to);
    destination
}

/// Gives each register of the destination what was loaded for it.
fn take_loaded(plan: &SharedPlan, destination: &mut Block, to: &LinearLayout) {
    for register in 0..to.registers() {
        destination.each(|block, lane, warp| {
            let from = Point {
                register: plan.loaded[register as usize],
                lane,
                warp,
            };
            let value = *block.at(from);
            *block.at(Point {
                register,
                lane,
                warp,
            }) = value;
        });
    }
}

/// Runs the plan and compares every register with what its layout says. Returns the kind of plan.
fn check(from: &LinearLayout, to: &LinearLayout, limits: &ConversionLimits) -> &'static str {
    let plan = Conversion::plan(from, to, limits).expect("a plan");
    let mut source = Block::holding(from);
    let (kind, got) = match &plan {
        Conversion::Registers(registers) => {
            let mut destination = Block::empty(to);
            for (register, &chosen) in (0..).zip(registers) {
                destination.each(|block, lane, warp| {
                    *block.at(Point {
                        register,
                        lane,
                        warp,
                    }) = *source.at(Point {
                        register: chosen,
                        lane,
                        warp,
                    });
                });
            }
            ("registers", destination)
        }
        Conversion::Shuffle(plan) => ("shuffle", run_shuffles(plan, source, to)),
        Conversion::Shared(plan) => ("shared", run_shared(plan, limits.element_bytes, source, to)),
    };
    assert_eq!(
        got.values,
        Block::holding(to).values,
        "{from:?} to {to:?} by {plan:?}"
    );
    let shared = Conversion::plan_shared(from, to, limits).expect("a plan");
    let got = run_shared(&shared, limits.element_bytes, Block::holding(from), to);
    assert_eq!(
        got.values,
        Block::holding(to).values,
        "{from:?} to {to:?} by {shared:?}"
    );
    kind
}

/// Limits of a GPU with so many bytes of scratch memory.
fn limits(element_bytes: u32, scratch_bytes: u32) -> ConversionLimits {
    ConversionLimits {
        scratch_bytes,
        ..ConversionLimits::new(element_bytes, &Target::SM_80)
    }
}

#[test]
fn random_pairs_convert_without_bank_conflicts() {
    let mut random = Random::new(1);
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for case in 0..4000 {
        let dim_bits: Vec<u32> = (0..1 + random.below(3))
            .map(|_| random.below(5) as u32)
            .collect();
        let warps = (case % 5) as usize;
        let from = random_layout(&mut random, &dim_bits, 5, warps);
        let to = match random.below(4) {
            0 => {
                // Related layouts: registers reordered, or lanes among themselves.
                let (mut register, mut lane) = (
                    from.register_columns().to_vec(),
                    from.lane_columns().to_vec(),
                );
                random.shuffle(&mut register);
                if random.below(2) == 0 {
                    random.shuffle(&mut lane);
                    if let (Some(a), Some(b)) = (register.first_mut(), lane.first_mut()) {
                        std::mem::swap(a, b);
                    }
                }
                LinearLayout::new(
                    dim_bits.clone(),
                    register,
                    lane,
                    from.warp_columns().to_vec(),
                )
                .expect("a valid layout")
            }
            _ => random_layout(&mut random, &dim_bits, 5, warps),
        };
        let bytes = 1 << random.below(4);
        let scratch = match random.below(3) {
            0 => bytes << random.below(8),
            _ => 1 << 16,
        };
        let limits = limits(bytes, scratch);
        *kinds.entry(check(&from, &to, &limits)).or_default() += 1;
    }
    for kind in ["registers", "shuffle", "shared"] {
        assert!(
            kinds.get(kind).is_some_and(|&count| count > 200),
            "{kinds:?}"
        );
    }
}

/// The bytes at which the lanes of a warp copy or read a register.
fn addresses(places: &SlotPlaces, register: u32, bytes: u32) -> Vec<Option<u32>> {
    let address = |lane| Some((places.of(register) ^ places.thread.apply(lane, 0)) * bytes);
    (0..32).map(address).collect()
}

#[test]
fn slots_that_lanes_share_have_no_bank_conflicts() {
    let (mut random, mut met) = (Random::new(3), [0; 2]);
    for _ in 0..4000 {
        let dim_bits = [3 + random.below(4) as u32, 3 + random.below(3) as u32];
        let [from, to] = [0, 1].map(|_| random_layout(&mut random, &dim_bits, 5, 1));
        let bytes = 1 << random.below(4);
        let limits = limits(bytes, 1 << 16);
        let most = (16 / bytes).ilog2() as usize;
        let registers = from.register_columns();
        let vector: Vec<u32> = (0..registers.len().min(random.below(most + 1)) as u32).collect();
        let (copied, rest) = registers.split_at(vector.len());
        let others = [from.lane_columns(), from.warp_columns(), rest].concat();
        if Span::extension(&others, copied).len() < copied.len() {
            continue;
        }
        let slot = shared_slot((&from, &vector), &to, &limits);
        let count = 1 << vector.len();
        let (places, vectors) = SlotPlaces::copied(&slot, &from, count).expect("side by side");
        for copy in &vectors {
            check_banks(&addresses(&places, copy[0], bytes), bytes << vector.len());
        }
        met[0] += 1;
        // What does not stay side by side may lie in any bank.
        let read = read_together(copied, &to).len();
        let together = 5.min((128 / bytes).ilog2() as usize - read);
        let lanes = &to.lane_columns()[..together];
        let reaches = |bit: &u64| lanes.contains(bit);
        let alone = |lane: &u64| {
            let span = Span::of(&[copied, &Span::extension(copied, &others)].concat());
            let place = span.solve(*lane).unwrap_or(0);
            copied.contains(lane) || place & ((1 << vector.len()) - 1) == 0
        };
        if !copied[read..].iter().all(reaches) || !lanes.iter().all(alone) {
            continue;
        }
        let places = SlotPlaces::of_elements(&slot, &to);
        let vectors = places.vectors(read as u32);
        for held in vectors.iter().filter(|held| held.len() == 1 << read) {
            check_banks(&addresses(&places, held[0], bytes), bytes << read);
            met[1] += 1;
        }
    }
    assert!(met.iter().all(|&met| met > 500), "{met:?}");
}

/// Of a tile of 16 by 16: rows along the lanes, columns along them, or both mixed; copies in none, some or all lanes, and
/// in the warps or not.
fn small_set(warps: usize) -> Vec<LinearLayout> {
    let mixed = [0, 4, 1, 5, 2, 6, 3, 7];
    let orders = [[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3], mixed];
    let mut set = Vec::new();
    for (order, copies) in orders
        .iter()
        .flat_map(|order| [0, 2, 5].map(|copies| (order, copies)))
    {
        for held in [0, warps] {
            let (lane, rest) = order.split_at(5 - copies);
            let (warp, register) = rest.split_at(held);
            let columns = |bits: &[u32], count: usize| -> Vec<u64> {
                let mut columns: Vec<u64> = bits.iter().map(|bit| 1 << bit).collect();
                columns.resize(count, 0);
                columns
            };
            let register = columns(register, register.len());
            let (lane, warp) = (columns(lane, 5), columns(warp, warps));
            let layout = LinearLayout::new(vec![4, 4], register, lane, warp);
            set.push(layout.expect("a valid layout"));
        }
    }
    set
}

#[test]
fn all_pairs_of_a_small_set_convert() {
    for warps in 0..=3 {
        let set = small_set(warps);
        for (from, to) in set
            .iter()
            .flat_map(|from| set.iter().map(move |to| (from, to)))
        {
            let kind = check(from, to, &limits(4, 1 << 16));
            assert!(from != to || kind == "registers", "{from:?}: {kind}");
        }
    }
}

#[test]
fn a_transposed_tile_moves_in_vectors_where_both_sides_hold_them() {
    // 64x64 f32, 4 warps: both sides hold 4 consecutive elements of a row.
    let from = LinearLayout::blocked(&[6, 6], &[0, 2], &[1, 4], &[2, 0], &[1, 0]).expect("from");
    let to = LinearLayout::blocked(&[6, 6], &[0, 2], &[5, 0], &[0, 2], &[0, 1]).expect("to");
    let plan = Conversion::plan_shared(&from, &to, &limits(4, 1 << 16));
    assert_eq!(plan.map(|plan| plan.vector_bits), Ok(2));
    assert_eq!(check(&from, &to, &limits(4, 1 << 16)), "shared");
    // A quarter of the tile at a time keeps the vectors; one element at a time cannot.
    for (scratch, vector) in [(4096, 2), (8, 1), (4, 0)] {
        let limits = limits(4, scratch);
        let plan = Conversion::plan_shared(&from, &to, &limits).expect("a plan");
        assert_eq!(plan.vector_bits, vector);
        check(&from, &to, &limits);
    }
}

#[test]
fn bad_pairs_are_errors() {
    let layout =
        |bits: &[u32], warps| LinearLayout::replicated(bits.to_vec(), 5, warps).expect("ok");
    let most = limits(4, 1024);
    assert!(Conversion::plan(&layout(&[3], 0), &layout(&[4], 0), &most).is_err());
    assert!(Conversion::plan(&layout(&[3], 0), &layout(&[3], 1), &most).is_err());
    let one_lane = LinearLayout::blocked(&[3], &[0], &[5], &[0], &[0]).expect("ok");
    let small = ConversionLimits {
        max_shuffles: 0,
        ..limits(8, 4)
    };
    assert!(Conversion::plan(&one_lane, &layout(&[3], 0), &small).is_err());
    let odd = ConversionLimits {
        element_bytes: 3,
        ..small
    };
    assert!(Conversion::plan(&one_lane, &layout(&[3], 0), &odd).is_err());
}
