//! The table of ops with their own shape: one row is one op.
//!
//! # Stages
//! *Block* ops work on tiles: one instruction is the work of a whole program. The *schedule* stage has the
//! same ones, and its tiles have layouts. *Lane* ops are what
//! one worker does: a CPU thread that runs a program, or one lane of a warp. Values of a lane
//! function are scalars and short vectors (rank 1). Some lane ops are for one of the two only: those of
//! *warps* and those of *workers*.
//!
//! # Memory
//! A pointer is the start of an array and never moves: an access names `base` and an element
//! offset (`i64`; in the lane stage also `i32`). Global bases are parameters; shared and scratch
//! bases come from `alloc`. Accesses of one program happen in program order.
//!
//! # Adding an op
//! Can it be derived? Then it is a row of [`super::functions`], a definition in `semantics::derived`
//! and the filetest that `BLESS=1 cargo test --test suite filetests` writes. Else add a row here or in
//! [`super::scalar_ops`] and follow the compiler's errors: the type rule in `infer`, the meaning in
//! `interp`, the lowering, the backends. Then write its filetests.

/// Calls `$m!` with one row per op: doc, variant, mnemonic, fields, results, traits; the group says the stages.
macro_rules! for_each_op {
    ($m:ident) => { $m! {
        elementwise {
            /// Converts each number. Rounds once to nearest even; float to integer saturates and NaN
            /// gives 0; to `bool` means nonzero.
            Cast "cast" { x: Value } -> stated is [pure elementwise pointwise];
            /// Reinterprets the bits as a type of the same width; a float NaN reads as the positive
            /// canonical NaN.
            Bitcast "bitcast" { x: Value } -> stated is [pure elementwise pointwise];
            /// `on_true` where the condition holds, else `on_false`; both are evaluated.
            Select "select" { condition: Value, on_true: Value, on_false: Value } -> one is [pure elementwise pointwise];
            /// A result of PTX for each element of the operands: on a GPU what the text gives, elsewhere
            /// `meaning[result]`, which is the same by the word of who wrote the text. In the text `$0` and so on are the
            /// results, as many as there are meanings, then the operands.
            InlinePtx "inline_ptx" { meaning: Values, operands: Values, result: i64, text: String } -> one is [pure elementwise pointwise];
        }
        shape {
            /// Repeats along the axes whose extent is 1.
            Broadcast "broadcast" { x: Value } -> stated is [pure pointwise];
            /// Inserts an axis of extent 1.
            ExpandDims "expand_dims" { x: Value, axis: Axis } -> one is [pure pointwise];
            /// Another shape, the same row-major order of elements.
            Reshape "reshape" { x: Value } -> stated is [pure pointwise];
            /// Permutes axes: axis `i` of the result is axis `permutation[i]` of `x`.
            Transpose "transpose" { x: Value, permutation: Indices } -> one is [pure pointwise];
            /// Turns an axis round: the last element along it comes first.
            Flip "flip" { x: Value, axis: Axis } -> one is [pure pointwise];
            /// The `count` elements along an axis from `start` on. `count` is a power of two, of which
            /// `start` is a multiple.
            Slice "slice" { x: Value, axis: Axis, start: i64, count: i64 } -> one is [pure pointwise];
            /// The elements of `x` at `part` (0 or 1) of its last axis, of extent 2, which goes.
            Split "split" { x: Value, part: i64 } -> one is [pure pointwise];
            /// Elements of `x` by the bits of their row-major indices: bit `i` of an index of the result is
            /// bit `bits[i]` of the index in `x`, or none of it (`-`). The other bits there are zero, and
            /// `offset` is added by exclusive or. What every shape op is before it is lowered.
            View "view" { x: Value, bits: Bits, offset: i64 } -> stated is [pure pointwise];
        }
        place {
            /// The same tile in another layout.
            Convert "convert" { x: Value } -> one is [pure pointwise];
        }
        slot {
            /// Shared memory of the thread block for so many tiles, each in a slot. Contents start undefined.
            /// With `behind` each slot begins where the slot of that buffer with the same number ends.
            Buffer "buffer" { behind: Option<Value> } -> stated is [];
            /// Starts to copy to a slot (`i32`) what `load` would read, and zero bits where the mask does not hold:
            /// each lane its elements in the layout of the offsets, `count` neighbours at once, which are so in memory and
            /// share their mask. The copies of a lane are complete, and
            /// to be seen by it, when it has waited for their group; nobody may touch the slot before.
            CopyLanes "copy_lanes" { base: Value, offsets: Value, mask: Option<Value>, buffer: Value, slot: Value, count: i64 } -> none is [reads writes];
            /// Starts to copy what `load` would read to a slot (`i32`), in pieces of 16 bytes, which lanes share: the elements at
            /// the offsets are those from `start` (`i64`) on, in their order, and the mask holds of the first `count` (`i64`). The first lies as far behind
            /// the begin of the slot as behind a multiple of 16 bytes in memory, what is in front of it in its piece is read too, and zero bits are
            /// behind the last. The copies of a lane are complete, and to be seen by it, when it has waited for their group, and to be seen by
            /// others after a barrier.
            CopyRun "copy_run" { base: Value, offsets: Value, mask: Option<Value>, start: Value, count: Value, buffer: Value, slot: Value } -> none is [reads writes];
            /// Starts to copy what `load_box` reads to a slot (`i32`), all at once and not by lanes. Nobody may touch the slot
            /// until the copy has been waited for. Where `released` (`i32`) is given, it starts once all warps have released
            /// the slot so many times.
            CopyBox "copy_box" { base: Value, origin: Values, extents: Values, strides: Values, along: Option<Axis>, buffer: Value, slot: Value, released: Option<Value> } -> none is [reads writes];
            /// Waits until boxes have filled a slot (`i32`) `turn + 1` times (`i32`). The last of them is then to be seen by
            /// who waits.
            WaitBox "wait_box" { buffer: Value, slot: Value, turn: Value } -> none is [convergent writes];
            /// This warp has read what a box has filled a slot (`i32`) with.
            ReleaseSlot "release_slot" { buffer: Value, slot: Value } -> none is [convergent writes];
            /// Starts to copy a slot (`i32`) to where `store_box` writes, all at once and not by lanes. What lanes have
            /// written to the slot, a fence and a barrier after it must have shown to all warps; nobody may write there
            /// until the copy has been waited for.
            CopySlot "copy_slot" { buffer: Value, slot: Value, base: Value, origin: Values, extents: Values, strides: Values } -> none is [reads writes];
            /// Waits until all `copy_slot` of the program but the last `pending` have read their slots. A barrier after it frees
            /// these.
            WaitSlots "wait_slots" { pending: i64 } -> none is [convergent writes];
            /// Waits until all `copy_slot` of the program are complete: what they write comes before what later ones write.
            /// A barrier after it frees their slots.
            WaitWritten "wait_written" {} -> none is [convergent writes];
            /// Begins shared memory for a row and starts to copy it there: what `load` would read, which are the `count` (`i64`)
            /// elements at the offsets from `start` (`i64`) on, in their order. The mask holds of the elements below
            /// `count`, which is `room` at most. The pieces of 16 bytes that the row has whole come at once and not by lanes.
            /// Nobody may read the row until the copy has been waited for. It is in no loop.
            CopyRow "copy_row" { base: Value, offsets: Value, mask: Option<Value>, start: Value, count: Value, room: i64 } -> stated is [reads writes];
            /// Waits until a row has come. It is then to be seen by who waits.
            WaitRow "wait_row" { row: Value } -> none is [convergent writes];
            /// The elements of a row, or those from `at` (`i64`) on, where the mask holds, which is below their number; elsewhere
            /// `other`, or zero bits without it.
            RowLoad "row_load" { row: Value, at: Option<Value>, mask: Option<Value>, other: Option<Value> } -> stated is [reads];
            /// The tile in a slot (`i32`); with `start` (`i64`) what `copy_run` has brought there from that element on.
            SlotLoad "slot_load" { buffer: Value, slot: Value, start: Option<Value> } -> stated is [reads];
            /// Writes a tile to a slot (`i32`).
            SlotStore "slot_store" { value: Value, buffer: Value, slot: Value } -> none is [writes];
            /// Starts `dot` of the tiles in two slots, by groups of four warps; `a` is a tile that lanes hold where no
            /// slot is given. What lanes have written to a slot, a fence and a barrier after it must have shown
            /// to all warps; nobody may write there until the group has waited for the product.
            DotSlots "dot_slots" { a: Value, a_slot: Option<Value>, b: Value, b_slot: Value, accumulator: Value, precision: Precision } -> one is [reads];
        }
        order {
            /// Waits for all lanes of the thread block and orders their shared and global memory
            /// accesses. All lanes take part.
            Barrier "barrier" {} -> none is [convergent writes];
            /// Makes a group of the copies that this lane has started since its last group.
            GroupCopies "group_copies" {} -> none is [writes];
            /// Waits until all groups of copies of this lane but the last `pending` are complete. Their
            /// elements are then visible to this lane, and after a barrier to the others.
            WaitCopies "wait_copies" { pending: i64 } -> none is [writes];
            /// A tile as sums that products add to; none does so far. They have one use at most.
            Pend "pend" { x: Value } -> one is [];
            /// Waits until all products that this warp has started but the last `pending` are complete, as are those of `x`
            /// then. The sums.
            Settle "settle" { x: Value, pending: i64 } -> one is [convergent writes];
            /// Waits until all products that this warp has started but the last `pending` are complete, and their
            /// operands read.
            WaitProducts "wait_products" { pending: i64 } -> none is [convergent writes];
            /// What the warp has done or seen comes before what bulk copies and tensor cores do later in shared
            /// memory, for those who see the fence.
            ProxyFence "proxy_fence" {} -> none is [convergent writes];
        }
        derived {
            /// Two tiles of one type as one with a last axis of extent 2: `a` is at 0 of it and `b` at 1.
            Join "join" { a: Value, b: Value } -> one is [pure];
            /// Adds the products of tiles to the accumulator by parts of `count`, in ascending order: `dot` makes each part
            /// from sums of +0, and one addition, rounded to nearest even, brings it to the sum so far. Of floats. `count` is a power of two,
            /// no more than the products of the tiles and no less than a 64th of them, and fills a step of the precision at least.
            DotPromoted "dot_promoted" { a: Value, b: Value, accumulator: Value, precision: Precision, count: i64 } -> one is [pure];
            /// Writes the elements of `x` where the mask holds, if it does anywhere, to the record of the launch: `words`
            /// of `u64` at `record`, as `launch::printed` says. `number` tells prints apart, `format` says how numbers are shown.
            Print "print" { record: Value, x: Value, mask: Option<Value>, label: String, number: i64, words: i64, format: Option<NumberFormat> } -> none is [writes];
        }
        map {
            /// The values of the region for each element of the sources, which are of one shape. The region takes one
            /// number of each source and has no effect.
            Map "map" { sources: Values, body: Region } -> yielded is [pure];
        }
        combine {
            /// Combines along an axis in the order named. Several sources are combined together:
            /// the region takes the lower operand of every source, then the higher, and yields one
            /// value for each. `tree` is the balanced binary tree over the axis, adjacent pairs first,
            /// lower index on the left; `any` leaves the order open.
            Reduce "reduce" { sources: Values, axis: Axis, order: Order, combine: Region } -> sources is [pure];
            /// Prefixes along an axis: element `i` is `reduce` of the elements up to and including `i`,
            /// in the same order and with the same combiner. `tree` combines right-nested the complete
            /// aligned subtrees that the prefix is made of, the largest on the left: at level `k` an
            /// element whose index has bit `k` takes the last prefix of the half below as its left
            /// operand. `direction=reverse` is the scan of the reversed axis.
            Scan "scan" { sources: Values, axis: Axis, order: Order, direction: Direction, combine: Region } -> sources is [pure];
        }
        both {
            /// A scalar, tile or vector filled with one literal.
            Constant "constant" { value: Literal } -> stated is [pure pointwise];
            /// Position of this program along a grid axis (0, 1 or 2).
            ProgramId "program_id" { axis: Axis } -> one is [pure];
            /// Extent of the grid along an axis (0, 1 or 2).
            NumPrograms "num_programs" { axis: Axis } -> one is [pure];
            /// Repeats a scalar.
            Splat "splat" { x: Value } -> stated is [pure pointwise];
            /// Ends a region, handing values to the op that owns it.
            Yield "yield" { values: Values } -> none is [terminator];
        }
        control {
            /// Runs the region for `lower, lower + step, ..` below `upper`. The region takes the index
            /// and the carried values and yields the next ones. `step` is positive; `stages` is a
            /// pipelining hint and never changes results: with 0 no schedule lets the loop run ahead.
            For "for" { lower: Value, upper: Value, init: Values, step: i64, stages: i64, body: Region } -> carried is [];
            /// One of two regions, which take nothing and yield the results.
            If "if" { condition: Value, on_true: Region, on_false: Region } -> yielded is [];
            /// While `before` yields true first, runs `body` on the carried values that it yields next.
            /// Both take the carried values.
            While "while" { init: Values, before: Region, body: Region } -> carried is [];
        }
        block {
            /// The integers `start..end`; their number is a power of two.
            Arange "arange" { start: i64, end: i64 } -> one is [pure pointwise];
            /// Reads `base[offsets]` where the mask holds; elsewhere `other`, or zero bits without it. `cache`
            /// is a hint to a GPU, here and in all accesses, and never changes bits.
            Load "load" { base: Value, offsets: Value, mask: Option<Value>, other: Option<Value>, cache: Option<Cache> } -> one is [reads];
            /// Reads the tile whose first element has the index `origin` of the array at `base`, with these extents and
            /// strides in elements, outermost axis first; zero bits where an index is not in the extent of its axis. With
            /// `along` the tile is put together of parts along that axis, equally many elements each, and `origin` has an index for each axis
            /// of the first part, then of the next. What a launch has shown of the array is in `passes::boxes`; so no launch checks it.
            LoadBox "load_box" { base: Value, origin: Values, extents: Values, strides: Values, along: Option<Axis>, cache: Option<Cache> } -> stated is [reads];
            /// Writes `base[offsets]` where the mask holds. Of two equal offsets the higher element
            /// index wins.
            Store "store" { base: Value, offsets: Value, value: Value, mask: Option<Value>, cache: Option<Cache> } -> none is [writes];
            /// Writes a tile to where `load_box` reads one; nothing where an index is not in the extent of its axis. No other op
            /// touches what is at `base`.
            StoreBox "store_box" { base: Value, origin: Values, extents: Values, strides: Values, value: Value, cache: Option<Cache> } -> none is [writes];
            /// Combines `value` into `base[offsets]` where the mask holds, each element in one step that
            /// nothing divides. Equal offsets all count, of a program and of several, in no stated order: sums of
            /// floats round, and follow it; `min` and `max` of floats do not, since a NaN changes nothing and gives way to
            /// a number, and -0 < +0. `order` and `scope` are those of memory: without them it orders no other access, and
            /// is one for a device.
            AtomicReduce "atomic_reduce" { base: Value, offsets: Value, value: Value, mask: Option<Value>, op: AtomicOp, order: Option<MemoryOrder>, scope: Option<Scope> } -> none is [writes];
            /// As `atomic_reduce`, and gives what `base[offsets]` held before; zero bits where the mask does not
            /// hold. `exchange` puts the value in its place; with `expected`, which no other has, only where memory held that, bit
            /// by bit but that a NaN is any NaN: a compare-and-swap. `load` gives it alone. The order of several
            /// accesses decides what they give.
            AtomicFetch "atomic_fetch" { base: Value, offsets: Value, value: Value, mask: Option<Value>, expected: Option<Value>, op: AtomicOp, order: Option<MemoryOrder>, scope: Option<Scope> } -> one is [reads writes];
            /// An error of a checked launch where an element does not hold (`bool`). The launch fails, with the
            /// first element that does not hold; what the program does after it is left open.
            Assert "assert" { condition: Value, message: String } -> none is [writes];
            /// The first `count` elements along an axis, in order. The first `keys` sources decide, an
            /// earlier one before a later one; the other sources move along; elements that agree in
            /// all keys keep their order. Numbers go by value, -0 < +0, NaN after all numbers, false
            /// before true; `descending` turns the order of the keys round. A NaN among the keys is
            /// given as the positive canonical NaN. `count` is a power of two.
            Sort "sort" { sources: Values, keys: i64, axis: Axis, direction: SortOrder, count: i64 } -> sources is [pure];
            /// `accumulator + a x b` for `[m, k]`, `[k, n]` and `[m, n]`, or for each element of an axis before
            /// those, which all three then have. `ieee` is the chain
            /// `acc = fma(a[m, k], b[k, n], acc)` over ascending k, then `+ 0.0`, in the accumulator's type, to
            /// which the operands are widened first. Both are of one type, no wider than that: floats, or integers
            /// signed as it is, of which sums wrap at 32 or 64 bits. `hopper`
            /// is what the tensor cores of compute capability 9.0 compute of floats of 8 to 32 bits, in `f32`: a chain
            /// of steps of 32 bytes of products, ascending k, each cut as `semantics::mma` says; of `f32` the bits of
            /// TF32 count. k fills a step at least. Of `f64` it is the chain of `ieee` without the `+ 0.0`, of any k.
            Dot "dot" { a: Value, b: Value, accumulator: Value, precision: Precision } -> one is [pure];
            /// How many elements of `x`, among those where the mask holds, equal each of `0..bins`, as
            /// `i32`. Others are not counted.
            Histogram "histogram" { x: Value, mask: Option<Value>, bins: i64 } -> one is [pure];
            /// Elements of `x` by their indices along the axis, the other coordinates being those of the
            /// index. An index out of range means the nearest in range, and is an error of checked
            /// launches, which report a `u64` beyond the greatest `i64` as that.
            Gather "gather" { x: Value, indices: Value, axis: Axis } -> one is [];
        }
        accumulator {
            /// An accumulator of nothing, for up to `2^levels - 1` subtrees.
            Accumulator "accumulator" {} -> stated is [pure];
            /// The accumulators and one subtree more, which is on the right of those before. Accumulators of one
            /// op go together: the region takes the lower operand of each, then the higher, and yields one value
            /// for each. The order is that of `reduce` with `tree` over the axes of all subtrees as one; what goes
            /// beyond the last level, which begins with zero bits, is combined with it, one after the other. The
            /// first accumulator counts for all.
            Accumulate "accumulate" { accumulators: Values, subtrees: Values, combine: Region } -> held is [pure];
            /// What the accumulators hold: of the complete aligned subtrees that they are made of, the larger is on
            /// the left, the smallest is combined with zero bits on its right.
            Total "total" { accumulators: Values, combine: Region } -> held is [pure];
            /// The prefixes along the axis after all that the accumulators hold: the subtrees are left operands of
            /// every element, the smallest first, each once the accumulators hold it.
            Prefixes "prefixes" { accumulators: Values, sources: Values, axis: Axis, combine: Region } -> held is [pure];
        }
        tensor {
            /// The array at `base` with these extents and strides in elements, outermost axis first. An element
            /// is at `offset`, or 0 without it, plus the sum of index times stride, modulo 2^64, whatever the array
            /// before it.
            Tensor "tensor" { base: Value, extents: Values, strides: Values, offset: Option<Value> } -> one is [pure];
            /// Reads the tile whose first element has the index `origin`, where the mask holds and the index,
            /// modulo 2^64, is in the extent of each axis; elsewhere `other`, or zero bits without it.
            TileLoad "tile_load" { tensor: Value, origin: Values, mask: Option<Value>, other: Option<Value>, cache: Option<Cache> } -> stated is [reads];
            /// Writes the tile whose first element has the index `origin`, where the mask holds and the index is in
            /// the extent of each axis. Of two elements at one place the higher element index wins.
            TileStore "tile_store" { tensor: Value, origin: Values, value: Value, mask: Option<Value>, cache: Option<Cache> } -> none is [writes];
            /// `atomic_reduce` of the tile whose first element has the index `origin`, where the mask holds and the
            /// index is in the extent of each axis.
            TileAtomic "tile_atomic" { tensor: Value, origin: Values, value: Value, mask: Option<Value>, op: AtomicOp, order: Option<MemoryOrder>, scope: Option<Scope> } -> none is [writes];
            /// `atomic_fetch` of the tile whose first element has the index `origin`, where the mask holds and the
            /// index is in the extent of each axis; zero bits elsewhere.
            TileFetch "tile_fetch" { tensor: Value, origin: Values, value: Value, mask: Option<Value>, expected: Option<Value>, op: AtomicOp, order: Option<MemoryOrder>, scope: Option<Scope> } -> one is [reads writes];
        }
        lane {
            /// A buffer of `count` elements that starts at byte `offset` of the shared or scratch
            /// memory of this program. Buffers may overlap on purpose. Contents start undefined.
            Alloc "alloc" { offset: i64, count: i64 } -> stated is [pure];
            /// Reads a scalar or consecutive elements from `base[offset]`, aligned to `align` bytes.
            /// Without the mask nothing is read and the result is `other`, or zero bits. A lane of a GPU
            /// may name several offsets: as many consecutive elements follow each, and each has its
            /// element of the mask.
            LaneLoad "lane_load" { base: Value, offset: Value, mask: Option<Value>, other: Option<Value>, align: i64, cache: Option<Cache> } -> stated is [reads];
            /// Writes a scalar or consecutive elements to `base[offset]`, aligned to `align` bytes. Several
            /// offsets are as in `lane_load`.
            LaneStore "lane_store" { base: Value, offset: Value, value: Value, mask: Option<Value>, align: i64, cache: Option<Cache> } -> none is [writes];
            /// Combines a scalar into `base[offset]` in one step that nothing divides; a lane of a GPU may
            /// combine each element of a vector at an offset of its own.
            LaneAtomic "lane_atomic" { base: Value, offset: Value, value: Value, mask: Option<Value>, op: AtomicOp, order: Option<MemoryOrder>, scope: Option<Scope> } -> none is [writes];
            /// As `lane_atomic`, of global memory, and gives what it held before; zero bits without the mask. With
            /// `expected` an `exchange` replaces only what has its bits, or is NaN as it is.
            LaneFetch "lane_fetch" { base: Value, offset: Value, value: Value, mask: Option<Value>, expected: Option<Value>, op: AtomicOp, order: Option<MemoryOrder>, scope: Option<Scope> } -> one is [reads writes];
            /// Whether `offset .. offset + count` lies inside the argument `base`, for each offset. Records
            /// nothing.
            InBounds "in_bounds" { base: Value, offset: Value, count: i64 } -> one is [pure];
            /// The integer of 32 or 64 bits of an `f32` or `f64`, by the machine's own instruction, truncated
            /// and saturated. Undefined for NaN: the lane interpreter stops there. What `legalise` makes of
            /// `cast`, and no one else.
            RawCast "raw_cast" { x: Value } -> stated is [pure];
            /// One element of a vector.
            Extract "extract" { vector: Value, index: i64 } -> one is [pure];
            /// A vector from its elements, lowest first.
            Vector "vector" { elements: Values } -> one is [pure];
            /// Picks elements from `a` followed by `b`.
            ShuffleVector "shuffle_vector" { a: Value, b: Value, indices: Indices } -> one is [pure];
        }
        warp {
            /// Index of this lane in its warp, 0..32 (`i32`).
            LaneId "lane_id" {} -> one is [pure];
            /// Index of this warp in its thread block (`i32`).
            WarpId "warp_id" {} -> one is [pure];
            /// These numbers, one an element (`i32` or `i64`): what the registers of a lane add to its
            /// place.
            Places "places" { values: Indices } -> stated is [pure];
            /// Records the error that `check_bounds` would, then ends the program if any of its lanes
            /// has recorded one. All lanes take part.
            StopOutside "stop_outside" { base: Value, offset: Value, element: Value, mask: Option<Value>, count: i64, site: i64 } -> none is [convergent writes];
            /// Records the error that `check_index` would where the mask holds, then ends the program if
            /// any of its lanes has recorded one. All lanes take part.
            StopIndex "stop_index" { index: Value, element: Value, mask: Option<Value>, axis: Axis, extent: i64, site: i64 } -> none is [convergent writes];
            /// Records the error that `check_assertion` would where `failed` holds (`bool`), then ends the program
            /// if any of its lanes has recorded one. All lanes take part.
            StopAssertion "stop_assertion" { failed: Value, element: Value, message: String, site: i64 } -> none is [convergent writes];
            /// The value that lane `lane_id ^ lane_mask` holds. All lanes of the warp take part.
            ShuffleXor "shuffle_xor" { x: Value, lane_mask: i64 } -> one is [convergent];
            /// The value that lane `source_lane` (`i32`, 0..32) holds. All lanes of the warp take part.
            ShuffleIndex "shuffle_index" { x: Value, source_lane: Value } -> one is [convergent];
            /// What all lanes of the warp hold, combined: `i32` or `u32`, or by `and` or `or` `bool`. Every lane gets it. All
            /// lanes of the warp take part.
            WarpReduce "warp_reduce" { x: Value, op: AtomicOp } -> one is [convergent];
            /// One step of the tensor cores, `accumulator + a x b` of a fragment `[16, k]` of `a` and `[k, 8]` of `b`, for
            /// k products of 32 bytes, or 4, 8 or 16 of `f64`: k / 2 and k / 4 numbers and 4 sums of each lane, spread as
            /// `layout::fragment` says. All lanes of the warp take part.
            Mma "mma" { a: Value, b: Value, accumulator: Value, precision: Precision } -> one is [convergent];
            /// Starts a part of `accumulator + a x b` by four warps, of which the first has a number that 4 divides:
            /// `[64, products]` times `[products, columns]` for each 64 rows that the accumulator has. The operands
            /// are in shared memory from their offsets on, multiples of 1024 bytes, as `layout::group` says: by
            /// columns where `transposed` is 1, in chunks of so many elements. Lanes have the accumulator as
            /// that says too, and `a` where it has no offset.
            GroupMma "group_mma" { a: Value, a_offset: Option<Value>, b: Value, b_offset: Value, accumulator: Value, columns: i64, products: i64, transposed: Indices, chunks: Indices, precision: Precision } -> one is [convergent reads];
            /// Starts to copy `count` consecutive elements from `source[source_offset]`, global, to
            /// `target[offset]`, shared: 4, 8 or 16 bytes, aligned to as much on both sides; as many for each
            /// pair of several offsets. Of these `read` (`i32`) are read, 0 to `count`, or all without it, and zero bits are written
            /// behind them. Until the copy is complete, nobody may touch its elements or write its source.
            StartCopy "start_copy" { target: Value, offset: Value, source: Value, source_offset: Value, read: Option<Value>, count: i64 } -> none is [reads writes];
        }
        transfer {
            /// Runs one region for each number: the lowest `warps[0]` warps of the thread block the first, the
            /// next `warps[1]` the second, all at once. The numbers add up to all warps.
            Roles "roles" { warps: RoleRegions } -> none is [convergent writes];
            /// Makes `word[at]`, in shared memory, a barrier with phases, of which 0 is under way: a phase is over
            /// after `count` arrivals, once no bytes are missing. The word is no data from then on.
            MbarrierInit "mbarrier_init" { word: Value, at: Value, count: i64 } -> none is [convergent writes];
            /// The phase that is under way waits for so many bytes more.
            MbarrierExpect "mbarrier_expect" { word: Value, at: Value, bytes: i64 } -> none is [convergent writes];
            /// One arrival for the warp. Who waits for the phase sees what the warp has done and seen.
            MbarrierArrive "mbarrier_arrive" { word: Value, at: Value } -> none is [convergent writes];
            /// Waits until phase `phase` (`i32`) is over; phase -1 is over from the start. The machine sees
            /// whether the number is even or odd, so the phase must be the one under way or the one before.
            MbarrierWait "mbarrier_wait" { word: Value, at: Value, phase: Value } -> none is [convergent writes];
            /// Waits until `warps` warps are at barrier `id`, 1 to 15; they see what each of them has done.
            NamedSync "named_sync" { id: i64, warps: i64 } -> none is [convergent writes];
            /// Counts as one of the warps at barrier `id` and does not wait.
            NamedArrive "named_arrive" { id: i64, warps: i64 } -> none is [convergent writes];
            /// The array at `base` with these extents, outermost first, and a stride in elements for each axis
            /// but the last, in boxes of this shape. In shared memory a box has its elements row by row; the 16-byte
            /// pieces of each 128 bytes are exchanged: bits 4 up of the address by those from bit 7 up,
            /// as many as `swizzle` (0, 32, 64 or 128) is long in such pieces.
            TensorMap "tensor_map" { base: Value, extents: Values, strides: Values, shape: Indices, swizzle: i64 } -> one is [pure];
            /// Starts to copy the box at `origin` to `target[offset]`, aligned to 128 bytes; what is outside of the
            /// array is zero bits. At some later time the bytes of the box count for the phase of `word[at]`.
            CopyIn "copy_in" { map: Value, origin: Values, target: Value, offset: Value, word: Value, at: Value } -> none is [convergent reads writes];
            /// Starts to copy `count` consecutive elements from `source[source_offset]`, global, to `target[offset]`, shared:
            /// pieces of 16 bytes, aligned to as much on both sides. The phase of `word[at]` that is under way waits for their
            /// bytes, which count for it at some later time. Where `count` is not positive nothing happens.
            CopySpan "copy_span" { target: Value, offset: Value, source: Value, source_offset: Value, count: Value, word: Value, at: Value } -> none is [convergent reads writes];
            /// Starts to copy `source[offset]`, aligned to 128 bytes, to the box at `origin`; what is outside of the
            /// array is not written.
            CopyOut "copy_out" { map: Value, origin: Values, source: Value, offset: Value } -> none is [convergent reads writes];
            /// Waits until all `copy_out` of this warp but the last `pending` have read what they copy. What they write comes
            /// later, by the end of the launch.
            WaitCopiesRead "wait_copies_read" { pending: i64 } -> none is [convergent writes];
            /// Waits until all `copy_out` of this warp but the last `pending` are complete.
            WaitCopiesOut "wait_copies_out" { pending: i64 } -> none is [convergent writes];
        }
        worker {
            /// The mask, and that `offset .. offset + count` lies inside the argument `base`. Where
            /// the mask holds and an offset does not, records the error (program, `site`, `element`)
            /// for the first of the `count` elements that is outside; `element` counts up with the
            /// offset. Of several errors of a launch the least is kept.
            CheckBounds "check_bounds" { base: Value, offset: Value, element: Value, mask: Option<Value>, count: i64, site: i64 } -> one is [writes];
            /// Records the error (program, `site`, `element`) where `index` (`i64`) is not in
            /// `0..extent`; `axis` names the place in its message.
            CheckIndex "check_index" { index: Value, element: Value, axis: Axis, extent: i64, site: i64 } -> none is [writes];
            /// Records the error (program, `site`, `element`, offset 0) where `failed` holds (`bool`).
            CheckAssertion "check_assertion" { failed: Value, element: Value, message: String, site: i64 } -> none is [writes];
        }
    }};
}
pub(crate) use for_each_op;
