//! Sets in records, of which members come and go in one write.

use std::collections::BTreeSet;

use tollgate_store::records::{Change, Item, ItemKey, Test, Value, Write};

/// What becomes of a set.
#[derive(Default)]
pub(super) struct Members {
    come: BTreeSet<String>,
    go: BTreeSet<String>,
}

impl Members {
    pub(super) fn come(&mut self, member: String) {
        self.come.insert(member);
    }

    pub(super) fn go(&mut self, member: String) {
        self.go.insert(member);
    }

    /// The write of it, if anything changes. Not every store can add to a set and take from it at once; so if both are
    /// to happen, the set that is there is replaced, and is tested to be there still.
    pub(super) fn write(self, key: ItemKey, field: &str, there: Option<&Item>) -> Option<Write> {
        let there = there.and_then(|item| item.fields.get(field));
        if let (Some(Value::Set(members)), false, false) = (there, self.come.is_empty(), self.go.is_empty()) {
            let still = Test::Is(field.into(), Value::Set(members.clone()));
            let members = members.difference(&self.go).cloned().chain(self.come).collect();
            let replace = Change::Set(field.into(), Value::Set(members));
            return Some(Write::Change(key, vec![replace], vec![still]));
        }
        // From a set that is not there nothing has to go.
        let (change, members): (fn(String, String) -> Change, _) =
            if self.come.is_empty() { (Change::Exclude, self.go) } else { (Change::Include, self.come) };
        let changes: Vec<Change> = members.into_iter().map(|member| change(field.into(), member)).collect();
        (!changes.is_empty()).then(|| Write::Change(key, changes, Vec::new()))
    }
}
