//! Views of buffers and slices with extents and strides, checked when they are made.

mod layout;

use std::ops::RangeBounds;

use exactile_core::ir::Number;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::bound::Bound;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::slices::{BufferSlice, BufferSliceMut, in_range, size_of_number};

pub(crate) use layout::Layout;

/// A buffer or a slice read as a tensor of rank `RANK`.
///
/// ```
/// # use exactile::{Buffer, Device, TensorView};
/// let x = Buffer::from_slice(&Device::cpu(), &[0, 1, 2, 3, 4, 5])?;
/// let columns = x.view([2, 3])?.permute([1, 0])?;
/// assert_eq!((columns.extents(), columns.strides()), ([3, 2], [1, 3]));
/// let back = columns.flip(0)?.slice(0, ..2)?;
/// assert_eq!((back.extents(), back.strides()), ([2, 2], [-1, 3]));
/// # Ok::<(), exactile::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a, T, const RANK: usize> {
    memory: BufferSlice<'a, T>,
    layout: Layout<RANK>,
}

/// A buffer or a slice read and written as a tensor of rank `RANK`.
#[derive(Debug)]
#[must_use = "a view does nothing until a kernel writes it"]
pub struct TensorViewMut<'a, T, const RANK: usize> {
    memory: BufferSliceMut<'a, T>,
    layout: Layout<RANK>,
}

/// Views of views.
macro_rules! views {
    ($($View:ident $Slice:ident;)*) => { $(
        impl<'a, T: Number, const RANK: usize> $View<'a, T, RANK> {
            /// How many elements there are along each axis, outermost first.
            pub fn extents(&self) -> [usize; RANK] {
                self.layout.extents
            }

            /// How many elements apart neighbours along each axis are: below zero where an axis runs backwards.
            pub fn strides(&self) -> [isize; RANK] {
                self.layout.strides
            }

            /// Each element of the layout is in the memory.
            #[cfg(any(feature = "dlpack", feature = "ndarray"))]
            pub(crate) fn of_layout(memory: $Slice<'a, T>, layout: Layout<RANK>) -> Self {
                Self { memory, layout }
            }

            fn with<const LESS: usize>(self, layout: Layout<LESS>) -> $View<'a, T, LESS> {
                $View { memory: self.memory, layout }
            }

            /// The part whose indices along `axis` are in a range.
            ///
            /// # Errors
            /// There is no such axis, or the range is not in its extent.
            pub fn slice(self, axis: usize, range: impl RangeBounds<usize>) -> Result<Self> {
                let (first, count) = in_range(&range, self.layout.extent(axis)?)?;
                let layout = self.layout.slice(axis, first, count);
                Ok(self.with(layout))
            }

            /// Every `step`th index along `axis`, from the first on.
            ///
            /// # Errors
            /// There is no such axis, or the step is 0.
            pub fn step(self, axis: usize, step: usize) -> Result<Self> {
                let layout = self.layout.step(axis, step)?;
                Ok(self.with(layout))
            }

            /// The elements along `axis` from the last to the first. Kernels take such a view as any other; nothing is
            /// copied, and bulk copies of a GPU do not bring tiles of it.
            ///
            /// # Errors
            /// There is no such axis.
            pub fn flip(self, axis: usize) -> Result<Self> {
                let layout = self.layout.flip(axis)?;
                Ok(self.with(layout))
            }

            /// The same elements with the axes in another order: axis `i` is `axes[i]` of this one.
            ///
            /// # Errors
            /// `axes` does not name each axis once.
            pub fn permute(self, axes: [usize; RANK]) -> Result<Self> {
                let layout = self.layout.permute(axes)?;
                Ok(self.with(layout))
            }
        }
    )* };
}
views! { TensorView BufferSlice; TensorViewMut BufferSliceMut; }

/// Views of one axis less.
macro_rules! selections {
    ($($View:ident $rank:literal $less:literal;)*) => { $(
        impl<'a, T: Number> $View<'a, T, $rank> {
            /// The elements at one index along `axis`, which goes.
            ///
            /// # Errors
            /// There is no such axis, or the index is not in its extent.
            pub fn select(self, axis: usize, index: usize) -> Result<$View<'a, T, $less>> {
                let layout = self.layout.select(axis, index)?;
                Ok(self.with(layout))
            }
        }
    )* };
}
selections! {
    TensorView 2 1; TensorView 3 2; TensorView 4 3; TensorView 5 4;
    TensorViewMut 2 1; TensorViewMut 3 2; TensorViewMut 4 3; TensorViewMut 5 4;
}

impl<'a, T: Number, const RANK: usize> TensorView<'a, T, RANK> {
    /// The first numbers of a slice as a row-major tensor, for launches on the host. Nothing is copied.
    ///
    /// # Errors
    /// There are more elements than numbers.
    pub fn of_slice(numbers: &'a [T], extents: [usize; RANK]) -> Result<Self>
    where
        T: IntoBytes + Immutable,
    {
        BufferSlice::of_slice(numbers).view(extents)
    }

    /// Numbers of a slice as a tensor with strides of the caller's choice, in elements; 0 repeats an axis.
    ///
    /// # Errors
    /// An element is not in the slice.
    pub fn of_strided_slice(
        numbers: &'a [T],
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<Self>
    where
        T: IntoBytes + Immutable,
    {
        BufferSlice::of_slice(numbers).view_strided(extents, strides)
    }

    /// The memory from the lowest element to the highest, and where the elements are in it.
    pub(crate) fn bound(self) -> (Bound<'a>, Layout<RANK>) {
        let (start, len) = bytes_of::<T, RANK>(&self.layout);
        let memory = self.memory.part.cut(start, len);
        (Bound::Read(memory), self.layout.rebased())
    }
}

impl<'a, T: Number, const RANK: usize> TensorViewMut<'a, T, RANK> {
    /// The first numbers of a slice as a row-major tensor that a kernel may write, for launches on the host. Nothing
    /// is copied.
    ///
    /// # Errors
    /// There are more elements than numbers.
    pub fn of_slice(numbers: &'a mut [T], extents: [usize; RANK]) -> Result<Self>
    where
        T: IntoBytes + FromBytes,
    {
        BufferSliceMut::of_slice(numbers).view_mut(extents)
    }

    /// Numbers of a slice as a tensor that a kernel may write, with strides of the caller's choice, in elements.
    ///
    /// # Errors
    /// An element is not in the slice.
    pub fn of_strided_slice(
        numbers: &'a mut [T],
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<Self>
    where
        T: IntoBytes + FromBytes,
    {
        BufferSliceMut::of_slice(numbers).view_strided_mut(extents, strides)
    }

    /// The same to read, while this view is there.
    pub fn as_view(&self) -> TensorView<'_, T, RANK> {
        TensorView {
            memory: self.memory.as_slice(),
            layout: self.layout,
        }
    }

    /// The same to write, for a while: a launch takes this one, and the view is there afterwards.
    pub fn reborrow(&mut self) -> TensorViewMut<'_, T, RANK> {
        TensorViewMut {
            memory: BufferSliceMut::of(self.memory.part.lent()),
            layout: self.layout,
        }
    }

    /// The first `count` indices along `axis`, and the others: two views that one launch may write.
    ///
    /// # Errors
    /// There is no such axis, it has fewer indices, or elements of one part lie between those of the other in memory.
    /// Parts of the axis of the longest strides never do, unless elements repeat.
    pub fn split_at(self, axis: usize, count: usize) -> Result<(Self, Self)> {
        let (parts, cut, in_order) = self.layout.split_at(axis, count)?;
        let (low, high) = self.memory.split_at(cut)?;
        let above = |layout: Layout<RANK>| TensorViewMut {
            layout: layout.moved_down(cut),
            memory: high,
        };
        let below = |layout: Layout<RANK>| TensorViewMut {
            layout,
            memory: low,
        };
        let [first, second] = parts;
        Ok(match in_order {
            true => (below(first), above(second)),
            false => (above(first), below(second)),
        })
    }

    /// The memory from the lowest element to the highest, and where the elements are in it.
    pub(crate) fn bound(self) -> (Bound<'a>, Layout<RANK>) {
        let (start, len) = bytes_of::<T, RANK>(&self.layout);
        let memory = self.memory.part.cut(start, len);
        (Bound::ReadWrite(memory), self.layout.rebased())
    }
}

/// The first byte from the lowest element on to the highest, and how many there are.
fn bytes_of<T: Number, const RANK: usize>(layout: &Layout<RANK>) -> (usize, usize) {
    let (size, window) = (size_of_number::<T>(), layout.window());
    (window.start * size, window.len() * size)
}

impl<'a, T: Number> BufferSlice<'a, T> {
    /// The first elements as a row-major tensor.
    ///
    /// # Errors
    /// There are fewer.
    pub fn view<const RANK: usize>(
        self,
        extents: [usize; RANK],
    ) -> Result<TensorView<'a, T, RANK>> {
        let layout = Layout::contiguous(extents, self.len())?;
        Ok(TensorView {
            memory: self,
            layout,
        })
    }

    /// A tensor with strides of the caller's choice, in elements; 0 repeats an axis.
    ///
    /// # Errors
    /// An element is not among them.
    pub fn view_strided<const RANK: usize>(
        self,
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<TensorView<'a, T, RANK>> {
        let layout = Layout::strided(extents, strides, self.len())?;
        Ok(TensorView {
            memory: self,
            layout,
        })
    }
}

impl<'a, T: Number> BufferSliceMut<'a, T> {
    /// The first elements as a row-major tensor that a kernel may write.
    ///
    /// # Errors
    /// There are fewer.
    pub fn view_mut<const RANK: usize>(
        self,
        extents: [usize; RANK],
    ) -> Result<TensorViewMut<'a, T, RANK>> {
        let layout = Layout::contiguous(extents, self.len())?;
        Ok(TensorViewMut {
            memory: self,
            layout,
        })
    }

    /// A tensor that a kernel may write, with strides of the caller's choice, in elements.
    ///
    /// # Errors
    /// An element is not among them.
    pub fn view_strided_mut<const RANK: usize>(
        self,
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<TensorViewMut<'a, T, RANK>> {
        let layout = Layout::strided(extents, strides, self.len())?;
        Ok(TensorViewMut {
            memory: self,
            layout,
        })
    }
}

impl<T: Number> Buffer<T> {
    /// The first elements as a row-major tensor.
    ///
    /// # Errors
    /// There are fewer.
    pub fn view<const RANK: usize>(
        &self,
        extents: [usize; RANK],
    ) -> Result<TensorView<'_, T, RANK>> {
        self.all().view(extents)
    }

    /// A tensor with strides of the caller's choice, in elements; 0 repeats an axis.
    ///
    /// # Errors
    /// An element is not in the buffer.
    pub fn view_strided<const RANK: usize>(
        &self,
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<TensorView<'_, T, RANK>> {
        self.all().view_strided(extents, strides)
    }

    /// The first elements as a row-major tensor that a kernel may write.
    ///
    /// # Errors
    /// There are fewer.
    pub fn view_mut<const RANK: usize>(
        &mut self,
        extents: [usize; RANK],
    ) -> Result<TensorViewMut<'_, T, RANK>> {
        self.all_mut().view_mut(extents)
    }

    /// A tensor that a kernel may write, with strides of the caller's choice, in elements.
    ///
    /// # Errors
    /// An element is not in the buffer.
    pub fn view_strided_mut<const RANK: usize>(
        &mut self,
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<TensorViewMut<'_, T, RANK>> {
        self.all_mut().view_strided_mut(extents, strides)
    }
}
