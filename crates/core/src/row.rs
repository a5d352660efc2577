//! A short row of values: up to eight live inline, more go to the heap.

use std::ops::{Deref, DerefMut};

const INLINE: usize = 8;

/// One value for each limit. Eight fit without an allocation, which covers every set met in practice.
#[derive(Clone, Debug)]
pub struct Row<T>(Place<T>);

#[derive(Clone, Debug)]
enum Place<T> {
    Inline([T; INLINE], u8),
    Heap(Vec<T>),
}

impl<T: Copy + Default> Row<T> {
    /// A row of `len` default values.
    #[inline]
    pub fn new(len: usize) -> Row<T> {
        if len <= INLINE {
            Row(Place::Inline([T::default(); INLINE], len as u8))
        } else {
            Row(Place::Heap(vec![T::default(); len]))
        }
    }

    /// A row of `len` values made by `make` from their index.
    #[inline]
    pub fn from_fn(len: usize, mut make: impl FnMut(usize) -> T) -> Row<T> {
        let mut row = Row::new(len);
        for (index, value) in row.iter_mut().enumerate() {
            *value = make(index);
        }
        row
    }
}

impl<T> Deref for Row<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Place::Inline(values, len) => &values[..usize::from(*len).min(INLINE)],
            Place::Heap(values) => values,
        }
    }
}

impl<T> DerefMut for Row<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Place::Inline(values, len) => &mut values[..usize::from(*len).min(INLINE)],
            Place::Heap(values) => values,
        }
    }
}

impl<T: PartialEq> PartialEq for Row<T> {
    fn eq(&self, other: &Row<T>) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Row<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_length_it_was_made_with() {
        for len in [0, 1, 8, 9, 64] {
            let row = Row::from_fn(len, |index| index);
            assert_eq!(row.len(), len);
            assert!(row.iter().copied().eq(0..len));
        }
    }
}
