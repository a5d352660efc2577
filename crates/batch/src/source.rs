//! The input of a batch: an iterator or a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::Item;

/// The items of a batch, from an iterator or a stream.
pub(crate) enum ItemSource<P> {
    Iterator(Box<dyn Iterator<Item = Item<P>> + Send>),
    Stream(Pin<Box<dyn Stream<Item = Item<P>> + Send>>),
}

impl<P> ItemSource<P> {
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Item<P>>> {
        match self {
            ItemSource::Iterator(items) => Poll::Ready(items.next()),
            ItemSource::Stream(items) => items.as_mut().poll_next(context),
        }
    }
}
