//! Deduplication: calls that were applied, so that one that is sent again is not applied again.

use tollgate_core::{Span, Tick};
use tollgate_store::{OpId, StepOutcome};

use crate::codec::{decode_outcome, encode_outcome};
use crate::error::TxnAbort;
use crate::key::{KeyKind, KeyParts, MapKey};
use crate::layout::CALLS;
use crate::tx::Tx;

/// How many calls are remembered.
const REMEMBERED_MAX: u64 = 100_000;

/// How long a call is remembered. A caller that has not retried by then has given up.
const REMEMBERED_FOR: Span = Span::from_secs(600);

/// How many old calls are forgotten with each new one. Two keep pace with any growth.
const FORGOTTEN_AT_ONCE: usize = 2;

fn by_id(id: OpId) -> MapKey {
    MapKey::new(KeyKind::Call).raw(&id.0.to_be_bytes())
}

fn by_time(at: Tick, id: OpId) -> MapKey {
    MapKey::new(KeyKind::CallAt).raw(&at.as_micros().to_be_bytes()).raw(&id.0.to_be_bytes())
}

impl Tx<'_> {
    /// Returns the outcome of a call, if it was applied.
    pub(crate) fn find_call(&self, id: OpId) -> Result<Option<Vec<StepOutcome>>, TxnAbort> {
        let Some((node, _)) = self.find(&by_id(id))? else { return Ok(None) };
        let outcome = decode_outcome(&self.bytes(self.block_of(node)?)?);
        let (_, done) = outcome.ok_or(TxnAbort::Damaged("what came of a call cannot be read"))?;
        Ok(Some(done))
    }

    /// Remembers a call, and forgets some that no caller retries any more.
    pub(crate) fn remember_call(
        &mut self,
        id: OpId,
        now: Tick,
        done: &[StepOutcome],
    ) -> Result<(), TxnAbort> {
        let Some(outcome) = encode_outcome(now, done) else { return Ok(()) };
        let block = self.alloc_bytes(&outcome)?;
        self.insert(&by_id(id), block)?;
        self.insert(&by_time(now, id), 0)?;
        self.add(CALLS, 1)?;
        for _ in 0..FORGOTTEN_AT_ONCE {
            self.forget_old_call(now)?;
        }
        Ok(())
    }

    fn forget_old_call(&mut self, now: Tick) -> Result<(), TxnAbort> {
        let Some((_, oldest)) = self.first(&MapKey::new(KeyKind::CallAt))? else { return Ok(()) };
        let parts = KeyParts::of(&oldest).and_then(|mut parts| Some((parts.number()?, parts.number()?)));
        let (at, id) = parts.ok_or(TxnAbort::Damaged("a call that is remembered has no key"))?;
        let (at, id) = (Tick::from_micros(u64::from_be_bytes(at)), OpId(u128::from_be_bytes(id)));
        if self.get(CALLS)? <= REMEMBERED_MAX && now.since(at) < REMEMBERED_FOR {
            return Ok(());
        }
        self.remove(&by_time(at, id))?;
        if let Some(block) = self.remove(&by_id(id))? {
            self.free(block);
        }
        self.add(CALLS, -1)?;
        Ok(())
    }
}
