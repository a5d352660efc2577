//! The lines of a file of requests, as text.

use std::io::{self, BufRead, Read};

/// The maximum length of a line. A request with pictures has some megabytes.
pub(super) const LINE_BYTES_MAX: u64 = 64 << 20;

/// How much of an unreadable line is shown.
const SHOWN_BYTES_MAX: usize = 200;

/// The byte order mark that some editors write before the first line.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads lines, one after the other.
pub(super) struct InputLines {
    reader: Box<dyn BufRead + Send>,
    number: u64,
}

/// A line that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) why: String,
    /// Its beginning.
    pub(super) text: String,
}

impl InputLines {
    pub(super) fn new(reader: Box<dyn BufRead + Send>) -> InputLines {
        InputLines { reader, number: 0 }
    }

    /// Returns the number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line; `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of the file. A line that is too long or not UTF-8 is not one of them: the next line can be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Result<String, Unreadable>>> {
        let mut line = Vec::new();
        (&mut self.reader).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if line.len() as u64 > LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            let bytes = line.len() as u64 + self.pass_over()?;
            let why = format!("it has {bytes} bytes, and at most {LINE_BYTES_MAX} are read");
            return Ok(Some(Err(Unreadable { why, text: beginning(&line) })));
        }
        if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(String::from_utf8(line).map_err(|error| {
            let at = error.utf8_error().valid_up_to() + 1;
            let why = format!("it is not valid UTF-8 at byte {at}; convert the file, with iconv for example");
            Unreadable { why, text: beginning(error.as_bytes()) }
        })))
    }

    /// Skips to the end of the line. Returns how many bytes were skipped.
    fn pass_over(&mut self) -> io::Result<u64> {
        let mut passed = 0;
        loop {
            let read = self.reader.fill_buf()?;
            let end = read.iter().position(|byte| *byte == b'\n');
            let len = end.map_or(read.len(), |at| at + 1);
            passed += end.unwrap_or(len) as u64;
            self.reader.consume(len);
            if end.is_some() || len == 0 {
                return Ok(passed);
            }
        }
    }
}

fn beginning(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES_MAX)]).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &'static [u8]) -> Vec<Result<String, String>> {
        let mut lines = InputLines::new(Box::new(text));
        std::iter::from_fn(|| lines.next().unwrap()).map(|line| line.map_err(|bad| bad.why)).collect()
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_and_nothing_else_is() {
        assert_eq!(lines(b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}"), [Ok("{}\n".into()), Ok("\u{feff}{}".into())]);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn what_is_not_utf_8_is_not_replaced() {
        let read = lines(b"{\"a\":\"\xe9\"}\n{}\n");
        assert!(read[0].as_ref().unwrap_err().contains("at byte 7"), "{read:?}");
        assert_eq!(read[1], Ok("{}\n".into()));
    }

    #[test]
    fn a_line_that_is_too_long_does_not_end_the_input() {
        let long = io::repeat(b'x').take(LINE_BYTES_MAX + 5);
        let reader = io::BufReader::new(long.chain(&b"\n{}"[..]));
        let mut lines = InputLines::new(Box::new(reader));
        let bad = lines.next().unwrap().unwrap().unwrap_err();
        assert!(bad.why.contains(&(LINE_BYTES_MAX + 5).to_string()), "{}", bad.why);
        assert_eq!(bad.text.len(), SHOWN_BYTES_MAX);
        assert_eq!(lines.next().unwrap(), Some(Ok("{}".into())));
        assert_eq!(lines.number(), 2);
    }
}
