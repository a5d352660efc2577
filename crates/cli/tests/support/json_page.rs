//! The page about JSON, read as a schema.

use std::collections::BTreeMap;

use serde_json::Value;

/// The fields of each section of the page, by heading.
pub struct JsonPage(BTreeMap<String, Vec<Field>>);

struct Field {
    name: String,
    kind: String,
    is_optional: bool,
}

impl JsonPage {
    /// Reads the tables of a page.
    pub fn read(page: &str) -> JsonPage {
        let mut sections: BTreeMap<String, Vec<Field>> = BTreeMap::new();
        let mut heading = String::new();
        for line in page.lines() {
            if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
                heading = title.trim_matches('`').into();
            } else if let Some(field) = Field::read(line) {
                sections.entry(heading.clone()).or_default().push(field);
            }
        }
        JsonPage(sections)
    }

    pub fn has(&self, section: &str) -> bool {
        self.0.contains_key(section)
    }

    /// The section of the command that a line runs: the longest that fits.
    pub fn command_of<'a>(&'a self, line: &str) -> Option<&'a str> {
        let fits = |name: &&String| line.starts_with(&format!("{name} ")) || line == *name;
        self.0.keys().filter(fits).max_by_key(|name| name.len()).map(String::as_str)
    }

    /// Checks a value against a section.
    pub fn check(&self, section: &str, value: &Value) -> Result<(), String> {
        let fields = self.0.get(section).ok_or_else(|| format!("there is no section {section:?}"))?;
        let Value::Object(object) = value else { return Err(format!("{value} is no {section}")) };
        for field in fields {
            match object.get(&field.name) {
                Some(value) => {
                    self.check_kind(&field.kind, value).map_err(|why| format!("{}: {why}", field.name))?
                }
                None if field.is_optional => {}
                None => return Err(format!("{section} has no field {:?}", field.name)),
            }
        }
        match object.keys().find(|name| fields.iter().all(|field| field.name != **name)) {
            Some(unknown) => Err(format!("the page says nothing of {unknown:?} in {section}")),
            None => Ok(()),
        }
    }

    fn check_kind(&self, kind: &str, value: &Value) -> Result<(), String> {
        if let Some(kind) = kind.strip_suffix('?') {
            return if value.is_null() { Ok(()) } else { self.check_kind(kind, value) };
        }
        if let Some(kind) = kind.strip_suffix("[]").filter(|kind| !kind.starts_with('{')) {
            let Value::Array(items) = value else { return Err(format!("{value} is no array")) };
            return items.iter().try_for_each(|item| self.check_kind(kind, item));
        }
        if let Some(kind) = kind.strip_prefix('{').and_then(|kind| kind.strip_suffix('}')) {
            let Value::Object(object) = value else { return Err(format!("{value} is no object")) };
            return object.values().try_for_each(|value| self.check_kind(kind, value));
        }
        let fits = match kind {
            "any" => true,
            "text" | "cursor" => value.is_string(),
            "time" => value.as_str().is_some_and(|text| text.len() == 20 && text.ends_with('Z')),
            "number" => value.is_number(),
            "bool" => value.is_boolean(),
            object => return self.check(object, value),
        };
        if fits { Ok(()) } else { Err(format!("{value} is no {kind}")) }
    }
}

impl Field {
    /// A row of a table of fields, whose first cell is a name in backticks.
    fn read(line: &str) -> Option<Field> {
        let mut cells = line.strip_prefix("| `")?.splitn(3, " | ");
        let name = cells.next()?.strip_suffix('`')?;
        let kind = cells.next()?;
        let is_optional = cells.next()?.starts_with("optional");
        Some(Field { name: name.into(), kind: kind.into(), is_optional })
    }
}
