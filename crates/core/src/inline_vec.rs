//! A vector of fixed length: up to eight values are stored inline, more of them on the heap.

use std::ops::{Deref, DerefMut};

pub(crate) const INLINE: usize = 8;

/// One value for each limit. Eight fit without an allocation, which covers nearly every set.
// Hidden: only the types of this crate and its siblings store values in it.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct InlineVec<T> {
    inline: [T; INLINE],
    /// Holds all values if there are more than [`INLINE`]; the inline array is unused then.
    heap: Option<Box<[T]>>,
    len: u8,
}

impl<T: Copy + Default> InlineVec<T> {
    /// Creates a vector of `len` default values. `len` is at most 255.
    #[inline(always)]
    pub fn new(len: usize) -> InlineVec<T> {
        let heap = if len <= INLINE { None } else { Some(on_heap(len)) };
        InlineVec { inline: [T::default(); INLINE], heap, len: len as u8 }
    }

    /// Creates a vector of `len` values, each made by `make` from its index.
    #[inline]
    pub fn from_fn(len: usize, mut make: impl FnMut(usize) -> T) -> InlineVec<T> {
        let mut vec = InlineVec::new(len);
        for (index, value) in vec.iter_mut().enumerate() {
            *value = make(index);
        }
        vec
    }
}

impl<T> InlineVec<T> {
    /// Returns the inline array if it holds all values; elements past the length have the default
    /// value.
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
    fn a_vec_has_the_length_it_was_made_with() {
        for len in [0, 1, 8, 9, 64] {
            let vec = InlineVec::from_fn(len, |index| index);
            assert_eq!(vec.len(), len);
            assert!(vec.iter().copied().eq(0..len));
        }
    }
}
