//! A store that can be made unavailable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_store::{Backend, Fault, FaultStore};

/// Decides whether a store answers.
pub(crate) struct StoreOutage(Arc<AtomicBool>);

impl StoreOutage {
    /// Wraps a store, which answers until the outage begins.
    pub(crate) fn of(store: Arc<dyn Backend>) -> (StoreOutage, Arc<dyn Backend>) {
        let is_unavailable = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_unavailable);
        let plan = move |_| flag.load(Ordering::SeqCst).then_some(Fault::LoseCall);
        (StoreOutage(is_unavailable), Arc::new(FaultStore::new(store, plan)))
    }

    /// Loses every call from now on.
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Answers again.
    pub(crate) fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
