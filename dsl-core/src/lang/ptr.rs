//! Pointers to the arrays that a launch passes, and tiles of pointers.

use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::panic::Location;

use super::context::{self, Context, Handle};
use super::element::{Element, HostNumber, LiteralOf};
use super::parameter::KernelParameter;
use super::parameter::sealed::Sealed;
use super::tile::{DeviceValue, Scalar, Tile};
use crate::ir::{Access, BinaryOp, DType, Value};

/// An element offset from the start of an argument. Without offset it is the start itself.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub(crate) base: Handle,
    pub(crate) offset: Option<Handle>,
}

impl Address {
    /// The offset as a value, made if the address is the start.
    pub(crate) fn offset(&self, context: &mut Context) -> Value {
        match self.offset {
            Some(offset) => context.value(offset),
            None => context.builder.index(0),
        }
    }

    #[track_caller]
    pub(super) fn moved(self, op: BinaryOp, by: impl OffsetOf) -> Self {
        let offset = context::emit(Location::caller(), |context| {
            let by = by.into_offset(context);
            let by = context.cast(by, DType::I64);
            match (self.offset, op) {
                (None, BinaryOp::Add) => by,
                (offset, _) => {
                    let start = Self { offset, ..self }.offset(context);
                    let (start, by) = context.broadcast_pair("pointer offset", start, by);
                    context.builder.binary(op, start, by)
                }
            }
        });
        Self {
            base: self.base,
            offset: Some(offset),
        }
    }
}

/// Something that moves a pointer: an `i64` or `i32` value or a host integer, in elements.
pub(super) trait OffsetOf {
    fn into_offset(self, context: &mut Context) -> Value;
}

impl<V: DeviceValue> OffsetOf for V {
    fn into_offset(self, context: &mut Context) -> Value {
        context.value(self.handle())
    }
}

struct HostOffset<L>(L);

impl<L: LiteralOf<i64>> OffsetOf for HostOffset<L> {
    fn into_offset(self, context: &mut Context) -> Value {
        context.literal(self.0.literal())
    }
}

macro_rules! pointers {
    ($($(#[doc = $doc:literal])* $Name:ident;)*) => { $(
        $(#[doc = $doc])*
        #[must_use = "a pointer does nothing until it is loaded from or stored to"]
        pub struct $Name<T: Element> {
            address: Address,
            element: PhantomData<T>,
        }
        impl<T: Element> Clone for $Name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T: Element> Copy for $Name<T> {}
        impl<T: Element> $Name<T> {
            pub(crate) fn address(&self) -> Address {
                self.address
            }
            pub(crate) fn address_mut(&mut self) -> &mut Address {
                &mut self.address
            }
            fn at(address: Address) -> Self {
                Self { address, element: PhantomData }
            }
        }
    )* };
}

pointers! {
    /// The start of a buffer that the kernel reads, or an element of it.
    Ptr;
    /// The start of a buffer that the kernel reads and writes, or an element of it.
    PtrMut;
    /// A tile of pointers into a buffer that the kernel reads.
    PtrTile;
    /// A tile of pointers into a buffer that the kernel reads and writes.
    PtrMutTile;
}

macro_rules! moves {
    ($($Pointer:ident + $Offset:ty = $Output:ident;)*) => { $(
        impl<T: Element> Add<$Offset> for $Pointer<T> {
            type Output = $Output<T>;
            #[track_caller]
            fn add(self, by: $Offset) -> $Output<T> {
                $Output::at(self.address.moved(BinaryOp::Add, by))
            }
        }
        impl<T: Element> Sub<$Offset> for $Pointer<T> {
            type Output = $Output<T>;
            #[track_caller]
            fn sub(self, by: $Offset) -> $Output<T> {
                $Output::at(self.address.moved(BinaryOp::Sub, by))
            }
        }
    )* };
}
moves! {
    Ptr + Scalar<i64> = Ptr;
    Ptr + Scalar<i32> = Ptr;
    Ptr + Tile<i64> = PtrTile;
    Ptr + Tile<i32> = PtrTile;
    PtrMut + Scalar<i64> = PtrMut;
    PtrMut + Scalar<i32> = PtrMut;
    PtrMut + Tile<i64> = PtrMutTile;
    PtrMut + Tile<i32> = PtrMutTile;
    PtrTile + Scalar<i64> = PtrTile;
    PtrTile + Scalar<i32> = PtrTile;
    PtrTile + Tile<i64> = PtrTile;
    PtrTile + Tile<i32> = PtrTile;
    PtrMutTile + Scalar<i64> = PtrMutTile;
    PtrMutTile + Scalar<i32> = PtrMutTile;
    PtrMutTile + Tile<i64> = PtrMutTile;
    PtrMutTile + Tile<i32> = PtrMutTile;
}

macro_rules! host_moves {
    ($($Pointer:ident)*) => { $(
        impl<T: Element, L: HostNumber + LiteralOf<i64>> Add<L> for $Pointer<T> {
            type Output = $Pointer<T>;
            #[track_caller]
            fn add(self, by: L) -> Self {
                Self::at(self.address.moved(BinaryOp::Add, HostOffset(by)))
            }
        }
        impl<T: Element, L: HostNumber + LiteralOf<i64>> Sub<L> for $Pointer<T> {
            type Output = $Pointer<T>;
            #[track_caller]
            fn sub(self, by: L) -> Self {
                Self::at(self.address.moved(BinaryOp::Sub, HostOffset(by)))
            }
        }
        impl<T: Element, R> AddAssign<R> for $Pointer<T>
        where
            $Pointer<T>: Add<R, Output = $Pointer<T>>,
        {
            #[track_caller]
            fn add_assign(&mut self, by: R) {
                *self = *self + by;
            }
        }
        impl<T: Element, R> SubAssign<R> for $Pointer<T>
        where
            $Pointer<T>: Sub<R, Output = $Pointer<T>>,
        {
            #[track_caller]
            fn sub_assign(&mut self, by: R) {
                *self = *self - by;
            }
        }
    )* };
}
host_moves!(Ptr PtrMut PtrTile PtrMutTile);

fn declare(name: &str, dtype: DType, access: Access) -> Address {
    let base = context::emit(Location::caller(), |context| {
        context.builder.pointer_parameter(name, dtype, access)
    });
    Address { base, offset: None }
}

impl<T: Element> PtrMut<T> {
    /// The same place, to read.
    pub(super) fn to_read(self) -> Ptr<T> {
        Ptr::at(self.address)
    }
}

impl<T: Element> Sealed for Ptr<T> {}
impl<T: Element> KernelParameter for Ptr<T> {
    type Handle = Self;
    fn declare(name: &str) -> Self {
        Self::at(declare(name, T::DTYPE, Access::Read))
    }
}

impl<T: Element> Sealed for PtrMut<T> {}
impl<T: Element> KernelParameter for PtrMut<T> {
    type Handle = Self;
    fn declare(name: &str) -> Self {
        Self::at(declare(name, T::DTYPE, Access::ReadWrite))
    }
}
