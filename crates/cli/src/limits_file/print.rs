//! Formatting of limits files.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{EntityPart, LevelConfig, LimitsFile};
use crate::limit_text;
use crate::output::is_unsafe_char;
use crate::views::OwnedLevel;

/// Formats a limits file.
pub(crate) fn print(file: &LimitsFile) -> String {
    let mut text = format!("set = {}\n", quoted(&file.set));
    let of_entity = |level: &OwnedLevel| level.entity.is_some();
    for (level, config) in file.levels.iter().filter(|(level, _)| !of_entity(level)) {
        let table = level.resource.as_deref().map_or("system".into(), |name| format!("resource.\"{name}\""));
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
    // Writing to a string cannot fail.
    let mut line = |key: &str, value: String| {
        let _ = writeln!(lines, "{key} = {value}");
    };
    if let Some(EntityPart { name, parent, cascade }) = part {
        if let Some(name) = name {
            line("name", quoted(name));
        }
        if let Some(parent) = parent {
            line("parent", quoted(parent));
        }
        if let Some(cascade) = cascade {
            line("cascade", cascade.to_string());
        }
    }
    if let Some(config) = config {
        if !config.limits.is_empty() {
            line("limits", list(config));
        }
        if let Some(policy) = config.on_unavailable {
            line("on_unavailable", quoted(policy.name()));
        }
    }
    text.push_str(&lines);
}

/// Formats a list of limits: a single limit on the line of its key, several on lines of their own.
fn list(config: &LevelConfig) -> String {
    let texts: Vec<String> = config.limits.iter().map(|limit| quoted(&limit_text::print(limit))).collect();
    match texts.as_slice() {
        [one] => format!("[{one}]"),
        several => format!("[\n    {},\n]", several.join(",\n    ")),
    }
}

/// Formats a TOML string in which control characters are escaped.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_unsafe_char(c) => {
                // Writing to a string cannot fail.
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
    fn a_string_parses_back_and_has_no_control_characters() {
        for text in ["", "Acme \"Ltd\" \\ Co", "a\u{9b}b\u{202e}c\u{1b}[2Jd\ne\t'f'\u{7f}", "日本語"] {
            let written = quoted(text);
            assert!(!written.contains(is_unsafe_char), "{written:?}");
            let read: toml::Table = format!("name = {written}").parse().unwrap();
            assert_eq!(read["name"].as_str(), Some(text));
        }
    }
}
