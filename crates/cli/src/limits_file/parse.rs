//! Parsing of limits files.

use std::path::Path;

use tollgate::{Limit, Limits, OnUnavailable};
use toml::{Table, Value};

use super::error::FilePlace;
use super::{DEFAULT_SET, EntityPart, LevelConfig, LimitsFile, LimitsFileError};
use crate::limit_text;
use crate::names;
use crate::reading::read_text;
use crate::settings::suggest::nearest;
use crate::views::OwnedLevel;

/// The maximum size of a file: enough for a million limits.
const BYTES_MAX: u64 = 64 << 20;

type ParseResult<T> = std::result::Result<T, LimitsFileError>;

/// Reads a file.
///
/// # Errors
///
/// What is wrong with it, and where.
pub(crate) fn read(file: &Path) -> ParseResult<LimitsFile> {
    let unreadable = |why| LimitsFileError::of_file(file, format_args!("cannot be read: {why}"));
    parse(file, &read_text(file, BYTES_MAX).map_err(unreadable)?)
}

/// Parses the text of a file.
pub(crate) fn parse(file: &Path, text: &str) -> ParseResult<LimitsFile> {
    let broken = |why: toml::de::Error| LimitsFileError::of_file(file, why.to_string().trim_end());
    let table: Table = text.parse().map_err(broken)?;
    let root = FileTable { file, name: String::new(), table: &table };
    root.check_keys(&["set", "system", "resource", "entity"])?;
    let set = root.text("set")?.unwrap_or(DEFAULT_SET);
    let mut parsed = LimitsFile::new(set);
    names::managed_set(set).map_err(|why| root.wrong("set", format_args!("{set:?}: {why}")))?;
    if let Some(system) = root.part("system", "system")? {
        parsed.levels.insert(OwnedLevel::system(), system.system()?);
    }
    for (resource, part) in root.parts("resource", names::resource)? {
        parsed.levels.insert(OwnedLevel::resource(resource), part.resource()?);
    }
    for (entity, part) in root.parts("entity", names::entity)? {
        part.entity(&entity, &mut parsed)?;
    }
    Ok(parsed)
}

/// A table of the file.
struct FileTable<'a> {
    file: &'a Path,
    name: String,
    table: &'a Table,
}

impl<'a> FileTable<'a> {
    fn system(&self) -> ParseResult<LevelConfig> {
        self.check_keys(&["limits", "on_unavailable"])?;
        let limits = self.limits()?;
        let on_unavailable = match self.text("on_unavailable")? {
            None => None,
            Some(policy) => Some(OnUnavailable::from_name(policy).ok_or_else(|| {
                self.wrong("on_unavailable", format_args!("{policy:?}: valid are block, allow and local"))
            })?),
        };
        if limits.is_none() && on_unavailable.is_none() {
            let why = "neither limits nor on_unavailable is set; write limits = [\"rpm:1000\"]";
            return Err(self.wrong_at_all(why));
        }
        let none = || Limits::new(Vec::<Limit>::new()).expect("no limits are a set of limits");
        Ok(LevelConfig { limits: limits.unwrap_or_else(none), on_unavailable })
    }

    fn resource(&self) -> ParseResult<LevelConfig> {
        self.check_keys(&["limits"])?;
        let limits = self.limits()?;
        let limits =
            limits.ok_or_else(|| self.wrong_at_all("limits are missing; write limits = [\"rpm:1000\"]"))?;
        Ok(LevelConfig { limits, on_unavailable: None })
    }

    fn entity(&self, entity: &str, parsed: &mut LimitsFile) -> ParseResult<()> {
        self.check_keys(&["name", "parent", "cascade", "limits", "resource"])?;
        let parent = self.text("parent")?;
        if let Some(parent) = parent {
            names::entity(parent).map_err(|why| self.wrong("parent", format_args!("{parent:?}: {why}")))?;
            if parent == entity {
                return Err(self.wrong("parent", "an entity cannot be its own parent; name another one"));
            }
        }
        let cascade = match self.table.get("cascade") {
            None => None,
            Some(Value::Boolean(_)) if parent.is_none() => {
                let why = "there is no parent to cascade to; also write parent = \"acme\"";
                return Err(self.wrong("cascade", why));
            }
            Some(Value::Boolean(cascade)) => Some(*cascade),
            Some(other) => {
                let why = format!("{other} is neither true nor false; write cascade = true");
                return Err(self.wrong("cascade", why));
            }
        };
        let name = self.text("name")?.map(str::to_owned);
        let part = EntityPart { name, parent: parent.map(str::to_owned), cascade };
        parsed.entities.insert(entity.to_owned(), part);
        if let Some(limits) = self.limits()? {
            let level = OwnedLevel::entity(entity.into(), None);
            parsed.levels.insert(level, LevelConfig { limits, on_unavailable: None });
        }
        for (resource, part) in self.parts("resource", names::resource)? {
            let level = OwnedLevel::entity(entity.into(), Some(resource));
            parsed.levels.insert(level, part.resource()?);
        }
        Ok(())
    }

    fn limits(&self) -> ParseResult<Option<Limits>> {
        let Some(value) = self.table.get("limits") else { return Ok(None) };
        let wrong = |why: String| self.wrong("limits", why);
        let Value::Array(texts) = value else {
            return Err(wrong(format!("{value} is not a list; write limits = [\"rpm:1000\"]")));
        };
        if texts.is_empty() {
            return Err(wrong(
                "the list is empty; write limits = [\"rpm:1000\"], or leave the key out".into(),
            ));
        }
        let limit = |value: &Value| match value {
            Value::String(text) => limit_text::parse(text).map_err(|why| wrong(format!("{text:?}: {why}"))),
            other => Err(wrong(format!("{other} is not a string; write limits = [\"rpm:1000\"]"))),
        };
        let limits: Vec<Limit> = texts.iter().map(limit).collect::<ParseResult<_>>()?;
        Limits::new(limits).map(Some).map_err(|why| wrong(why.to_string()))
    }

    /// Returns a table inside this one.
    fn part(&self, key: &str, name: &str) -> ParseResult<Option<FileTable<'a>>> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => {
                Ok(Some(FileTable { file: self.file, name: self.below(name), table }))
            }
            Some(other) => Err(self.wrong(key, format_args!("{other} is not a table; write [{key}]"))),
        }
    }

    /// Returns the tables of a table inside this one, such as those of all resources, by name.
    fn parts(
        &self,
        key: &str,
        check: fn(&str) -> std::result::Result<String, String>,
    ) -> ParseResult<Vec<(String, FileTable<'a>)>> {
        let Some(all) = self.part(key, key)? else { return Ok(Vec::new()) };
        let one = |(name, value): (&'a String, &'a Value)| {
            let place = format!("{}.\"{name}\"", all.name);
            let at = FilePlace { table: &place, key: None };
            let wrong = |why: String| LimitsFileError::at(self.file, &at, why);
            let checked = check(name).map_err(wrong)?;
            match value {
                Value::Table(table) => {
                    Ok((checked, FileTable { file: self.file, name: place.clone(), table }))
                }
                other => Err(wrong(format!("{other} is not a table; write limits = [\"rpm:1000\"] in it"))),
            }
        };
        all.table.iter().map(one).collect()
    }

    fn text(&self, key: &str) -> ParseResult<Option<&'a str>> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                Err(self.wrong(key, format_args!("{other} is not a string; write it as \"{other}\"")))
            }
        }
    }

    fn check_keys(&self, known: &[&str]) -> ParseResult<()> {
        let Some(unknown) = self.table.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let hint = match nearest(unknown, known) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("valid are {}", known.join(", ")),
        };
        Err(self.wrong_at_all(format_args!("{unknown:?} is not a key here; {hint}")))
    }

    fn below(&self, name: &str) -> String {
        if self.name.is_empty() { name.into() } else { format!("{}.{name}", self.name) }
    }

    fn wrong(&self, key: &str, why: impl std::fmt::Display) -> LimitsFileError {
        LimitsFileError::at(self.file, &FilePlace { table: &self.name, key: Some(key) }, why)
    }

    fn wrong_at_all(&self, why: impl std::fmt::Display) -> LimitsFileError {
        LimitsFileError::at(self.file, &FilePlace { table: &self.name, key: None }, why)
    }
}
