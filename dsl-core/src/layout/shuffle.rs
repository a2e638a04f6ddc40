//! Conversions inside a warp: a register choice, shuffles, and a register choice again.

use super::convert::ThreadMap;
use super::linear::LinearLayout;
use super::matrix::{Span, apply};

/// The lane that a shuffle reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneSource {
    /// The lane itself: no shuffle is needed.
    Same,
    /// The lane number with these bits flipped.
    Xor(u32),
    /// `constant` with the value of `map` added by exclusive or.
    Index {
        /// The part that depends on the lane and the warp.
        map: ThreadMap,
        /// The part that does not.
        constant: u32,
    },
}

impl LaneSource {
    /// The lane that is read by `lane` of `warp`.
    #[must_use]
    pub fn apply(&self, lane: u32, warp: u32) -> u32 {
        match self {
            LaneSource::Same => lane,
            LaneSource::Xor(flipped) => lane ^ flipped,
            LaneSource::Index { map, constant } => map.apply(lane, warp) ^ constant,
        }
    }
}

/// One shuffle: every lane offers a register and reads that of another lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShuffleRound {
    /// The register that every lane offers is `source[sent ^ source_select(lane, warp)]`.
    pub sent: u32,
    /// The lane that is read.
    pub from: LaneSource,
}

/// A conversion inside each warp.
///
/// Destination register `d` of a lane is the value received in round
/// `received[d ^ destination_select(lane, warp)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePlan {
    /// Which register a lane offers, relative to [`ShuffleRound::sent`]. Zero: the same in all lanes.
    pub source_select: ThreadMap,
    /// The shuffles, all different.
    pub rounds: Vec<ShuffleRound>,
    /// The round that fills each destination register, before selection.
    pub received: Vec<u32>,
    /// Which received value a destination register takes. Zero: the same in all lanes.
    pub destination_select: ThreadMap,
}

/// Where each destination bit finds its element, as source (register, lane) bits.
struct Gather {
    /// Source registers and lanes that each destination register bit adds.
    register: Vec<(u64, u64)>,
    /// The same for each lane bit.
    lane: Vec<(u64, u64)>,
    /// The same for each warp bit.
    warp: Vec<(u64, u64)>,
}

impl ShufflePlan {
    /// A plan for two layouts of one tile on the same lanes and warps; `None` when an element has to
    /// change its warp, or the shuffles would not be one per register.
    pub(super) fn plan(source: &LinearLayout, destination: &LinearLayout) -> Option<ShufflePlan> {
        let gather = Gather::find(source, destination)?;
        // In round t, lane l receives for destination register t ^ C l. C is zero unless one source
        // lane has to offer several registers at once.
        let choice = gather.spread()?;
        let lanes = gather.lanes(&choice);
        // The register wanted from a source lane, as a function of that lane. Lanes that share a
        // source lane want the same register, so any preimage will do.
        let reached: Vec<u64> = lanes.iter().map(|column| column.1).collect();
        let wanted: Vec<u64> = lanes.iter().map(|column| column.0).collect();
        let preimage = Span::of(&reached);
        let select = |lane: u64| apply(&wanted, preimage.reduce(lane).1);
        let source_select = ThreadMap {
            lane: (0..lanes.len())
                .map(|bit| select(1 << bit) as u32)
                .collect(),
            warp: gather
                .warp
                .iter()
                .map(|&(register, lane)| (register ^ select(lane)) as u32)
                .collect(),
        };
        let moves = ThreadMap {
            lane: reached.iter().map(|&lane| lane as u32).collect(),
            warp: gather.warp.iter().map(|column| column.1 as u32).collect(),
        };
        let offsets: Vec<u64> = gather.register.iter().map(|column| column.1).collect();
        let offered: Vec<u64> = gather
            .register
            .iter()
            .map(|&(register, lane)| register ^ select(lane))
            .collect();
        let all = (0..u64::from(destination.registers())).map(|number| ShuffleRound {
            sent: apply(&offered, number) as u32,
            from: lane_source(&moves, apply(&offsets, number) as u32),
        });
        let (rounds, received) = different(all);
        let destination_select = ThreadMap {
            lane: choice.iter().map(|&registers| registers as u32).collect(),
            warp: vec![0; gather.warp.len()],
        };
        Some(ShufflePlan {
            source_select,
            rounds,
            received,
            destination_select,
        })
    }

    /// The source register of each destination register, when nothing depends on the lane.
    pub(super) fn register_permutation(&self) -> Option<Vec<u32>> {
        let fixed = self.source_select.is_zero() && self.destination_select.is_zero();
        (fixed && self.shuffles() == 0).then(|| {
            self.received
                .iter()
                .map(|&round| self.rounds[round as usize].sent)
                .collect()
        })
    }

    /// The number of shuffled elements of each lane.
    #[must_use]
    pub fn shuffles(&self) -> u32 {
        self.rounds
            .iter()
            .filter(|round| round.from != LaneSource::Same)
            .count() as u32
    }
}

impl Gather {
    /// Finds a source in the same warp for every destination bit: the same lane where possible.
    fn find(source: &LinearLayout, destination: &LinearLayout) -> Option<Gather> {
        let registers = source.register_columns();
        let split = |bits: u64| (bits & ((1 << registers.len()) - 1), bits >> registers.len());
        let near = Span::of(registers);
        let far = Span::of(&[registers, source.lane_columns()].concat());
        let solve = |vector: u64| near.solve(vector).or_else(|| far.solve(vector)).map(split);
        let from_register = |&column: &u64| solve(column);
        let from_thread = |own: &[u64], other: &[u64], lanes: bool| {
            own.iter()
                .zip(other)
                .enumerate()
                .map(|(bit, (&own, &other))| {
                    let here = if lanes { 1 << bit } else { 0 };
                    solve(own ^ other).map(|(register, lane)| (register, lane ^ here))
                })
                .collect::<Option<Vec<_>>>()
        };
        Some(Gather {
            register: destination
                .register_columns()
                .iter()
                .map(from_register)
                .collect::<Option<_>>()?,
            lane: from_thread(source.lane_columns(), destination.lane_columns(), true)?,
            warp: from_thread(source.warp_columns(), destination.warp_columns(), false)?,
        })
    }

    /// The source register and lane that each lane bit adds, with those of the registers of its choice.
    fn lanes(&self, choice: &[u64]) -> Vec<(u64, u64)> {
        let spread = |(lane, column): (usize, &(u64, u64))| {
            let extra = choice.get(lane).copied().unwrap_or(0);
            let chosen = |&(bit, _): &(usize, &(u64, u64))| extra >> bit & 1 == 1;
            let chosen = self.register.iter().enumerate().filter(chosen);
            chosen.fold(*column, |sum, (_, column)| {
                (sum.0 ^ column.0, sum.1 ^ column.1)
            })
        };
        self.lane.iter().enumerate().map(spread).collect()
    }

    /// The destination registers that each lane bit shifts a round by, so that a source lane never
    /// has to offer two registers in one round; `None` when there is no such choice.
    fn spread(&self) -> Option<Vec<u64>> {
        let mut lanes = Span::default();
        let mut choice = vec![0; self.lane.len()];
        // Lane bits that share a source lane with lower bits and want another register of it.
        let mut crowded = Vec::new();
        let mut together = Span::default();
        for (bit, &(register, lane)) in self.lane.iter().enumerate() {
            let pair = lane << 32 | register;
            if lanes.insert(lane, 0) {
                together.insert(pair, 0);
            } else if !together.contains(pair) {
                crowded.push(bit);
            }
        }
        let mut registers = self.register.iter().enumerate();
        for bit in crowded {
            let (register, _) = registers.find(|(_, column)| lanes.insert(column.1, 0))?;
            choice[bit] = 1 << register;
        }
        Some(choice)
    }
}

/// Each round once, and for each of `all` the place of it.
fn different(all: impl Iterator<Item = ShuffleRound>) -> (Vec<ShuffleRound>, Vec<u32>) {
    let mut rounds: Vec<ShuffleRound> = Vec::new();
    let mut places = Vec::new();
    for round in all {
        let known = rounds.iter().position(|other| *other == round);
        places.push(known.unwrap_or(rounds.len()) as u32);
        if known.is_none() {
            rounds.push(round);
        }
    }
    (rounds, places)
}

/// The simplest form of the source lane `moves(lane, warp) ^ constant`.
fn lane_source(moves: &ThreadMap, constant: u32) -> LaneSource {
    let identity = moves.warp.iter().all(|&column| column == 0)
        && moves
            .lane
            .iter()
            .enumerate()
            .all(|(bit, &column)| column == 1 << bit);
    match (identity, constant) {
        (true, 0) => LaneSource::Same,
        (true, flipped) => LaneSource::Xor(flipped),
        (false, constant) => LaneSource::Index {
            map: moves.clone(),
            constant,
        },
    }
}
