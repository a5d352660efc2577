//! Tickets that were settled, and by whom.
//!
//! A ticket counts once because a record says that it was settled, for longer than it can be redeemed.

use tollgate_core::{Span, Tick};
use tollgate_store::records::{Item, Test, Write};

use crate::{Catalog, keys};

/// How long a ticket can be redeemed at least, and how much longer than that it is remembered who settled it: a day.
pub const TICKET_KEPT: Span = Span::from_secs(86_400);

impl Catalog {
    /// The writes that note who settled a ticket that can be redeemed until `expires`, to be made together with the
    /// settlement. The first fails if the namespace is gone, the last if the ticket was settled before; its record then
    /// says who did, in the field `by`.
    pub fn ticket_writes(&self, ticket: u128, expires: Tick, by: &str) -> Vec<Write> {
        let mut tx = self.transaction();
        let key = keys::ticket(self.namespace_id(), &format!("{ticket:032x}"));
        let mut item = Item::new(key).with("by", by);
        item.expires = Some(expires + TICKET_KEPT);
        tx.push(Write::Put(item, vec![Test::Absent]));
        tx.into_writes()
    }
}
