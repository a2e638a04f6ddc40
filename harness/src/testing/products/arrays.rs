//! The arrays of a product, on any device and in any layout.

use std::rc::Rc;

use exactile::internals::POISON;
use exactile::{Array, Buffer, Device, Number, Result, TensorView, TensorViewMut};
use exactile_core::ir::Literal;
use exactile_core::random::Random;
use exactile_kernels::Setting;

use super::Setup;
use super::data::{Kind, numbers};
use super::layout::Layout;
use crate::demo::problem;

/// What the arrays of a product follow from.
pub(super) struct Plan {
    /// Rows, columns, and products of each sum.
    pub(super) shape: [usize; 3],
    /// How the factors and the result lie, where that is not as the ready launch has them.
    pub(super) layouts: Option<[Layout; 3]>,
    pub(super) kind: Kind,
    pub(super) seed: u64,
    /// For whatever else is drawn: what code follows from, and what it does not.
    pub(super) of_family: Random,
    pub(super) random: Random,
    /// The most multiply-adds.
    pub(super) most: u64,
    /// Whether one number is another one wherever results are judged.
    pub(super) planted: bool,
}

/// Puts what the golden run gives into memory as the problem has it.
pub(super) type Expected = Box<dyn Fn(Vec<Array>) -> Result<Vec<Array>>>;

/// A problem, and the same as the golden run has it.
pub(super) struct Made {
    pub(super) golden: Setup,
    pub(super) setup: Setup,
    pub(super) expected: Expected,
    /// What else was drawn.
    pub(super) note: String,
    /// Products of the shape.
    pub(super) times: u64,
}

impl Plan {
    /// The numbers of both factors.
    fn factors<T: Number>(&self, lens: [usize; 2]) -> Rc<[Vec<T>; 2]> {
        let apart = 2 * self.shape[2] + 1;
        let of = |place: usize| numbers(self.kind, self.seed + place as u64, (lens[place], apart));
        Rc::new([of(0), of(1)])
    }
}

/// Makes the first number another one, if that is asked.
fn planted<T: Number>(numbers: &[T], is_asked: bool) -> Vec<T> {
    let mut numbers = numbers.to_vec();
    if let Some(first) = numbers.first_mut().filter(|_| is_asked) {
        let other = [3.0, 5.0].map(|it| T::from_bits(Literal::from_f64(T::DTYPE, it).bits));
        *first = other[usize::from(*first == other[0])];
    }
    numbers
}

/// A problem of arrays of so many elements that lie as the launch says.
pub(super) fn of_arrays<T: Number, O: Number>(
    plan: &Plan,
    [left, right, len]: [usize; 3],
    launch: impl Fn([&Buffer<T>; 2], &mut Buffer<O>, &Setting) -> Result<()> + 'static,
) -> Made {
    let (factors, launch) = (plan.factors::<T>([left, right]), Rc::new(launch));
    let setup = |is_planted: bool| -> Setup {
        let (factors, launch) = (Rc::clone(&factors), Rc::clone(&launch));
        Box::new(move |device| {
            let a = Buffer::from_slice(device, &planted(&factors[0], is_planted))?;
            let b = Buffer::from_slice(device, &factors[1])?;
            let launch = Rc::clone(&launch);
            let out = Buffer::<O>::zeros(device, len)?;
            Ok(problem(out, move |out, setting| {
                launch([&a, &b], out, setting)
            }))
        })
    };
    Made {
        golden: setup(false),
        setup: setup(plan.planted),
        expected: Box::new(Ok),
        note: String::new(),
        times: 1,
    }
}

/// A problem of matrices that may lie in memory in any way: `launch` takes views of them, and `dense`, which the golden run takes, arrays
/// as the ready launch has them, the second factor by columns where `turned` says so. `beside` makes what else they take.
pub(super) fn of_views<T: Number, O: Number, E: 'static>(
    (plan, turned): (&Plan, bool),
    beside: impl Fn(&Device) -> Result<E> + 'static,
    dense: impl Fn(&E, [&Buffer<T>; 2], &mut Buffer<O>, &Setting) -> Result<()> + 'static,
    launch: impl Fn(
        &E,
        [TensorView<'_, T, 2>; 2],
        TensorViewMut<'_, O, 2>,
        &Device,
        &Setting,
    ) -> Result<()>
    + 'static,
) -> Made {
    let [m, n, k] = plan.shape;
    let factors = plan.factors::<T>([m * k, k * n]);
    let (beside, launches) = (Rc::new(beside), Rc::new((dense, launch)));
    let setup = |layouts: Option<[Layout; 3]>, is_planted: bool| -> Setup {
        let (factors, beside) = (Rc::clone(&factors), Rc::clone(&beside));
        let launches = Rc::clone(&launches);
        Box::new(move |device| {
            let usual = [false, turned, false].map(Layout::dense);
            let [of_a, of_b, of_out] = layouts.unwrap_or(usual);
            // No number, where the type has such.
            let unread = T::from_bits(u64::MAX);
            let a = of_a.placed(&planted(&factors[0], is_planted), [m, k], unread);
            let b = of_b.placed(&factors[1], [k, n], unread);
            let (a, b) = (
                Buffer::from_slice(device, &a)?,
                Buffer::from_slice(device, &b)?,
            );
            let (others, launches) = (beside(device)?, Rc::clone(&launches));
            let out = Buffer::<O>::zeros(device, of_out.len([m, n]))?;
            Ok(problem(out, move |out, setting| {
                let (dense, launch) = &*launches;
                if layouts.is_none() {
                    return dense(&others, [&a, &b], out, setting);
                }
                let device = out.device().clone();
                let views = [of_a.view(&a, [m, k])?, of_b.view(&b, [k, n])?];
                let out = of_out.view_mut(out, [m, n])?;
                launch(&others, views, out, &device, setting)
            }))
        })
    };
    let expected: Expected = match plan.layouts {
        None => Box::new(Ok),
        Some([.., of_out]) => Box::new(move |golden| {
            // A launch leaves what lies between the elements of its result as it is.
            let between = O::from_bits(u64::from_ne_bytes([POISON; 8]));
            let memory = golden.iter().map(|matrix| {
                let memory = of_out.placed(&matrix.to_vec::<O>()?, [m, n], between);
                Array::from_slice([memory.len()], &memory)
            });
            memory.collect()
        }),
    };
    Made {
        golden: setup(None, false),
        setup: setup(plan.layouts, plan.planted),
        expected,
        note: String::new(),
        times: 1,
    }
}
