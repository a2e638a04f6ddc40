//! Consecutive numbers of a buffer, which launches take in place of all of it.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use exactile_core::ir::Number;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::array::{read_numbers, write_numbers};
use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::part::{Part, PartMut};

/// Consecutive numbers of a [`Buffer`] to read. A launch takes them for `Ptr<T>`.
#[derive(Clone, Copy, Debug)]
pub struct BufferSlice<'a, T> {
    pub(crate) part: Part<'a>,
    number: PhantomData<T>,
}

/// Consecutive numbers of a [`Buffer`] to read and write, which nothing else reaches meanwhile. A launch takes them for
/// `PtrMut<T>`, and two of one buffer for two parameters.
///
/// ```
/// # use exactile::prelude::*;
/// #[kernel]
/// fn double(x: Ptr<f32>, out: PtrMut<f32>) {
///     let at = arange(0, 2);
///     store(out + at, load(x + at) * 2.0);
/// }
///
/// let device = Device::cpu();
/// let mut x = Buffer::from_slice(&device, &[1.0f32, 2.0, 0.0, 0.0])?;
/// let (numbers, doubled) = x.split_at_mut(2)?;
/// double().run(&device, 1, (numbers.as_slice(), doubled))?;
/// assert_eq!(x.to_vec()?, [1.0, 2.0, 2.0, 4.0]);
/// # Ok::<(), exactile::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a part of a buffer does nothing until it is written"]
pub struct BufferSliceMut<'a, T> {
    pub(crate) part: PartMut<'a>,
    number: PhantomData<T>,
}

/// How many bytes a number has.
pub(crate) fn size_of_number<T: Number>() -> usize {
    T::DTYPE.bytes() as usize
}

/// The first and how many of `len` things a range is.
///
/// # Errors
/// The range ends before it begins, or beyond them.
pub(crate) fn in_range(range: &impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let first = match range.start_bound() {
        Bound::Included(&first) => Some(first),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    let inside = first.zip(end);
    let inside = inside.filter(|(first, end)| first <= end && *end <= len);
    let (first, end) = inside.ok_or_else(|| {
        let bounds = (range.start_bound(), range.end_bound());
        Error::Invalid(format!("the range {bounds:?} is not in 0..{len}"))
    })?;
    Ok((first, end - first))
}

impl<'a, T: Number + IntoBytes + Immutable> BufferSlice<'a, T> {
    /// Numbers of the program itself in place of those of a buffer, for launches on the host. Nothing is copied.
    pub fn of_slice(numbers: &'a [T]) -> Self {
        Self::of(Part::Slice(numbers.as_bytes()))
    }
}

impl<'a, T: Number + IntoBytes + FromBytes> BufferSliceMut<'a, T> {
    /// Numbers of the program itself in place of those of a buffer, for launches on the host. Nothing is copied.
    pub fn of_slice(numbers: &'a mut [T]) -> Self {
        Self::of(PartMut::Slice(numbers.as_mut_bytes()))
    }
}

impl<'a, T: Number> BufferSlice<'a, T> {
    pub(crate) fn of(part: Part<'a>) -> Self {
        Self {
            part,
            number: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.part.len() / size_of_number::<T>()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those of a range of it.
    ///
    /// # Errors
    /// The range is not in it.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let (first, count) = in_range(&range, self.len())?;
        let size = size_of_number::<T>();
        Ok(Self::of(self.part.cut(first * size, count * size)))
    }

    /// The numbers. Waits for the launches before it.
    ///
    /// # Errors
    /// The first error of a launch that wrote the buffer, or a part of it, that nobody was told.
    pub fn to_vec(self) -> Result<Vec<T>> {
        read_numbers(&self.part.read()?)
    }
}

impl<'a, T: Number> BufferSliceMut<'a, T> {
    pub(crate) fn of(part: PartMut<'a>) -> Self {
        Self {
            part,
            number: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same, to read.
    pub fn as_slice(&self) -> BufferSlice<'_, T> {
        BufferSlice::of(self.part.shared())
    }

    /// Those of a range of it, for a while.
    ///
    /// # Errors
    /// The range is not in it.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferSliceMut<'_, T>> {
        let (first, count) = in_range(&range, self.len())?;
        let size = size_of_number::<T>();
        let part = self.part.lent().cut(first * size, count * size);
        Ok(BufferSliceMut::of(part))
    }

    /// The first `count` elements, and the others. One launch may write both.
    ///
    /// # Errors
    /// There are fewer.
    pub fn split_at(self, count: usize) -> Result<(Self, Self)> {
        let (count, _) = in_range(&(count..), self.len())?;
        let parts = self.part.split_at(count * size_of_number::<T>());
        let [low, high] = parts.map(Self::of);
        Ok((low, high))
    }

    /// Overwrites all elements.
    ///
    /// # Errors
    /// There are more numbers than elements, or fewer.
    pub fn copy_from_slice(self, numbers: &[T]) -> Result<()> {
        self.expect_len(numbers.len())?;
        self.part.write(|bytes| write_numbers(numbers, bytes))
    }

    /// Overwrites all elements with those of another buffer, or of another part of this one. On one GPU nothing passes
    /// the host, and nobody waits.
    ///
    /// # Errors
    /// There are more elements, or fewer. Where the host copies, the first error of a launch that wrote them.
    pub fn copy_from(self, other: BufferSlice<'_, T>) -> Result<()> {
        self.expect_len(other.len())?;
        self.part.copy_from(other.part)
    }

    /// Overwrites all elements with one number.
    pub fn fill(self, number: T) -> Result<()> {
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..size_of_number::<T>()];
        number.write_to(bytes);
        self.part.fill(bytes)
    }

    pub(crate) fn expect_len(&self, found: usize) -> Result<()> {
        if found == self.len() {
            return Ok(());
        }
        Err(Error::ShapeMismatch {
            found: vec![found],
            expected: vec![self.len()],
        })
    }
}

impl<T: Number> Buffer<T> {
    pub(crate) fn all(&self) -> BufferSlice<'_, T> {
        BufferSlice::of(self.part())
    }

    pub(crate) fn all_mut(&mut self) -> BufferSliceMut<'_, T> {
        BufferSliceMut::of(self.part_mut())
    }

    /// The elements of a range.
    ///
    /// # Errors
    /// The range is not in the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<'_, T>> {
        self.all().slice(range)
    }

    /// The elements of a range, which a kernel may write.
    ///
    /// # Errors
    /// The range is not in the buffer.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferSliceMut<'_, T>> {
        let (first, count) = in_range(&range, self.len())?;
        let size = size_of_number::<T>();
        let part = self.part_mut().cut(first * size, count * size);
        Ok(BufferSliceMut::of(part))
    }

    /// The first `count` elements, and the others. One launch may write both.
    ///
    /// # Errors
    /// There are fewer.
    pub fn split_at_mut(
        &mut self,
        count: usize,
    ) -> Result<(BufferSliceMut<'_, T>, BufferSliceMut<'_, T>)> {
        self.all_mut().split_at(count)
    }
}
