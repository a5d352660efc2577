//! Limits as text: a line with the format and the version of the limits, then a line for each
//! limit.
//!
//! ```text
//! limits/1 version=7
//! rate:gcra rpm 100 period=60000000 burst=20 soft=15
//! quota spend 5000000 unit=6:USD calendar=0%200%20*%20*%20*%20Europe/Berlin shadow
//! ```
//!
//! Times are in microseconds. Defaults are left out, and no field occurs twice.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::CodecError;
use crate::name::COOLDOWN;
use crate::{
    Algorithm, Calendar, Kind, Limit, LimitBuilder, LimitError, Limits, LimitsError, Resets, Span, UNBOUNDED,
    Unit,
};

const FORM: &str = "limits/1";

const ALGORITHMS: [(Algorithm, &str); 5] = [
    (Algorithm::TokenBucket, "token-bucket"),
    (Algorithm::LeakyBucket, "leaky-bucket"),
    (Algorithm::Gcra, "gcra"),
    (Algorithm::FixedWindow, "fixed-window"),
    (Algorithm::SlidingWindow, "sliding-window"),
];

impl Limits {
    /// Encodes the limits as text. Equal limits of one version have the same text.
    ///
    /// ```
    /// use tollgate_core::{Limit, Limits};
    ///
    /// let limits = Limits::new([Limit::resource("slots", 3)])?;
    /// assert_eq!(limits.to_text(), "limits/1 version=0\nresource slots 3\n");
    /// assert_eq!(Limits::from_text(&limits.to_text(), &|_| None)?, limits);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_text(&self) -> String {
        let mut text = format!("{FORM} version={}\n", self.version());
        self.iter().for_each(|limit| put_line(&mut text, limit));
        text
    }

    /// Decodes limits from text. `calendars` parses the text of a calendar, because core has no
    /// time zones.
    ///
    /// # Errors
    ///
    /// Returns [`CodecError`] for the format of a later version, a line that does not describe a
    /// limit, an unknown calendar, or limits that are not valid.
    pub fn from_text(text: &str, calendars: &dyn Fn(&str) -> Option<Calendar>) -> Result<Limits, CodecError> {
        let whole = text.split_once('\n').filter(|_| text.ends_with('\n'));
        let (head, lines) = whole.ok_or(CodecError::TooShort)?;
        let version = head.strip_prefix(FORM).and_then(|rest| rest.strip_prefix(" version="));
        let version = version.and_then(digits).ok_or_else(|| CodecError::UnknownForm(head.into()))?;
        let limits = lines.lines().enumerate().map(|(index, line)| {
            let bad = |why: String| CodecError::BadLine { line: index + 2, why };
            let line = LimitLine::parse(line).map_err(bad)?;
            if line.kind == Kind::Cooldown {
                return Ok(Limit::cooldown());
            }
            let builder = line.builder(calendars)?;
            builder.build().map_err(|why: LimitError| LimitsError::from(why).into())
        });
        let limits = Limits::new(limits.collect::<Result<Vec<_>, CodecError>>()?)?;
        Ok(if version == 0 { limits } else { limits.at_version(version) })
    }
}

fn put_line(text: &mut String, limit: &Limit) {
    let mut put = |args: std::fmt::Arguments<'_>| {
        // Writing to a `String` cannot fail.
        let _ = text.write_fmt(args);
    };
    let (kind, algorithm) = match limit.kind() {
        Kind::Rate(algorithm) => ("rate", Some(algorithm)),
        Kind::Calls(algorithm) => ("calls", Some(algorithm)),
        Kind::Resource => ("resource", None),
        Kind::Quota => ("quota", None),
        Kind::Cooldown => ("cooldown", None),
        // No reader accepts this kind, because the rule cannot be written as text.
        Kind::Custom => ("custom", None),
    };
    put(format_args!("{kind}"));
    if let Some((_, name)) = ALGORITHMS.iter().find(|(known, _)| Some(*known) == algorithm) {
        put(format_args!(":{name}"));
    }
    put(format_args!(" {} {}", limit.name(), amount_text(limit.amount())));
    match (limit.resets(), limit.period()) {
        (Some(Resets::Calendar(calendar)), _) => put(format_args!(" calendar={}", escaped(calendar.text()))),
        (Some(Resets::AfterFirstUse(span)), _) => put(format_args!(" session={}", span.as_micros())),
        (None, Some(period)) => put(format_args!(" period={}", period.as_micros())),
        (None, None) => {}
    }
    if limit.capacity() != limit.amount() {
        put(format_args!(" burst={}", amount_text(limit.capacity())));
    }
    if let Some(step) = limit.resolution() {
        put(format_args!(" resolution={}", step.as_micros()));
    }
    if let Some(unit) = limit.unit() {
        put(format_args!(" unit={}:{}", unit.decimals(), escaped(unit.symbol())));
    }
    if let Some(level) = limit.soft_level() {
        put(format_args!(" soft={level}"));
    }
    put(format_args!("{}\n", if limit.is_shadow() { " shadow" } else { "" }));
}

fn amount_text(amount: u64) -> String {
    if amount == UNBOUNDED { "unbounded".into() } else { amount.to_string() }
}

/// The parsed line of a limit.
struct LimitLine<'a> {
    kind: Kind,
    name: &'a str,
    amount: u64,
    fields: BTreeMap<&'a str, &'a str>,
}

impl<'a> LimitLine<'a> {
    fn parse(line: &'a str) -> Result<LimitLine<'a>, String> {
        let mut words = line.split(' ');
        let mut word =
            |what: &str| words.next().filter(|word| !word.is_empty()).ok_or(format!("{what} is missing"));
        let (kind, name, amount) = (word("the kind")?, word("the name")?, word("the amount")?);
        let kind = kind_of(kind).ok_or_else(|| format!("unknown kind of limit {kind:?}"))?;
        let amount = amount_of(amount).ok_or_else(|| format!("{amount:?} is not an amount"))?;
        let mut fields = BTreeMap::new();
        for field in words {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            if fields.insert(key, value).is_some() {
                return Err(format!("{key:?} is given twice"));
            }
        }
        LimitLine { kind, name, amount, fields }.checked()
    }

    /// Checks that every field is known and valid for the kind, so that later accesses need no
    /// checks.
    fn checked(self) -> Result<LimitLine<'a>, String> {
        for (key, value) in &self.fields {
            let is_valid = match *key {
                "period" | "session" | "resolution" | "soft" => digits(value).is_some(),
                "burst" => amount_of(value).is_some(),
                "unit" => unit_of(value).is_some(),
                "calendar" => unescaped(value).is_some(),
                "shadow" => value.is_empty(),
                _ => return Err(format!("unknown field {key:?}")),
            };
            if !is_valid {
                return Err(format!("{key} cannot be {value:?}"));
            }
        }
        let times = ["period", "session", "calendar"].map(|key| self.fields.contains_key(key));
        let fits = match self.kind {
            Kind::Rate(_) | Kind::Calls(_) => times == [true, false, false],
            Kind::Resource | Kind::Custom => times == [false; 3],
            Kind::Quota => !times[0] && times[1] != times[2],
            Kind::Cooldown if (self.name, self.amount, self.fields.len()) != (COOLDOWN, 1, 0) => {
                return Err(format!("a cooldown is written as \"cooldown {COOLDOWN} 1\""));
            }
            Kind::Cooldown => true,
        };
        if fits { Ok(self) } else { Err("the kind of limit requires another period".into()) }
    }

    fn micros(&self, key: &str) -> Option<Span> {
        self.fields.get(key).and_then(|value| digits(value)).map(Span::from_micros)
    }

    fn builder(&self, calendars: &dyn Fn(&str) -> Option<Calendar>) -> Result<LimitBuilder, CodecError> {
        let (name, amount) = (self.name, self.amount);
        let period = self.micros("period").unwrap_or(Span::ZERO).to_duration();
        let mut builder = match self.kind {
            Kind::Rate(algorithm) => Limit::rate(name, amount, period).algorithm(algorithm),
            Kind::Calls(algorithm) => Limit::calls(amount, period).algorithm(algorithm).named(name),
            Kind::Resource => Limit::resource(name, amount),
            Kind::Quota => Limit::quota(name, amount, self.resets(calendars)?),
            // Unreachable: `from_text` makes the cooldown itself, and `kind_of` knows no custom
            // limits.
            Kind::Cooldown | Kind::Custom => Limit::resource(name, amount),
        };
        if let Some(burst) = self.fields.get("burst").and_then(|value| amount_of(value)) {
            builder = builder.burst(burst);
        }
        if let Some(step) = self.micros("resolution") {
            builder = builder.resolution(step.to_duration());
        }
        if let Some(unit) = self.fields.get("unit").and_then(|value| unit_of(value)) {
            builder = builder.unit(unit);
        }
        if let Some(level) = self.fields.get("soft").and_then(|value| digits(value)) {
            builder = builder.soft(level);
        }
        Ok(if self.fields.contains_key("shadow") { builder.shadow() } else { builder })
    }

    fn resets(&self, calendars: &dyn Fn(&str) -> Option<Calendar>) -> Result<Resets, CodecError> {
        if let Some(span) = self.micros("session") {
            return Ok(Resets::AfterFirstUse(span));
        }
        let text = self.fields.get("calendar").and_then(|value| unescaped(value)).unwrap_or_default();
        calendars(&text).map(Resets::Calendar).ok_or(CodecError::UnknownCalendar(text))
    }
}

fn kind_of(word: &str) -> Option<Kind> {
    let algorithm =
        |name: &str| ALGORITHMS.iter().find(|(_, known)| *known == name).map(|(algorithm, _)| *algorithm);
    Some(match word.split_once(':') {
        Some(("rate", name)) => Kind::Rate(algorithm(name)?),
        Some(("calls", name)) => Kind::Calls(algorithm(name)?),
        None if word == "resource" => Kind::Resource,
        None if word == "quota" => Kind::Quota,
        None if word == "cooldown" => Kind::Cooldown,
        _ => return None,
    })
}

fn amount_of(word: &str) -> Option<u64> {
    if word == "unbounded" { Some(UNBOUNDED) } else { digits(word) }
}

fn unit_of(word: &str) -> Option<Unit> {
    let (decimals, symbol) = word.split_once(':')?;
    Unit::new(&unescaped(symbol)?, u8::try_from(digits(decimals)?).ok()?).ok()
}

/// Parses a number that has only digits.
fn digits(word: &str) -> Option<u64> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

/// Escapes spaces, control characters and `%` as `%` and their code.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '%' | ' ' => escaped.push_str(if char == ' ' { "%20" } else { "%25" }),
            char if char.is_ascii_control() => {
                let _ = write!(escaped, "%{:02x}", u32::from(char));
            }
            char => escaped.push(char),
        }
    }
    escaped
}

fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut unescaped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        let byte = u8::from_str_radix(code, 16).ok().filter(u8::is_ascii)?;
        unescaped.push(char::from(byte));
        unescaped.push_str(rest);
    }
    Some(unescaped)
}
