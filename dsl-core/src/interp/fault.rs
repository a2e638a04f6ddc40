//! Why an interpreter stopped.

use std::fmt;

use thiserror::Error;

use crate::diagnostic::Loc;
use crate::launch::LaunchError;

/// A fault with its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Fault {
    /// The kernel.
    pub kernel: String,
    /// The source line of the instruction.
    pub loc: Loc,
    /// The linear index of the program in the grid, axis 0 fastest.
    pub program: u64,
    /// What happened.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", self.kernel)?;
        if self.loc.is_known() {
            write!(f, " at {}", self.loc)?;
        }
        write!(f, ", program {}: {}", self.program, self.kind)
    }
}

/// Warps of a thread block that wait at one place, or have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The warps, in order.
    pub warps: Vec<usize>,
    /// The op that they wait at and its source line; none where they have ended.
    pub at: Option<(&'static str, Loc)>,
    /// What is missing, where the place does not say it.
    pub missing: Option<String>,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = self.warps.len() == 1;
        f.write_str(if one { "warp" } else { "warps" })?;
        for (index, warp) in self.warps.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {warp}")?;
        }
        match &self.at {
            Some((mnemonic, loc)) => {
                let verb = if one { "waits" } else { "wait" };
                write!(f, " {verb} at `{mnemonic}` of line {}", loc.line)?;
                let mut missing = self.missing.iter();
                missing.try_for_each(|missing| write!(f, " for {missing}"))
            }
            None => f.write_str(if one { " has ended" } else { " have ended" }),
        }
    }
}

/// What a kernel did wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// The launch itself is wrong.
    #[error("{0}")]
    Launch(#[from] LaunchError),
    /// An access outside its buffer. `element` is the index in the tile, or the lane.
    #[error("element {element} accesses `{buffer}[{index}]`, which has {length} elements")]
    OutOfBounds {
        /// The argument, or the kind of buffer.
        buffer: String,
        /// Which element of the access.
        element: u64,
        /// The element of the buffer.
        index: i64,
        /// The buffer's length.
        length: u64,
    },
    /// An assertion that does not hold.
    #[error("element {element} does not hold: {message}")]
    Assertion {
        /// The words of the kernel.
        message: String,
        /// Which element of the condition, the first that does not hold.
        element: u64,
    },
    /// Two programs touch one address, and at least one writes it or combines it by another op.
    #[error("element {element} touches `{buffer}[{index}]`, which program {other} {how}")]
    SharedByPrograms {
        /// The argument.
        buffer: String,
        /// Which element of the access.
        element: u64,
        /// The element of the buffer.
        index: i64,
        /// The other program; of several readers, one of them.
        other: u64,
        /// What the other program did: `wrote`, `read`, `combined` or `combined by another op`.
        how: &'static str,
    },
    /// Two lanes touch one address without a barrier between, and at least one writes.
    #[error(
        "lane {lane} {how} `{buffer}[{index}]` without a barrier after lane {other}'s {before}"
    )]
    Race {
        /// The argument, or the kind of buffer.
        buffer: String,
        /// The element of an argument, or the byte of shared memory.
        index: i64,
        /// The later lane.
        lane: u64,
        /// The earlier lane.
        other: u64,
        /// What the later lane does: `reads`, `writes` or `combines`.
        how: &'static str,
        /// What the earlier lane did: `read`, `write` or `atomic`.
        before: &'static str,
    },
    /// An access to memory that a lane is still copying.
    #[error("lane {lane} {how} `{buffer}[{index}]`, which lane {other} is still copying")]
    UnderWay {
        /// The argument, or the kind of buffer.
        buffer: String,
        /// The element of an argument, or the byte of shared memory.
        index: i64,
        /// The lane that accesses it.
        lane: u64,
        /// The lane that copies.
        other: u64,
        /// What the lane does: `reads` or `writes`.
        how: &'static str,
    },
    /// A copy that reads more elements than it moves, or fewer than none.
    #[error("lane {lane} reads {read} elements of a copy of {count}")]
    ReadsBeyond {
        /// The lane that copies.
        lane: u64,
        /// The elements that it reads.
        read: i64,
        /// The elements that the copy moves.
        count: i64,
    },
    /// A program that ends without waiting for its copies or products.
    #[error("the program ends before lane {lane} has waited for this")]
    Unfinished {
        /// The lane.
        lane: u64,
    },
    /// A read of shared or scratch memory that nothing wrote.
    #[error("lane {lane} reads byte {byte} of {space} memory, which nothing wrote")]
    Uninitialised {
        /// `shared` or `scratch`.
        space: &'static str,
        /// The byte.
        byte: u64,
        /// The lane.
        lane: u64,
    },
    /// An access whose address is no multiple of the stated alignment.
    #[error("lane {lane} accesses `{buffer}[{index}]`, which is not aligned to {align} bytes")]
    Unaligned {
        /// The argument, or the kind of buffer.
        buffer: String,
        /// The element of the buffer.
        index: i64,
        /// The stated alignment.
        align: i64,
        /// The lane.
        lane: u64,
    },
    /// A convergent op that not all lanes reach together.
    #[error("`{mnemonic}` runs while lane {lane} is inactive")]
    Divergent {
        /// The op.
        mnemonic: &'static str,
        /// A lane that does not take part.
        lane: u64,
    },
    /// An op of the machine's own on operands for which it is undefined.
    #[error("`{mnemonic}` is undefined for the operands of lane {lane}")]
    Undefined {
        /// The op.
        mnemonic: &'static str,
        /// The lane.
        lane: u64,
    },
    /// A shuffle from a lane that does not exist.
    #[error("lane {lane} shuffles from lane {source_lane} of its warp")]
    NoSuchLane {
        /// The lane that asks.
        lane: u64,
        /// The lane asked for.
        source_lane: i64,
    },
    /// Warps with roles, barriers with phases or bulk copies that do not fit together.
    #[error(transparent)]
    Transfer(#[from] TransferFault),
    /// A slot of shared memory that is used out of turn.
    #[error(transparent)]
    Slot(#[from] SlotFault),
    /// A row in shared memory that is not the one that its copy says, or is not there.
    #[error(transparent)]
    Row(#[from] RowFault),
    /// Warps that wait for ever.
    #[error("no warp can go on: {}", .0.iter().map(Waiting::to_string).collect::<Vec<_>>().join("; "))]
    Deadlock(Vec<Waiting>),
    /// A `while` that goes on for more than the limit of iterations.
    #[error("`while` runs for more than {0} iterations")]
    Endless(u64),
    /// A launch that takes more steps than it was given.
    #[error("the launch takes more than {0} steps")]
    TooLong(u64),
}

/// What is wrong with a slot of shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SlotFault {
    /// A slot that the buffer does not have.
    #[error("there is no slot {slot} in a buffer of {slots}")]
    NoSlot {
        /// The slot.
        slot: i64,
        /// The slots of the buffer.
        slots: u8,
    },
    /// A slot that nothing has been copied to.
    #[error("slot {slot} is read before anything is in it")]
    Empty {
        /// The slot.
        slot: i64,
    },
    /// A slot whose copy nobody has waited for.
    #[error("slot {slot} is used while a copy to it is under way")]
    Copying {
        /// The slot.
        slot: i64,
    },
    /// A slot from which a copy is under way.
    #[error("slot {slot} is written while a copy from it is under way")]
    Leaving {
        /// The slot.
        slot: i64,
    },
    /// A box begins to fill a slot that warps have released too seldom, or too often.
    #[error(
        "a box fills slot {slot} once it is released {wanted} times, and it is {released} times"
    )]
    Released {
        /// The slot.
        slot: i64,
        /// How often it must be.
        wanted: i64,
        /// How often it is.
        released: i64,
    },
    /// A wait for another box than the last of a slot.
    #[error("turn {turn} of slot {slot} is waited for when {boxes} boxes have been copied there")]
    Turn {
        /// The slot.
        slot: i64,
        /// The turn.
        turn: i64,
        /// The boxes so far.
        boxes: i64,
    },
    /// A slot of which a run is read as one that begins elsewhere in a piece of 16 bytes.
    #[error(
        "the run in slot {slot} begins at element {begins} of its piece, and is read from element {read} on"
    )]
    Begins {
        /// The slot.
        slot: i64,
        /// Where it begins.
        begins: i64,
        /// Where it is taken to begin.
        read: i64,
    },
    /// A slot whose product nobody has waited for.
    #[error("slot {slot} is written while a product that reads it is under way")]
    Multiplying {
        /// The slot.
        slot: i64,
    },
}

/// What is wrong with a row in shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowFault {
    /// An element that is not where the row or the run has it, or that a mask says something else of.
    #[error("element {element} is not one of {count} side by side from {start} on")]
    Elsewhere {
        /// The element of the tile.
        element: usize,
        /// Where the row starts.
        start: i64,
        /// Its elements.
        count: i64,
    },
    /// A row, or a run, that is longer than its memory.
    #[error("{count} elements have room for {room}")]
    NoRoom {
        /// Its elements.
        count: i64,
        /// The elements that there is room for.
        room: i64,
    },
    /// A row whose copy nobody has waited for.
    #[error("a row is used while it is copied")]
    Copying,
    /// An element that is read and is none of the row.
    #[error("element {element} of a row of {count} is read")]
    Beyond {
        /// The element of the row.
        element: i64,
        /// The elements of the row.
        count: i64,
    },
}

/// What is wrong between warps with roles, barriers with phases and bulk copies.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransferFault {
    /// A bulk copy of what a warp touched, with no proxy fence between.
    #[error(
        "lane {lane} copies `{buffer}[{index}]` in bulk without a proxy fence after lane {other}'s {before}"
    )]
    Unfenced {
        /// The argument, or the kind of buffer.
        buffer: String,
        /// The element of an argument, or the byte of shared memory.
        index: i64,
        /// The first lane of the warp that copies.
        lane: u64,
        /// The earlier lane.
        other: u64,
        /// What the earlier lane did: `read`, `write` or `atomic`.
        before: &'static str,
    },
    /// A word that is used as a barrier and is none.
    #[error("byte {byte} of shared memory is no mbarrier")]
    NoBarrier {
        /// The byte.
        byte: u64,
    },
    /// A word that is a barrier and is used as data.
    #[error("lane {lane} accesses the mbarrier at byte {byte} as data")]
    BarrierWord {
        /// The first byte of the word.
        byte: u64,
        /// The lane.
        lane: u64,
    },
    /// A warp that arrives where nobody is missing any more.
    #[error("warp {warp} arrives once more than phase {phase} of the mbarrier counts")]
    OverArrival {
        /// The warp.
        warp: usize,
        /// The phase that is under way.
        phase: i64,
    },
    /// A wait for a phase that its parity does not tell from others.
    #[error(
        "warp {warp} waits for phase {phase} of the mbarrier while phase {current} is under way"
    )]
    WrongPhase {
        /// The warp.
        warp: usize,
        /// The phase that it means.
        phase: i64,
        /// The phase that is under way.
        current: i64,
    },
    /// A bulk copy that ends in another phase than it began in.
    #[error("the bytes of phase {began} of the mbarrier arrive in phase {ended}")]
    LateBytes {
        /// The phase under way when it began.
        began: i64,
        /// The phase under way when it ended.
        ended: i64,
    },
    /// A phase at the end of a program that still waits for bytes, or has too many.
    #[error("the program ends with {bytes} bytes missing in phase {phase} of the mbarrier")]
    BytesLeft {
        /// The bytes; fewer than zero where there are too many.
        bytes: i64,
        /// The phase.
        phase: i64,
    },
    /// A named barrier of several numbers of warps, or one at which a warp arrives twice.
    #[error("warp {warp} does not fit barrier {id} of {warps} warps")]
    NamedMismatch {
        /// The warp.
        warp: usize,
        /// The barrier.
        id: i64,
        /// How many warps the others have stated.
        warps: i64,
    },
    /// An operand that is not the same in all lanes of a warp.
    #[error("an operand of `{mnemonic}` differs between the lanes of warp {warp}")]
    NotUniform {
        /// The op.
        mnemonic: &'static str,
        /// The warp.
        warp: usize,
    },
}
