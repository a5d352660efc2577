//! The file of requests, as items of a batch. Lines that are none are put aside, and the rest goes on.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use tollgate_batch::Item;
use tollgate_provider::{Estimate, Estimator, Tokens};

use super::endpoint::model_of;
use super::price::Prices;
use super::request::Request;

/// The longest line that is read. A request with pictures in it has some megabytes.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// A request with what it is likely to cost.
pub(crate) struct Planned {
    pub(crate) request: Request,
    pub(crate) model: String,
    pub(crate) estimate: Estimate,
}

/// Reads requests, one after the other.
pub(crate) struct Requests {
    lines: Box<dyn BufRead + Send>,
    name: String,
    number: u64,
    estimator: Arc<Estimator>,
    prices: Arc<Prices>,
    must_have_price: bool,
    bad: Arc<BadLines>,
}

/// Lines that are no requests, and where they go.
pub(crate) struct BadLines {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    count: u64,
    /// Why nothing more can be put aside, or nothing more be read.
    broken: Option<String>,
}

/// How a line is put aside.
#[derive(Serialize)]
struct BadLine<'a> {
    file: &'a str,
    line: u64,
    error: &'a str,
    text: &'a str,
}

#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    model: String,
}

impl Requests {
    /// Those of a file, or of stdin if it is called `-`.
    pub(crate) fn open(
        path: &Path,
        estimator: Arc<Estimator>,
        prices: Arc<Prices>,
        must_have_price: bool,
        bad: Arc<BadLines>,
    ) -> Result<Requests> {
        let (lines, name): (Box<dyn BufRead + Send>, String) = if path == Path::new("-") {
            (Box::new(BufReader::new(io::stdin())), "stdin".into())
        } else {
            let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
            (Box::new(BufReader::with_capacity(1 << 16, file)), path.display().to_string())
        };
        Ok(Requests { lines, name, number: 0, estimator, prices, must_have_price, bad })
    }

    fn next_line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let mut limited = io::Read::take(&mut self.lines, LINE_BYTES_MAX);
        match limited.read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) => self.number += 1,
            Err(why) => {
                self.bad.give_up(format!("{} cannot be read beyond line {}: {why}", self.name, self.number));
                return None;
            }
        }
        if line.len() as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            let why = format!("line {} has more than {LINE_BYTES_MAX} bytes", self.number);
            self.bad.give_up(format!("{}: {why}; nothing behind it was read", self.name));
            return None;
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    fn plan(&self, line: &str) -> Result<Item<Planned>, String> {
        let request = Request::parse(line, self.number).map_err(|why| why.to_string())?;
        let body = request.body.get();
        let Model { model } =
            serde_json::from_str(body).map_err(|why| format!("the model cannot be read: {why}"))?;
        let model = model_of(model, request.path.as_deref());
        let price = self.prices.of(&model);
        if self.must_have_price && price.is_none() {
            return Err(format!("the model {model:?} has no price, so --max-cost could not hold"));
        }
        let estimate = self.estimator.estimate_body(body.as_bytes());
        let tokens = Tokens::new(estimate.input, estimate.output);
        let cost = price.map_or(0, |price| price.micros(tokens));
        let (id, total) = (request.id.clone(), estimate.total());
        Ok(Item::new(id, Planned { request, model, estimate }).tokens(total).cost_micros(cost))
    }
}

impl Iterator for Requests {
    type Item = Item<Planned>;

    fn next(&mut self) -> Option<Item<Planned>> {
        loop {
            let line = self.next_line()?;
            if line.trim().is_empty() {
                continue;
            }
            match self.plan(&line) {
                Ok(item) => return Some(item),
                Err(why) => {
                    let bad =
                        BadLine { file: &self.name, line: self.number, error: &why, text: line.trim_end() };
                    if !self.bad.put_aside(&bad) {
                        return None;
                    }
                }
            }
        }
    }
}

impl BadLines {
    /// They go to this file, which is made when there is one.
    pub(crate) fn new(path: PathBuf) -> BadLines {
        BadLines { path, state: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn count(&self) -> u64 {
        self.state().count
    }

    /// Why the input ended early, if it did.
    pub(crate) fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_up(&self, why: String) {
        self.state().broken = Some(why);
    }

    /// Whether it could be written down: otherwise it would be lost.
    fn put_aside(&self, bad: &BadLine<'_>) -> bool {
        let mut state = self.state();
        state.count += 1;
        match self.write(&mut state, bad) {
            Ok(()) => true,
            Err(why) => {
                state.broken = Some(format!("{} cannot be written: {why}", self.path.display()));
                false
            }
        }
    }

    fn write(&self, state: &mut State, bad: &BadLine<'_>) -> io::Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            empty => empty.insert(made_for_us(&self.path)?),
        };
        let mut line = serde_json::to_vec(bad)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

/// Makes a file that others cannot read: what was to be sent is for the owner only.
fn made_for_us(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(true).open(path)
}

/// How many lines a file has, to tell how far a batch has come; `None` where nobody can know.
pub(crate) fn count_lines(path: &Path) -> Option<u64> {
    if !path.is_file() {
        return None;
    }
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).ok()?);
    let (mut lines, mut is_open) = (0, false);
    loop {
        let read = reader.fill_buf().ok()?;
        if read.is_empty() {
            return Some(lines + u64::from(is_open));
        }
        lines += read.iter().filter(|byte| **byte == b'\n').count() as u64;
        is_open = read.last() != Some(&b'\n');
        let len = read.len();
        reader.consume(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tollgate-batch-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn lines_that_are_no_requests_are_put_aside_with_their_number_and_the_rest_goes_on() {
        let folder = folder("input");
        let path = folder.join("requests.jsonl");
        std::fs::write(
            &path,
            "{\"custom_id\":\"a\",\"body\":{}}\n\nnonsense\n{\"custom_id\":\"b\",\"body\":{}}",
        )
        .unwrap();
        assert_eq!(count_lines(&path), Some(4));
        let bad = Arc::new(BadLines::new(folder.join("errors.jsonl")));
        let requests =
            Requests::open(&path, Arc::default(), Arc::default(), false, Arc::clone(&bad)).unwrap();
        assert_eq!(requests.count(), 2);
        assert_eq!((bad.count(), bad.broken()), (1, None));
        let written = std::fs::read_to_string(bad.path()).unwrap();
        assert!(written.contains("\"line\":3") && written.contains("nonsense"), "{written}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_put_aside_ends_the_input_rather_than_being_lost() {
        let folder = folder("lost");
        let path = folder.join("requests.jsonl");
        std::fs::write(&path, "nonsense\n{\"body\":{}}\n").unwrap();
        let bad = Arc::new(BadLines::new(folder.join("no such folder").join("errors.jsonl")));
        let mut requests =
            Requests::open(&path, Arc::default(), Arc::default(), false, Arc::clone(&bad)).unwrap();
        assert!(requests.next().is_none());
        assert!(bad.broken().unwrap().contains("cannot be written"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_model_without_a_price_is_no_request_where_money_is_bounded() {
        let folder = folder("price");
        let path = folder.join("requests.jsonl");
        std::fs::write(&path, "{\"body\":{\"model\":\"m\"}}\n").unwrap();
        let bad = Arc::new(BadLines::new(folder.join("errors.jsonl")));
        let mut requests =
            Requests::open(&path, Arc::default(), Arc::default(), true, Arc::clone(&bad)).unwrap();
        assert!(requests.next().is_none());
        assert_eq!(bad.count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
