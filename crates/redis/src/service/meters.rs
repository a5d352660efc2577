//! Scripts from `meters.lua`, written out for calls of one shape: without branches and loops they are quicker.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_store::Mutex;

use super::scripts::LoadedScript;

const PATTERN: &str = include_str!("../lua/meters.lua");

/// The length of the head of a bucket.
const HEAD: usize = 33;

/// How many shapes are written out at most. A server keeps all scripts that it ever got.
const SHAPES_MAX: usize = 64;

/// For how many buckets a script is written out at most: Lua allows two hundred locals.
const STEPS_MAX: usize = 16;

/// The scripts for calls that take from meters only, by how many limits each of their buckets has.
#[derive(Debug)]
pub(crate) struct Meters {
    time: ScriptClock,
    remembered_ms: String,
    known: Mutex<HashMap<Vec<usize>, Arc<LoadedScript>>>,
}

/// Where the time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptClock {
    /// The server, whose time also expires keys.
    OfServer,
    /// The last argument.
    Given,
}

impl Meters {
    pub(crate) fn new(time: ScriptClock, remembered_ms: String) -> Meters {
        Meters { time, remembered_ms, known: Mutex::default() }
    }

    /// Returns for how many milliseconds the outcomes of these calls are remembered.
    pub(crate) fn remembered_ms(&self) -> &str {
        &self.remembered_ms
    }

    /// Returns the script for buckets with so many limits; `None` if these are too many, or there are enough scripts.
    pub(crate) fn of(&self, limits: &[usize]) -> Option<Arc<LoadedScript>> {
        let mut known = self.known.lock();
        if let Some(script) = known.get(limits) {
            return Some(Arc::clone(script));
        }
        if known.len() == SHAPES_MAX || limits.len() > STEPS_MAX {
            return None;
        }
        let script = Arc::new(LoadedScript::new(self.written_out(limits)));
        known.insert(limits.to_vec(), Arc::clone(&script));
        Some(script)
    }

    fn written_out(&self, limits: &[usize]) -> String {
        let mut out = String::new();
        let mut lines = PATTERN.lines().filter(|line| !line.trim_start().starts_with("-- "));
        while let Some(line) = lines.next() {
            if line.trim() != "--steps" {
                put_line(&mut out, line);
                continue;
            }
            let step: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "--end").collect();
            for (index, limits) in limits.iter().enumerate() {
                let last = HEAD + 8 * (3 + 2 * limits) - 1;
                for line in &step {
                    let line = for_each_limit(line, *limits);
                    let line = line.replace("$i", &(index + 1).to_string());
                    put_line(&mut out, line.replace("$last", &last.to_string()).trim_end());
                }
            }
        }
        let (now, expires) = match self.time {
            ScriptClock::OfServer => ("call('TIME')\nnow = now[1] * 1000000 + now[2]".to_owned(), "true"),
            ScriptClock::Given => (format!("args[{}] + 0", limits.len() + 1), "false"),
        };
        out.replace("$now", &now).replace("$expires", expires).replace("$remembered", &self.remembered_ms)
    }
}

fn put_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// Expands a line: its groups for every limit, or as many lines as there are limits.
fn for_each_limit(line: &str, limits: usize) -> String {
    let each = |part: &str| -> String {
        (1..=limits).map(|number| part.replace("$k", &number.to_string())).collect()
    };
    if !line.contains("$(") {
        return if line.contains("$k") { each(&format!("{line}\n")) } else { line.to_owned() };
    }
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, (group, after))) =
        rest.split_once("$(").and_then(|(before, behind)| Some((before, behind.split_once("$)")?)))
    {
        out.push_str(before);
        out.push_str(&each(group));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_written_out_for_every_bucket_and_limit() {
        let script = Meters::new(ScriptClock::OfServer, "60000".into()).written_out(&[1, 3]);
        assert!(!script.contains('$'), "{script}");
        assert!(script.contains("local from, gain1, full1, price1, cost1 = un('<ddddd', wanted1, 34)"));
        assert!(script.contains("local t, lasts, events, used1, credit1, used2, credit2, used3, credit3 ="));
        assert!(script.contains("call('GETRANGE', keys[1 + 1], '0', '72')"), "{script}");
        assert!(script.contains("call('GETRANGE', keys[2 + 1], '0', '104')"));
        assert_eq!(script.matches("price3\n").count(), 1);
        assert!(script.contains("'PX', '60000'"));
    }

    #[test]
    fn there_are_never_too_many_scripts() {
        let meters = Meters::new(ScriptClock::Given, "60000".into());
        let shape = |number: usize| [1 + number % 8, 1 + number / 8 % 8, 1 + number / 64];
        assert!((0..SHAPES_MAX).all(|number| meters.of(&shape(number)).is_some()));
        assert!(meters.of(&shape(SHAPES_MAX)).is_none());
        assert!(meters.of(&shape(3)).is_some(), "those that are known stay so");
    }
}
