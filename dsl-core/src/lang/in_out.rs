//! Parameters that read one array and write another, which a launch may make one.
//!
//! In place there is one parameter in the IR, which both handles name. So nothing that is known of parameters apart, in
//! passes, lowerings or backends, is said of memory that is one.

use super::context;
use super::element::Element;
use super::parameter::KernelParameter;
use super::parameter::sealed::Sealed;
use super::ptr::{Ptr, PtrMut};
use super::tensor::{Tensor, TensorMut};

/// An array that the kernel reads, and one that it writes: a launch passes two, `(&x, &mut out)`, or one for both,
/// `InPlace(&mut x)`.
///
/// In place a load behind a store gives what the program has stored, and what other programs store is a race, as in any
/// memory that is read and written. A kernel that loads each element before it stores that one gives the same bits both
/// ways.
///
/// ```
/// use exactile_core::lang::prelude::*;
///
/// fn doubled(numbers: InOut<f32>) {
///     let at = arange(0, 64);
///     store(numbers.output + at, load(numbers.input + at) * 2.0);
/// }
/// ```
#[derive(Clone, Copy)]
pub struct InOut<T: Element> {
    /// What is read.
    pub input: Ptr<T>,
    /// What is written.
    pub output: PtrMut<T>,
}

/// A tensor that the kernel reads, and one that it writes: a launch passes two, `(x.view(..)?, out.view_mut(..)?)`, or
/// one for both, `InPlace(x.view_mut(..)?)`, which then has one set of extents and strides. As for [`InOut`].
#[derive(Clone, Copy)]
pub struct TensorInOut<T: Element, const RANK: usize> {
    /// What is read.
    pub input: Tensor<T, RANK>,
    /// What is written.
    pub output: TensorMut<T, RANK>,
}

impl<T: Element> Sealed for InOut<T> {}
impl<T: Element> KernelParameter for InOut<T> {
    type Handle = Self;
    fn declare(name: &str) -> Self {
        if context::next_is_chosen() {
            let output = PtrMut::declare(name);
            let input = output.to_read();
            return Self { input, output };
        }
        let input = Ptr::declare(&format!("{name}_input"));
        let output = PtrMut::declare(&format!("{name}_output"));
        Self { input, output }
    }
}

impl<T: Element, const RANK: usize> Sealed for TensorInOut<T, RANK> {}
impl<T: Element, const RANK: usize> KernelParameter for TensorInOut<T, RANK> {
    type Handle = Self;
    fn declare(name: &str) -> Self {
        if context::next_is_chosen() {
            let output = TensorMut::declare(name);
            let input = output.to_read();
            return Self { input, output };
        }
        let input = Tensor::declare(&format!("{name}_input"));
        let output = TensorMut::declare(&format!("{name}_output"));
        Self { input, output }
    }
}
