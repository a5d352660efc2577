//! From what a file says to a file.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{EntityPart, LevelConfig, LimitsFile};
use crate::limit_text;
use crate::output::does_something;
use crate::views::OwnedLevel;

/// The text of a file that says this.
pub(crate) fn print(file: &LimitsFile) -> String {
    let mut text = format!("set = {}\n", quoted(&file.set));
    let of_entity = |level: &OwnedLevel| level.entity.is_some();
    for (level, config) in file.levels.iter().filter(|(level, _)| !of_entity(level)) {
        let table = level.resource.as_deref().map_or("system".into(), |it| format!("resource.\"{it}\""));
        push(&mut text, &table, None, Some(config));
    }
    let with_limits = file.levels.keys().filter_map(|level| level.entity.as_ref());
    let entities: BTreeSet<&String> = file.entities.keys().chain(with_limits).collect();
    for entity in entities {
        let part = file.entities.get(entity);
        let config = file.levels.get(&OwnedLevel::entity(entity.clone(), None));
        if part.is_some() || config.is_some() {
            push(&mut text, &format!("entity.\"{entity}\""), part, config);
        }
        let from = OwnedLevel::entity(entity.clone(), None);
        let own = file.levels.range(from..).take_while(|(level, _)| level.entity.as_ref() == Some(entity));
        for (level, config) in own {
            if let Some(resource) = &level.resource {
                push(&mut text, &format!("entity.\"{entity}\".resource.\"{resource}\""), None, Some(config));
            }
        }
    }
    text
}

fn push(text: &mut String, table: &str, part: Option<&EntityPart>, config: Option<&LevelConfig>) {
    let mut lines = format!("\n[{table}]\n");
    // A string takes whatever is written to it.
    let mut line = |key: &str, value: String| {
        let _ = writeln!(lines, "{key} = {value}");
    };
    if let Some(EntityPart { name, parent, cascade }) = part {
        name.iter().for_each(|name| line("name", quoted(name)));
        parent.iter().for_each(|parent| line("parent", quoted(parent)));
        cascade.iter().for_each(|cascade| line("cascade", cascade.to_string()));
    }
    if let Some(config) = config {
        if !config.limits.is_empty() {
            line("limits", list(config));
        }
        config.on_unavailable.iter().for_each(|policy| line("on_unavailable", quoted(policy.name())));
    }
    text.push_str(&lines);
}

/// One limit in the line of its key, several in lines of their own.
fn list(config: &LevelConfig) -> String {
    let texts: Vec<String> = config.limits.iter().map(|limit| quoted(&limit_text::print(limit))).collect();
    match texts.as_slice() {
        [one] => format!("[{one}]"),
        several => format!("[\n    {},\n]", several.join(",\n    ")),
    }
}

/// A string of TOML in which nothing does something to a terminal.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if does_something(c) => {
                // A string takes whatever is written to it.
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_read_as_it_was_and_does_nothing_to_a_terminal() {
        for text in ["", "Acme \"Ltd\" \\ Co", "a\u{9b}b\u{202e}c\u{1b}[2Jd\ne\t'f'\u{7f}", "日本語"] {
            let written = quoted(text);
            assert!(!written.contains(does_something), "{written:?}");
            let read: toml::Table = format!("it = {written}").parse().unwrap();
            assert_eq!(read["it"].as_str(), Some(text));
        }
    }
}
