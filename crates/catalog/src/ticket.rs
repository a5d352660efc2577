//! Settled lease tokens ("tickets"), and the principals that settled them.
//!
//! A ticket counts once because a record of its settlement is stored for longer than it can be
//! redeemed.

use tollgate_core::{Span, Tick};
use tollgate_store::records::{Item, Test, Write};

use crate::{Catalog, keys};

/// The least time for which a ticket can be redeemed, and how much longer the record of its
/// settlement is stored: a day.
pub const TICKET_KEPT: Span = Span::from_secs(86_400);

impl Catalog {
    /// Returns the writes that record the settlement of a ticket that can be redeemed until
    /// `expires`, to be made together with the settlement. The first write fails if the namespace
    /// was deleted, the last if the ticket was settled before; its record then names the principal
    /// in the field `by`.
    pub fn ticket_writes(&self, ticket: u128, expires: Tick, by: &str) -> Vec<Write> {
        let mut tx = self.transaction();
        let key = keys::ticket(self.namespace_id(), &format!("{ticket:032x}"));
        let mut item = Item::new(key).with("by", by);
        item.expires = Some(expires + TICKET_KEPT);
        tx.push(Write::Put(item, vec![Test::Absent]));
        tx.into_writes()
    }
}
