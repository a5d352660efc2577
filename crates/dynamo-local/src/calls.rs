//! Counts of calls and of their capacity units.

use std::collections::BTreeMap;
use std::ops::Sub;

use parking_lot::Mutex;
use serde_json::Value;

use crate::answer::HttpAnswer;
use crate::operation::{OPERATIONS, Operation, OperationKind};

/// Counts of the calls that an engine answered.
///
/// ```
/// use tollgate_dynamo_local::Engine;
///
/// let engine = Engine::in_memory()?;
/// let before = engine.calls();
/// // Calls of a store in between.
/// let made = engine.calls() - before;
/// assert_eq!((made.of("UpdateItem"), made.writes(), made.write_units), (0, 0, 0.0));
/// # Ok::<(), tollgate_dynamo_local::EngineError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    by_operation: BTreeMap<&'static str, u64>,
    /// The read units of calls that asked for them.
    pub read_units: f64,
    /// The write units of calls that asked for them.
    pub write_units: f64,
    /// The part of the write units that is for indexes.
    pub index_units: f64,
}

impl Calls {
    /// Returns the number of calls of an operation, such as `UpdateItem`.
    pub fn of(&self, operation: &str) -> u64 {
        self.by_operation.get(operation).copied().unwrap_or(0)
    }

    /// Returns the number of calls that read items.
    pub fn reads(&self) -> u64 {
        self.of_kind(OperationKind::Read)
    }

    /// Returns the number of calls that write items.
    pub fn writes(&self) -> u64 {
        self.of_kind(OperationKind::Write)
    }

    /// Returns the number of calls that read or write items.
    pub fn all(&self) -> u64 {
        self.reads() + self.writes()
    }

    fn of_kind(&self, kind: OperationKind) -> u64 {
        let of_kind = OPERATIONS.iter().filter(|operation| operation.kind == kind);
        of_kind.map(|operation| self.of(operation.name)).sum()
    }
}

/// Returns the calls since an earlier count.
impl Sub for Calls {
    type Output = Calls;

    fn sub(self, earlier: Calls) -> Calls {
        let since = self.by_operation.iter().map(|(name, calls)| (*name, calls - earlier.of(name)));
        Calls {
            by_operation: since.filter(|(_, calls)| *calls > 0).collect(),
            read_units: self.read_units - earlier.read_units,
            write_units: self.write_units - earlier.write_units,
            index_units: self.index_units - earlier.index_units,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct CallCounters(Mutex<Calls>);

impl CallCounters {
    pub(crate) fn count(&self, operation: &Operation, request: &[u8], answer: &HttpAnswer) {
        let (units, of_indexes) = if asks_for_units(request) { units(&answer.body) } else { (0.0, 0.0) };
        let mut calls = self.0.lock();
        *calls.by_operation.entry(operation.name).or_default() += 1;
        match operation.kind {
            OperationKind::Read => calls.read_units += units,
            OperationKind::Write => {
                calls.write_units += units;
                calls.index_units += of_indexes;
            }
            OperationKind::Other => {}
        }
    }

    pub(crate) fn calls(&self) -> Calls {
        self.0.lock().clone()
    }
}

pub(crate) fn asks_for_units(request: &[u8]) -> bool {
    const ASKS: &[u8] = b"\"ReturnConsumedCapacity\"";
    request.windows(ASKS.len()).any(|window| window == ASKS)
}

/// Returns the units in an answer, of one table or of several, and those of them that are for
/// indexes.
fn units(answer: &str) -> (f64, f64) {
    let Ok(answer) = serde_json::from_str::<Value>(answer) else { return (0.0, 0.0) };
    let number = |consumed: &Value| consumed["CapacityUnits"].as_f64().unwrap_or(0.0);
    let of = |consumed: &Value| {
        let indexes = consumed["GlobalSecondaryIndexes"].as_object();
        (number(consumed), indexes.into_iter().flatten().map(|(_, index)| number(index)).sum())
    };
    match &answer["ConsumedCapacity"] {
        Value::Array(tables) => {
            tables.iter().map(of).fold((0.0, 0.0), |sum, one: (f64, f64)| (sum.0 + one.0, sum.1 + one.1))
        }
        table => of(table),
    }
}
