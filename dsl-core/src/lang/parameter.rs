//! The types that parameters of kernels have: what each declares in the trace.

use std::panic::Location;

use super::context;
use super::element::Element;
use super::ptr::{Ptr, PtrMut};
use super::tensor::{Tensor, TensorMut};
use super::tile::{DeviceValue, Scalar};
use super::tuples::for_each_tuple;
use crate::ir::number::for_each_number;

/// A type that a parameter of a kernel can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a kernel",
    note = "parameters are `Ptr<T>`, `PtrMut<T>`, `Tensor<T, RANK>`, `TensorMut<T, RANK>`, numbers such as `i32` and `f32`, options of these, tuples and arrays of all of them, and structures that derive `KernelArguments`",
    note = "what is made of several cannot be left out as a whole: make each field or element an option of its own"
)]
pub trait KernelParameter: Sealed {
    /// What the body of the kernel sees.
    type Handle;
    /// Declares the parameter in the trace.
    fn declare(name: &str) -> Self::Handle;
}

/// Only types of this crate and what is made of them are parameters: a launch relies on what they declare.
pub(super) mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// A structure of parameters, which derives this.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a kernel",
    label = "no parameter of a kernel",
    note = "parameters are `Ptr<T>`, `PtrMut<T>`, `Tensor<T, RANK>`, `TensorMut<T, RANK>`, numbers such as `i32` and `f32`, options of these, tuples and arrays of all of them, and structures that derive `KernelArguments`"
)]
pub trait KernelArguments {
    /// Declares the fields in order.
    fn declare(name: &str) -> Self;
}

impl<S: KernelArguments> Sealed for S {}
impl<S: KernelArguments> KernelParameter for S {
    type Handle = Self;
    fn declare(name: &str) -> Self {
        <Self as KernelArguments>::declare(name)
    }
}

impl<T: Element> Sealed for Scalar<T> {}
impl<T: Element> KernelParameter for Scalar<T> {
    type Handle = Self;
    fn declare(name: &str) -> Self {
        Self::from_handle(context::emit(Location::caller(), |context| {
            context.builder.scalar_parameter(name, T::DTYPE)
        }))
    }
}

macro_rules! numbers {
    ($($Host:ty)*) => { $(
        impl Sealed for $Host {}
        impl OptionalParameter for $Host {}
        impl KernelParameter for $Host {
            type Handle = Scalar<$Host>;
            fn declare(name: &str) -> Scalar<$Host> {
                <Scalar<$Host> as KernelParameter>::declare(name)
            }
        }
    )* };
}
for_each_number!(numbers);

/// A parameter that a launch may leave out. What is made of several is none: the arguments for it have a type of
/// their own, which a bare `None` would not name.
pub trait OptionalParameter: KernelParameter {}

impl<T: Element> OptionalParameter for Scalar<T> {}
impl<T: Element> OptionalParameter for Ptr<T> {}
impl<T: Element> OptionalParameter for PtrMut<T> {}
impl<T: Element, const RANK: usize> OptionalParameter for Tensor<T, RANK> {}
impl<T: Element, const RANK: usize> OptionalParameter for TensorMut<T, RANK> {}

/// `None` where the launch passes none: kernels with and without it are two.
impl<P: OptionalParameter> Sealed for Option<P> {}
impl<P: OptionalParameter> KernelParameter for Option<P> {
    type Handle = Option<P::Handle>;
    fn declare(name: &str) -> Self::Handle {
        (!context::next_is_chosen()).then(|| P::declare(name))
    }
}

impl<P: KernelParameter, const N: usize> Sealed for [P; N] {}
impl<P: KernelParameter, const N: usize> KernelParameter for [P; N] {
    type Handle = [P::Handle; N];
    fn declare(name: &str) -> Self::Handle {
        std::array::from_fn(|index| P::declare(&format!("{name}_{index}")))
    }
}

macro_rules! tuples {
    ($($P:ident $index:literal)+) => {
        impl<$($P: KernelParameter),+> Sealed for ($($P,)+) {}
        impl<$($P: KernelParameter),+> KernelParameter for ($($P,)+) {
            type Handle = ($($P::Handle,)+);
            fn declare(name: &str) -> Self::Handle {
                ($($P::declare(&format!(concat!("{}_", $index), name)),)+)
            }
        }
    };
}
for_each_tuple!(tuples, up to eight);
