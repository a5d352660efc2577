//! Audit events as files: an object in a line, by namespace and day, compressed.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use flate2::{Compression, GzBuilder};

use crate::aggregate::json::object_of;
use crate::attributes::text_of;
use crate::service::Attributes;

/// A file of events, and the records it is made of.
pub(in crate::aggregate) struct ArchiveFile {
    pub(in crate::aggregate) name: String,
    pub(in crate::aggregate) contents: Vec<u8>,
    pub(in crate::aggregate) records: Vec<usize>,
}

/// The path of a file: a namespace, and a day such as `2026/11/15`.
type ArchivePath = (String, String);

/// Returns the files of events: one for each namespace and day. The same events make the same files, so that a batch that
/// is delivered again replaces what it put before. The name has the first of them and how many there are, so that a
/// batch with other bounds replaces only files with the same events.
pub(in crate::aggregate) fn files(events: &[(usize, &Attributes)]) -> io::Result<Vec<ArchiveFile>> {
    let mut paths: BTreeMap<ArchivePath, BTreeMap<String, (Vec<usize>, &Attributes)>> = BTreeMap::new();
    for (index, event) in events {
        let id = text_of(event, "event_id").or(text_of(event, "SK")).unwrap_or_default().to_owned();
        // An event that is in the batch twice is in the file once.
        let entry = paths.entry(path_of(event)).or_default().entry(id);
        entry.or_insert_with(|| (Vec::new(), event)).0.push(*index);
    }
    paths.into_iter().map(|(path, events)| file(&path, events)).collect()
}

fn file(
    (namespace, day): &ArchivePath,
    events: BTreeMap<String, (Vec<usize>, &Attributes)>,
) -> io::Result<ArchiveFile> {
    let first = events.keys().next().cloned().unwrap_or_default();
    let name = format!("audit/{namespace}/{day}/{}-{}.jsonl.gz", plain(&first), events.len());
    // No time in the header, so that the same events make the same bytes.
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    for (_, event) in events.values() {
        writeln!(gzip, "{}", object_of(event))?;
    }
    let records = events.into_values().flat_map(|(records, _)| records).collect();
    Ok(ArchiveFile { name, contents: gzip.finish()?, records })
}

fn path_of(event: &Attributes) -> ArchivePath {
    let partition = text_of(event, "PK").unwrap_or_default();
    let namespace = partition.split('/').next().unwrap_or_default();
    let day = text_of(event, "timestamp").and_then(|time| time.get(..10)).filter(|day| is_day(day));
    (plain(namespace), day.map_or("unknown".into(), |day| day.replace('-', "/")))
}

fn is_day(text: &str) -> bool {
    let shape = "dddd-dd-dd".chars();
    text.chars().zip(shape).all(|(is, shape)| if shape == 'd' { is.is_ascii_digit() } else { is == shape })
}

/// Returns a part of a name without separators of paths.
fn plain(part: &str) -> String {
    let plain: String =
        part.chars().map(|c| if c.is_ascii_alphanumeric() || "-_%".contains(c) { c } else { '_' }).collect();
    if plain.is_empty() { "_".into() } else { plain }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use aws_sdk_dynamodb::types::AttributeValue;
    use flate2::read::GzDecoder;

    use super::*;

    fn event(namespace: &str, id: &str, day: &str) -> Attributes {
        let text = |text: String| AttributeValue::S(text);
        Attributes::from([
            ("PK".to_owned(), text(format!("{namespace}/AUDIT#user-1"))),
            ("SK".to_owned(), text(format!("#AUDIT#{id}"))),
            ("event_id".to_owned(), text(id.into())),
            ("timestamp".to_owned(), text(format!("{day}T14:00:00Z"))),
            ("ttl".to_owned(), AttributeValue::N("5".into())),
        ])
    }

    #[test]
    fn events_are_put_by_namespace_and_day_each_once() {
        let events = [
            event("one", "02", "2026-11-15"),
            event("one", "01", "2026-11-15"),
            event("one", "03", "2026-11-16"),
            event("two", "04", "2026-11-15"),
            event("one", "02", "2026-11-15"),
            event("../x", "/../05", "never"),
        ];
        let events: Vec<_> = events.iter().enumerate().collect();
        let files = files(&events).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        let expected = [
            "audit/__/unknown/____05-1.jsonl.gz",
            "audit/one/2026/11/15/01-2.jsonl.gz",
            "audit/one/2026/11/16/03-1.jsonl.gz",
            "audit/two/2026/11/15/04-1.jsonl.gz",
        ];
        assert_eq!(names, expected);
        assert_eq!(files[1].records, [1, 0, 4]);
        let mut text = String::new();
        GzDecoder::new(files[1].contents.as_slice()).read_to_string(&mut text).unwrap();
        let expected = "{\"event_id\":\"01\",\"timestamp\":\"2026-11-15T14:00:00Z\"}\n\
                        {\"event_id\":\"02\",\"timestamp\":\"2026-11-15T14:00:00Z\"}\n";
        assert_eq!(text, expected);
    }
}
