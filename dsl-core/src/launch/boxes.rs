//! Whether the arrays of a kernel are such that bulk copies move boxes of them, or of copies of them.

use super::padded::{PaddedRows, pays};
use super::{ArrayNumbers, Input, Launch, LaunchExpression};
use crate::entity::EntityMap;
use crate::facts::Boxed;
use crate::ir::numbers::filling;
use crate::ir::op::Control;
use crate::ir::{Func, Inst, Literal, Op, Region, Value};

/// What strides of arrays are below, in bytes.
const STRIDES: i64 = 1 << 40;

/// The least and the greatest integer among the arguments where boxes are copied: then no index wraps.
pub const BOX_NUMBERS: [i128; 2] = [i32::MIN as i128, i32::MAX as i128];

/// Iterations of a loop whose bounds more than the launch decides.
const ITERATIONS: u64 = 8;

/// A condition on the arguments of a launch: each array whose boxes are moved ends in the memory that it begins, and has
/// extents from 1 to 2^31 - 1. Its rows do not overlap. It is aligned as bulk copies need it, or it is only read, and copies with
/// [`PaddedRows`] of all that are not cost less than they save. All integers are such as 32 bits hold.
#[derive(Clone, Debug, Default)]
pub struct Boxes {
    /// Nothing where more than the launch decides the numbers of one.
    loaded: Option<Vec<Loaded>>,
    /// As above.
    stored: Option<Vec<Array>>,
}

/// An array with how a program loads a box of it.
#[derive(Clone, Debug)]
struct Loaded {
    array: Array,
    box_bytes: u64,
    loops: Vec<Loop>,
}

/// A loop: its bounds, where the launch decides them, and its step.
#[derive(Clone, Debug)]
struct Loop {
    bounds: Option<[LaunchExpression; 2]>,
    step: u64,
}

#[derive(Clone, PartialEq, Debug)]
struct Array {
    /// The axis along which elements are contiguous.
    inner: usize,
    parameter: usize,
    length: Input,
    element_bytes: u32,
    /// The extent and the stride of each axis.
    axes: Vec<[LaunchExpression; 2]>,
}

/// The axis of an array along which elements are contiguous, the last if there are several; nothing where the strides
/// do not say one.
#[must_use]
pub fn inner_axis(func: &Func, strides: &[Value]) -> Option<usize> {
    let definitions = func.definitions();
    let is_one = |stride: &Value| {
        let op = |value: Value| definitions[value].map(|inst| func.op(inst));
        let literal = filling(*stride, op).and_then(Literal::integer);
        literal == Some(1)
    };
    (0..strides.len())
        .rev()
        .find(|&axis| is_one(&strides[axis]))
}

impl Boxes {
    /// The arrays of a function.
    #[must_use]
    pub fn of(func: &Func) -> Self {
        let mut reader = Reader {
            func,
            definitions: func.definitions(),
            loops: Vec::new(),
            loaded: Vec::new(),
            stored: Vec::new(),
        };
        reader.region(func.body());
        Self {
            loaded: reader.loaded.into_iter().collect(),
            stored: reader.stored.into_iter().collect(),
        }
    }

    /// Whether it says of the array that an access names in another function what this access asks.
    #[must_use]
    pub fn include(&self, func: &Func, inst: Inst) -> bool {
        let Some(array) = Array::of(func, &func.definitions(), inst) else {
            return false;
        };
        match (func.op(inst), &self.loaded, &self.stored) {
            (Op::StoreBox(_), _, Some(stored)) => stored.contains(&array),
            (Op::LoadBox(_), Some(loaded), _) => loaded.iter().any(|it| it.array == array),
            _ => false,
        }
    }

    /// The accesses for which it holds in a launch; nothing where that is none.
    #[must_use]
    pub fn hold(&self, launch: &Launch<'_>) -> Boxed {
        let mut numbers = (0..launch.arguments.len()).filter_map(|index| launch.integer(index));
        let [low, high] = BOX_NUMBERS;
        let small = numbers.all(|number| (low..=high).contains(&number));
        let fits = |array: &Array| array.lies(launch).is_some_and(|it| it.copy.is_none());
        let loaded = self.loaded.as_ref().filter(|_| small);
        let loads = loaded.is_some_and(|all| are_brought(all, launch));
        let none = self.loaded.as_ref().is_none_or(Vec::is_empty);
        let stored = self.stored.as_ref();
        match loads && stored.is_some_and(|all| all.iter().all(fits)) {
            true => Boxed::All,
            false if loads && !none => Boxed::Loads,
            false => Boxed::Nothing,
        }
    }
}

/// Whether bulk copies bring boxes of all these arrays, or of copies with padded rows that are worth while.
fn are_brought(loaded: &[Loaded], launch: &Launch<'_>) -> bool {
    let mut copied: Vec<(ArrayNumbers, PaddedRows)> = Vec::new();
    let mut read = 0_u64;
    for each in loaded {
        let Some(lies) = each.array.lies(launch) else {
            return false;
        };
        if let Some(copy) = lies.copy {
            read = read.saturating_add(each.read(launch));
            let mut same = copied.iter().filter(|(it, _)| *it == lies.numbers);
            match same.next() {
                // Rows of one number of elements of two widths have no copy in common.
                Some((_, other)) if *other != copy => return false,
                Some(_) => {}
                None => copied.push((lies.numbers, copy)),
            }
        }
    }
    copied.is_empty() || pays(read, copied.iter().map(|(_, copy)| copy.bytes()))
}

impl Loaded {
    /// About how many bytes of its boxes all programs of a launch read.
    fn read(&self, launch: &Launch<'_>) -> u64 {
        let programs = launch.grid.iter().map(|&it| u64::from(it));
        let iterations = self.loops.iter().map(|it| it.iterations(launch));
        let counts = programs.chain(iterations);
        counts.fold(self.box_bytes, u64::saturating_mul)
    }
}

impl Loop {
    fn iterations(&self, launch: &Launch<'_>) -> u64 {
        let bounds = self.bounds.as_ref().and_then(|[lower, upper]| {
            let length = upper.evaluate(launch)? - lower.evaluate(launch)?;
            u64::try_from(length.max(0)).ok()
        });
        bounds.map_or(ITERATIONS, |length| length.div_ceil(self.step.max(1)))
    }
}

/// Goes through a function with the loops around it.
struct Reader<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
    loops: Vec<Loop>,
    loaded: Vec<Option<Loaded>>,
    stored: Vec<Option<Array>>,
}

impl Reader<'_> {
    fn region(&mut self, region: Region) {
        let func = self.func;
        for &inst in &func.region(region).insts {
            let op = func.op(inst);
            if matches!(op, Op::LoadBox(_)) {
                let array = Array::of(func, &self.definitions, inst);
                let elements = func.ty(func.inst(inst).results[0]).shape.elements() as u64;
                self.loaded.push(array.map(|array| Loaded {
                    box_bytes: elements * u64::from(array.element_bytes),
                    array,
                    loops: self.loops.clone(),
                }));
            } else if matches!(op, Op::StoreBox(_)) {
                self.stored.push(Array::of(func, &self.definitions, inst));
            }
            let own = self.own_loop(op);
            let depth = self.loops.len();
            self.loops.extend(own);
            for inner in op.regions() {
                self.region(inner);
            }
            self.loops.truncate(depth);
        }
    }

    /// The loop that an op is.
    fn own_loop(&self, op: &Op) -> Option<Loop> {
        let read = |value: Value| LaunchExpression::of(self.func, &self.definitions, value);
        match op.control()? {
            Control::For(op) => Some(Loop {
                bounds: read(op.lower)
                    .zip(read(op.upper))
                    .map(|(lower, upper)| [lower, upper]),
                step: u64::try_from(op.step).unwrap_or(1),
            }),
            Control::While(_) => Some(Loop {
                bounds: None,
                step: 1,
            }),
            Control::If(_) => None,
        }
    }
}

/// How an array lies in a launch.
struct Lies {
    numbers: ArrayNumbers,
    /// Of which bulk copies bring boxes in its place, where it is not aligned for them.
    copy: Option<PaddedRows>,
}

impl Array {
    /// That of an access to a box of it.
    fn of(func: &Func, definitions: &EntityMap<Value, Option<Inst>>, inst: Inst) -> Option<Self> {
        let (base, extents, strides) = if let Op::LoadBox(op) = func.op(inst) {
            (op.base, &op.extents, &op.strides)
        } else if let Op::StoreBox(op) = func.op(inst) {
            (op.base, &op.extents, &op.strides)
        } else {
            return None;
        };
        let read = |value: &Value| LaunchExpression::of(func, definitions, *value);
        let (dtype, _) = func.ty(base).pointee()?;
        let parameter = func.parameter_index(base)?;
        let axes = extents.iter().zip(strides);
        let axes = axes.map(|(extent, stride)| Some([read(extent)?, read(stride)?]));
        Some(Self {
            inner: inner_axis(func, strides)?,
            parameter,
            length: Input::Length(parameter, dtype),
            element_bytes: dtype.bytes(),
            axes: axes.collect::<Option<_>>()?,
        })
    }

    /// Nothing where a number is missing or too large, or its rows overlap or go beyond its memory, or they are such that no copy
    /// helps.
    fn lies(&self, launch: &Launch<'_>) -> Option<Lies> {
        let mut axes = Vec::new();
        for axis in &self.axes {
            let [extent, stride] = axis.each_ref().map(|number| number.evaluate(launch));
            let extent = i64::try_from(extent?).ok();
            let extent = extent.filter(|it| (1..=i64::from(i32::MAX)).contains(it))?;
            axes.push((extent, i64::try_from(stride?).ok()?));
        }
        let numbers = self.numbers(launch, axes.clone())?;
        axes.sort_by_key(|&(_, stride)| stride);
        let mut reach = 0_i64;
        for (extent, stride) in axes {
            let last = reach.checked_add((extent - 1).checked_mul(stride)?)?;
            (stride > reach).then_some(())?;
            reach = last;
        }
        let length = launch.input(self.length)?;
        (reach.cast_unsigned() < length).then_some(())?;
        let copy = match numbers.is_aligned() {
            true => None,
            false => Some(PaddedRows::of(&numbers, self.element_bytes)?),
        };
        Some(Lies { numbers, copy })
    }

    /// Its numbers as a map has them: the axis of neighbours last.
    fn numbers(&self, launch: &Launch<'_>, mut axes: Vec<(i64, i64)>) -> Option<ArrayNumbers> {
        let (columns, unit) = axes.remove(self.inner);
        (unit == 1).then_some(())?;
        let bytes = |&(_, stride): &(i64, i64)| {
            let bytes = stride.checked_mul(self.element_bytes.into())?;
            (0..STRIDES).contains(&bytes).then_some(bytes as u64)
        };
        let extents = axes.iter().map(|&(extent, _)| extent);
        Some(ArrayNumbers {
            address: launch.input(Input::Address(self.parameter))?,
            extents: extents.chain([columns]).map(|it| it as u64).collect(),
            strides: axes.iter().map(bytes).collect::<Option<_>>()?,
        })
    }
}
