//! A short row of values: up to eight live inline, more go to the heap.

use std::ops::{Deref, DerefMut};

pub(crate) const INLINE: usize = 8;

/// One value for each limit. Eight fit without an allocation, which covers every set met in practice.
#[derive(Clone, Debug)]
pub struct InlineVec<T> {
    inline: [T; INLINE],
    /// All of them, if there are more than fit.
    heap: Option<Box<[T]>>,
    len: u8,
}

impl<T: Copy + Default> InlineVec<T> {
    /// A row of `len` default values. At most 255.
    #[inline(always)]
    pub fn new(len: usize) -> InlineVec<T> {
        let heap = if len <= INLINE { None } else { Some(on_heap(len)) };
        InlineVec { inline: [T::default(); INLINE], heap, len: len as u8 }
    }

    /// A row of `len` values made by `make` from their index.
    #[inline]
    pub fn from_fn(len: usize, mut make: impl FnMut(usize) -> T) -> InlineVec<T> {
        let mut row = InlineVec::new(len);
        for (index, value) in row.iter_mut().enumerate() {
            *value = make(index);
        }
        row
    }
}

impl<T> InlineVec<T> {
    /// The places that are inline, if all values are: those past the length hold the default.
    #[inline(always)]
    pub(crate) fn inline(&self) -> Option<&[T; INLINE]> {
        if self.heap.is_none() { Some(&self.inline) } else { None }
    }
}

#[cold]
fn on_heap<T: Copy + Default>(len: usize) -> Box<[T]> {
    vec![T::default(); len].into()
}

impl<T> Deref for InlineVec<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match &self.heap {
            None => &self.inline[..usize::from(self.len)],
            Some(values) => values,
        }
    }
}

impl<T> DerefMut for InlineVec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.heap {
            None => &mut self.inline[..usize::from(self.len)],
            Some(values) => values,
        }
    }
}

impl<T: PartialEq> PartialEq for InlineVec<T> {
    fn eq(&self, other: &InlineVec<T>) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for InlineVec<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_length_it_was_made_with() {
        for len in [0, 1, 8, 9, 64] {
            let row = InlineVec::from_fn(len, |index| index);
            assert_eq!(row.len(), len);
            assert!(row.iter().copied().eq(0..len));
        }
    }
}
