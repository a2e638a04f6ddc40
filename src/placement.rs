//! The grid of a launch: what the launch says, or what the kernel says of its arguments.

use exactile_core::ir::{Grid, Literal};
use exactile_core::lang::{Element, InOut, Ptr, PtrMut, Scalar, Tensor, TensorInOut, TensorMut};
use exactile_core::launch::Passed;
use smallvec::SmallVec;

use crate::arguments::BoundArguments;
use crate::bound::FEW;
use crate::error::{Error, Result};
use crate::grid::IntoGrid;
use crate::kernel::Kernel;
use crate::launch::refuse_in_trace;
use crate::panics::guarded;

/// The grid of a launch: `()` for the one that the kernel states, `#[kernel(grid = ..)]`, or another one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no grid",
    note = "a grid is a number, a tuple of two or three, or `()` for the one that the kernel states"
)]
pub trait LaunchGrid {
    /// What the launch says itself.
    #[doc(hidden)]
    fn stated(self) -> Result<Option<Grid>>;
}

impl LaunchGrid for () {
    fn stated(self) -> Result<Option<Grid>> {
        Ok(None)
    }
}

impl<G: IntoGrid> LaunchGrid for G {
    fn stated(self) -> Result<Option<Grid>> {
        self.into_grid().map(Some)
    }
}

/// What a launch said, for later.
pub(crate) struct Stated(pub(crate) Option<Grid>);

impl LaunchGrid for Stated {
    fn stated(self) -> Result<Option<Grid>> {
        Ok(self.0)
    }
}

impl<P> Kernel<P> {
    /// The grid of a launch, where the kernel can be launched with these arguments at all.
    pub(crate) fn placed(
        &self,
        grid: impl LaunchGrid,
        arguments: &BoundArguments<'_>,
    ) -> Result<Grid> {
        refuse_in_trace(self.name())?;
        self.check_set()?;
        let stated = grid.stated()?;
        let own = match &self.place {
            Some(place) => {
                // What a kernel states there is the user's code.
                let what = || {
                    let (name, loc, config) = (self.name(), self.source.loc(), self.config());
                    format!("kernel `{name}`: its grid or its constraint at {loc} for `{config}`")
                };
                guarded(what, || place(arguments))?
            }
            None => None,
        };
        stated.or(own).ok_or_else(|| {
            Error::Invalid(format!(
                "kernel `{}` states no grid: pass one to the launch in place of `()`, or state `#[kernel(grid = ..)]`",
                self.name()
            ))
        })
    }
}

/// The arguments of a launch, read one parameter after the other.
pub struct HostArguments<'b> {
    kernel: &'static str,
    list: SmallVec<[Passed; FEW]>,
    choices: &'b [bool],
    next: [usize; 2],
    /// Whether nothing is made of what is read.
    is_skipping: bool,
}

impl<'b> HostArguments<'b> {
    pub(crate) fn new(kernel: &'static str, bound: &'b BoundArguments<'_>) -> Self {
        Self {
            kernel,
            list: bound.list.iter().map(|it| it.passed()).collect(),
            choices: &bound.choices,
            next: [0, 0],
            is_skipping: false,
        }
    }

    fn choice(&mut self) -> bool {
        let [_, next] = &mut self.next;
        *next += 1;
        self.choices.get(*next - 1).copied().unwrap_or(false)
    }

    fn passed(&mut self) -> Option<Passed> {
        let [next, _] = &mut self.next;
        *next += 1;
        self.list.get(*next - 1).copied()
    }

    fn bytes(&mut self) -> usize {
        match self.passed() {
            Some(Passed::Memory { bytes, .. }) => usize::try_from(bytes).unwrap_or(usize::MAX),
            Some(Passed::Scalar(_)) | None => 0,
        }
    }

    fn number(&mut self) -> Literal {
        match self.passed() {
            Some(Passed::Scalar(literal)) => literal,
            Some(Passed::Memory { .. }) | None => {
                Literal::from_bits(exactile_core::ir::DType::I64, 0)
            }
        }
    }

    fn extent(&mut self, name: &str) -> Result<usize> {
        let number = self.number().integer().unwrap_or(0);
        if self.is_skipping {
            return Ok(0);
        }
        usize::try_from(number).map_err(|_| {
            Error::Invalid(format!(
                "kernel `{}`: `{name}` is {number}, expected a number from 0 on: the grid that the kernel states follows \
                 from it",
                self.kernel
            ))
        })
    }

    /// Passes over a parameter that neither the grid nor the constraint names, whatever its value is.
    #[doc(hidden)]
    pub fn skip<P: OnHost>(&mut self, name: &str) -> Result<()> {
        self.is_skipping = true;
        let skipped = P::on_host(self, name).map(drop);
        self.is_skipping = false;
        skipped
    }

    /// What a kernel asks of its configuration and its arguments does not hold.
    #[doc(hidden)]
    pub fn unmet(&self, constraint: &str) -> Error {
        let kernel = self.kernel;
        Error::Invalid(format!(
            "kernel `{kernel}`: its constraint `{constraint}` does not hold"
        ))
    }
}

/// What the grid and the constraint of a kernel see of a parameter: of an integer a `usize`, of a tensor its extents, of a
/// pointer the number of elements.
pub trait OnHost {
    /// What they see.
    type Host;
    /// Reads the parameter from the arguments.
    fn on_host(arguments: &mut HostArguments<'_>, name: &str) -> Result<Self::Host>;
}

/// An array that a pointer stands for, as a grid sees it.
#[derive(Clone, Copy, Debug)]
pub struct HostArray {
    len: usize,
}

impl HostArray {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A tensor as a grid sees it.
#[derive(Clone, Copy, Debug)]
pub struct HostTensor<const RANK: usize> {
    extents: [usize; RANK],
}

impl<const RANK: usize> HostTensor<RANK> {
    /// The extent along an axis.
    ///
    /// # Panics
    /// There is no such axis. In the grid of a kernel that is an error of the launch.
    pub fn extent(&self, axis: usize) -> usize {
        self.extents[axis]
    }
}

macro_rules! pointers {
    ($($Pointer:ident)*) => { $(
        impl<T: Element> OnHost for $Pointer<T> {
            type Host = HostArray;
            fn on_host(arguments: &mut HostArguments<'_>, _: &str) -> Result<HostArray> {
                let len = arguments.bytes() / T::DTYPE.bytes() as usize;
                Ok(HostArray { len })
            }
        }
    )* };
}
pointers!(Ptr PtrMut);

macro_rules! tensors {
    ($($Tensor:ident)*) => { $(
        impl<T: Element, const RANK: usize> OnHost for $Tensor<T, RANK> {
            type Host = HostTensor<RANK>;
            fn on_host(arguments: &mut HostArguments<'_>, name: &str) -> Result<HostTensor<RANK>> {
                arguments.bytes();
                let mut extents = [0; RANK];
                for extent in &mut extents {
                    *extent = arguments.extent(name)?;
                }
                for _ in 0..RANK {
                    arguments.number();
                }
                if arguments.choice() {
                    arguments.number();
                }
                Ok(HostTensor { extents })
            }
        }
    )* };
}
tensors!(Tensor TensorMut);

macro_rules! in_outs {
    ($($InOut:ty: $Read:ty, $Write:ty $(, $RANK:ident)?;)*) => { $(
        impl<T: Element $(, const $RANK: usize)?> OnHost for $InOut {
            type Host = <$Write as OnHost>::Host;
            fn on_host(arguments: &mut HostArguments<'_>, name: &str) -> Result<Self::Host> {
                if !arguments.choice() {
                    <$Read as OnHost>::on_host(arguments, name)?;
                }
                <$Write as OnHost>::on_host(arguments, name)
            }
        }
    )* };
}
in_outs! {
    InOut<T>: Ptr<T>, PtrMut<T>;
    TensorInOut<T, RANK>: Tensor<T, RANK>, TensorMut<T, RANK>, RANK;
}

macro_rules! integers {
    ($($Integer:ty)*) => { $(
        impl OnHost for $Integer {
            type Host = usize;
            fn on_host(arguments: &mut HostArguments<'_>, name: &str) -> Result<usize> {
                arguments.extent(name)
            }
        }
    )* };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! others {
    ($($Number:ty => $Host:ty: $read:expr;)*) => { $(
        impl OnHost for $Number {
            type Host = $Host;
            fn on_host(arguments: &mut HostArguments<'_>, _: &str) -> Result<$Host> {
                let read: fn(Literal) -> $Host = $read;
                Ok(read(arguments.number()))
            }
        }
    )* };
}
others! {
    bool => bool: |it| it.bits != 0;
    exactile_core::ir::floats::F8E4M3 => f64: |it| it.float().unwrap_or(0.0);
    exactile_core::ir::floats::F8E5M2 => f64: |it| it.float().unwrap_or(0.0);
    half::f16 => f64: |it| it.float().unwrap_or(0.0);
    half::bf16 => f64: |it| it.float().unwrap_or(0.0);
    f32 => f64: |it| it.float().unwrap_or(0.0);
    f64 => f64: |it| it.float().unwrap_or(0.0);
}

/// A number of a type that the kernel leaves open: no grid follows from it.
impl<T: Element> OnHost for Scalar<T> {
    type Host = ();
    fn on_host(arguments: &mut HostArguments<'_>, _: &str) -> Result<()> {
        arguments.number();
        Ok(())
    }
}

impl<P: OnHost> OnHost for Option<P> {
    type Host = Option<P::Host>;
    fn on_host(arguments: &mut HostArguments<'_>, name: &str) -> Result<Self::Host> {
        match arguments.choice() {
            true => Ok(None),
            false => P::on_host(arguments, name).map(Some),
        }
    }
}

impl<P: OnHost, const N: usize> OnHost for [P; N] {
    type Host = Vec<P::Host>;
    fn on_host(arguments: &mut HostArguments<'_>, name: &str) -> Result<Self::Host> {
        (0..N).map(|_| P::on_host(arguments, name)).collect()
    }
}

macro_rules! tuples {
    ($(($($P:ident),+);)*) => { $(
        impl<$($P: OnHost),+> OnHost for ($($P,)+) {
            type Host = ($($P::Host,)+);
            fn on_host(arguments: &mut HostArguments<'_>, name: &str) -> Result<Self::Host> {
                Ok(($($P::on_host(arguments, name)?,)+))
            }
        }
    )* };
}
tuples! {
    (A);
    (A, B);
    (A, B, C);
    (A, B, C, D);
    (A, B, C, D, E);
    (A, B, C, D, E, F);
    (A, B, C, D, E, F, G);
    (A, B, C, D, E, F, G, H);
}
