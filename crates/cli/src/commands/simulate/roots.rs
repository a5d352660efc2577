use std::collections::{BTreeMap, HashMap};

use crate::limits_file::EntityPart;

/// Who is charged together at the top: the last that each entity cascades to.
pub(super) struct Roots(HashMap<String, String>);

impl Roots {
    /// Those of these entities.
    pub(super) fn new(entities: &BTreeMap<String, EntityPart>) -> Roots {
        let above = |id: &str| {
            let part = entities.get(id).filter(|part| part.cascade == Some(true))?;
            part.parent.as_deref()
        };
        let root = |id: &String| {
            // There are no circles, or they could not have been stored; nobody has more ancestors than there are entities.
            let steps = std::iter::successors(Some(id.as_str()), |id| above(id)).take(entities.len() + 1);
            steps.last().filter(|root| root != id).map(|root| (id.clone(), root.to_owned()))
        };
        Roots(entities.keys().filter_map(root).collect())
    }

    /// The one of an entity; `None` if it cascades to nobody.
    pub(super) fn of(&self, entity: &str) -> Option<&str> {
        self.0.get(entity).map(String::as_str)
    }
}
