//! Whether the arrays of a kernel are such that bulk copies move boxes of them.

use super::{Input, Launch, LaunchExpression};
use crate::entity::EntityMap;
use crate::facts::Boxed;
use crate::ir::numbers::filling;
use crate::ir::{Func, Inst, Literal, Op, Value};

/// What addresses and strides of arrays are multiples of, in bytes (PTX ISA, "Tensor-map").
const ALIGN: u64 = 16;

/// What strides of arrays are below, in bytes.
const STRIDES: i64 = 1 << 40;

/// The least and the greatest integer among the arguments where boxes are copied: then no index wraps.
pub const BOX_NUMBERS: [i128; 2] = [i32::MIN as i128, i32::MAX as i128];

/// A condition on the arguments of a launch: each array whose boxes are moved ends in the memory that it begins, has
/// extents from 1 to 2^31 - 1, and is aligned as bulk copies need it. Its rows do not overlap. All integers are such
/// as 32 bits hold.
#[derive(Clone, Debug, Default)]
pub struct Boxes {
    loaded: Arrays,
    stored: Arrays,
}

/// Nothing where more than the launch decides the numbers of one.
type Arrays = Option<Vec<Array>>;

#[derive(Clone, PartialEq, Debug)]
struct Array {
    /// The axis along which elements are contiguous.
    inner: usize,
    parameter: usize,
    length: Input,
    element_bytes: i64,
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
        let definitions = func.definitions();
        let mut loaded = Vec::new();
        let mut stored = Vec::new();
        for inst in func.all_insts() {
            if matches!(func.op(inst), Op::LoadBox(_)) {
                loaded.push(Array::of(func, &definitions, inst));
            } else if matches!(func.op(inst), Op::StoreBox(_)) {
                stored.push(Array::of(func, &definitions, inst));
            }
        }
        let [loaded, stored] = [loaded, stored].map(|arrays| arrays.into_iter().collect());
        Self { loaded, stored }
    }

    /// Whether it says of the array that an access names in another function what this access asks.
    #[must_use]
    pub fn include(&self, func: &Func, inst: Inst) -> bool {
        let stores = matches!(func.op(inst), Op::StoreBox(_));
        let arrays = if stores { &self.stored } else { &self.loaded };
        let array = Array::of(func, &func.definitions(), inst);
        let pair = arrays.as_ref().zip(array);
        pair.is_some_and(|(arrays, array)| arrays.contains(&array))
    }

    /// The accesses for which it holds in a launch; nothing where that is none.
    #[must_use]
    pub fn hold(&self, launch: &Launch<'_>) -> Boxed {
        let mut numbers = (0..launch.arguments.len()).filter_map(|index| launch.integer(index));
        let [low, high] = BOX_NUMBERS;
        let small = numbers.all(|number| (low..=high).contains(&number));
        let fits = |array: &Array| array.fits(launch) == Some(true);
        let all = |arrays: &Arrays| arrays.as_ref().is_some_and(|all| all.iter().all(fits));
        let loads = small && all(&self.loaded);
        let none = self.loaded.as_ref().is_none_or(Vec::is_empty);
        match loads && all(&self.stored) {
            true => Boxed::All,
            false if loads && !none => Boxed::Loads,
            false => Boxed::Nothing,
        }
    }
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
            element_bytes: dtype.bytes().into(),
            axes: axes.collect::<Option<_>>()?,
        })
    }

    /// Nothing where a number is missing or too large.
    fn fits(&self, launch: &Launch<'_>) -> Option<bool> {
        let mut last = 0_i64;
        let mut reach = 0_i64;
        let mut fits = launch
            .input(Input::Address(self.parameter))?
            .is_multiple_of(ALIGN);
        let mut axes = Vec::new();
        for axis in &self.axes {
            let [extent, stride] = axis.each_ref().map(|number| number.evaluate(launch));
            axes.push((i64::try_from(extent?).ok()?, i64::try_from(stride?).ok()?));
        }
        let (_, unit) = axes[self.inner];
        fits &= unit == 1;
        let others = axes.iter().enumerate();
        for (_, &(_, stride)) in others.filter(|&(axis, _)| axis != self.inner) {
            let bytes = stride.checked_mul(self.element_bytes)?;
            fits &= bytes % ALIGN as i64 == 0 && bytes < STRIDES;
        }
        axes.sort_by_key(|&(_, stride)| stride);
        for (extent, stride) in axes {
            fits &= (1..=i64::from(i32::MAX)).contains(&extent) && stride > reach;
            last = last.checked_add((extent - 1).checked_mul(stride)?)?;
            reach = last;
        }
        let length = launch.input(self.length)?;
        Some(fits && last.cast_unsigned() < length)
    }
}
