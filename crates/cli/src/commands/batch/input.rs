//! The requests of a file, as items of a batch. Invalid lines go to the errors file.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tollgate_batch::Item;
use tollgate_provider::{Estimate, Estimator, Tokens};

pub(crate) use super::bad_lines::BadLines;
use super::lines::InputLines;
use super::price::Prices;
use super::request::BatchRequest;

/// A request with its estimated tokens.
pub(crate) struct PlannedRequest {
    pub(crate) request: BatchRequest,
    pub(crate) estimate: Estimate,
}

/// An iterator over the requests of an input.
pub(crate) struct Requests {
    lines: InputLines,
    estimator: Arc<Estimator>,
    prices: Arc<Prices>,
    must_have_price: bool,
    bad: Arc<BadLines>,
}

/// Returns true if requests come from stdin: a file that is called `-` has a path, such as `./-`.
pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens a file of requests, or stdin if it is called `-`.
pub(super) fn open(path: &Path) -> Result<InputLines> {
    if is_stdin(path) {
        return Ok(InputLines::new(Box::new(BufReader::new(io::stdin()))));
    }
    let cannot_be_read = || format!("{} cannot be read", path.display());
    let file = File::open(path).with_context(cannot_be_read)?;
    if file.metadata().with_context(cannot_be_read)?.is_dir() {
        return Err(anyhow::anyhow!("{} is a directory, not a file of requests", path.display()));
    }
    Ok(InputLines::new(Box::new(BufReader::with_capacity(1 << 16, file))))
}

/// Returns the error for a request without a price, if --max-cost is given.
pub(super) fn without_price(model: &str) -> String {
    format!(
        "the model {model:?} has no price, so --max-cost cannot be enforced; give it one with --prices or --accounts"
    )
}

impl Requests {
    /// Reads the requests of an input. Invalid lines go to `bad`.
    pub(crate) fn new(
        lines: InputLines,
        estimator: Arc<Estimator>,
        prices: Arc<Prices>,
        must_have_price: bool,
        bad: Arc<BadLines>,
    ) -> Requests {
        Requests { lines, estimator, prices, must_have_price, bad }
    }

    fn plan(&self, line: &str) -> Result<Item<PlannedRequest>, String> {
        let request = BatchRequest::parse(line, self.lines.number()).map_err(|why| why.to_string())?;
        let price = self.prices.of(&request.model);
        if self.must_have_price && price.is_none() {
            return Err(without_price(&request.model));
        }
        let estimate = self.estimator.estimate_body(request.body.get().as_bytes());
        let tokens = Tokens::new(estimate.input, estimate.output);
        let cost = price.map_or(0, |price| price.micros(tokens));
        let id = request.id.clone();
        let fingerprint = request.fingerprint();
        let has_custom_id = request.has_custom_id;
        let bytes = request.body.get().len();
        let tokens = estimate.total();
        let item = Item::new(id, PlannedRequest { request, estimate }).payload_bytes(bytes);
        let item = item.tokens(tokens).cost_micros(cost).fingerprint(fingerprint);
        Ok(if has_custom_id { item.with_custom_id() } else { item })
    }

    /// Reads the next line that is not empty; the error is the reason, and the beginning of the line.
    fn next_line(&mut self) -> Option<Result<String, (String, String)>> {
        loop {
            match self.lines.next() {
                Ok(Some(Ok(line))) if line.trim().is_empty() => {}
                Ok(line) => return line.map(|line| line.map_err(|bad| (bad.why, bad.text))),
                Err(why) => {
                    self.bad.give_up(self.lines.number(), &why);
                    return None;
                }
            }
        }
    }
}

impl Iterator for Requests {
    type Item = Item<PlannedRequest>;

    fn next(&mut self) -> Option<Item<PlannedRequest>> {
        loop {
            if self.bad.broken().is_some() {
                return None;
            }
            let planned = match self.next_line()? {
                Ok(line) => self.plan(&line).map_err(|why| (why, line.trim_end().to_owned())),
                Err(bad) => Err(bad),
            };
            match planned {
                Ok(item) => {
                    self.bad.add_item(self.lines.number());
                    return Some(item);
                }
                // A line that cannot be written to the errors file would be lost, so it ends the input.
                Err((why, text)) if self.bad.put_aside(self.lines.number(), &why, &text) => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tollgate-batch-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn requests(path: &Path, must_have_price: bool, bad: &Arc<BadLines>) -> Requests {
        let lines = open(path).unwrap();
        Requests::new(lines, Arc::default(), Arc::default(), must_have_price, Arc::clone(bad))
    }

    #[test]
    fn invalid_lines_go_to_the_errors_file_with_their_number_and_the_rest_is_read() {
        let folder = folder("input");
        let path = folder.join("requests.jsonl");
        std::fs::write(
            &path,
            "{\"custom_id\":\"a\",\"body\":{}}\n\nnonsense\n{\"custom_id\":\"b\",\"body\":{}}",
        )
        .unwrap();
        let bad = Arc::new(BadLines::new(folder.join("errors.jsonl"), &path));
        assert_eq!(requests(&path, false, &bad).count(), 2);
        assert_eq!((bad.count(), bad.broken()), (1, None));
        let written = std::fs::read_to_string(bad.path()).unwrap();
        assert!(written.contains("\"line\":3") && written.contains("nonsense"), "{written}");
        bad.put_item_aside(1, "b", "it is there twice");
        let written = std::fs::read_to_string(bad.path()).unwrap();
        assert!(written.contains("\"line\":4") && written.contains("twice"), "{written}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_line_that_cannot_be_written_to_the_errors_file_ends_the_input() {
        let folder = folder("lost");
        let path = folder.join("requests.jsonl");
        std::fs::write(&path, "nonsense\n{\"body\":{}}\n").unwrap();
        let bad = Arc::new(BadLines::new(folder.join("no such folder").join("errors.jsonl"), &path));
        assert!(requests(&path, false, &bad).next().is_none());
        assert!(bad.broken().unwrap().contains("cannot be written"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_model_without_a_price_is_invalid_with_a_budget() {
        let folder = folder("price");
        let path = folder.join("requests.jsonl");
        std::fs::write(&path, "{\"body\":{\"model\":\"m\"}}\n").unwrap();
        let bad = Arc::new(BadLines::new(folder.join("errors.jsonl"), &path));
        assert!(requests(&path, true, &bad).next().is_none());
        assert_eq!(bad.count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
