//! The command line of a soak.

/// The default of `--times`.
const TIMES: u64 = 20;

/// The default of `--load`.
const LOAD: usize = 8;

/// The default of `--jobs`. Concurrent tests add to the load.
const JOBS: usize = 4;

/// The maximum of `--load`.
const LOAD_MAX: usize = 1_000;

/// The options of a soak.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) times: u64,
    pub(super) load: usize,
    pub(super) jobs: usize,
    /// Part of the name of the binaries to run.
    pub(super) only: Option<String>,
    pub(super) list: bool,
}

impl Options {
    /// Parses the arguments; the error says what is wrong.
    pub(super) fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options { times: TIMES, load: LOAD, jobs: JOBS, only: None, list: false };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--list" => options.list = true,
                "--only" => options.only = Some(value()?.clone()),
                "--times" => options.times = number(word, value()?)?,
                "--load" => options.load = number(word, value()?)?,
                "--jobs" => options.jobs = number(word, value()?)?,
                other => {
                    return Err(format!(
                        "soak does not understand `{other}`; it takes --times N, --load N, --jobs N, --only PATTERN and --list"
                    ));
                }
            }
        }
        match options {
            Options { times: 0, .. } => Err("--times wants at least 1".to_owned()),
            Options { jobs: 0, .. } => Err("--jobs wants at least 1".to_owned()),
            Options { load, .. } if load > LOAD_MAX => Err(format!("--load is at most {LOAD_MAX}")),
            options => Ok(options),
        }
    }
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option} needs a number, but {text:?} is not one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        Options::parse(&words)
    }

    #[test]
    fn every_option_is_parsed_and_has_a_default() {
        assert_eq!(parse(""), Ok(Options { times: 20, load: 8, jobs: 4, only: None, list: false }));
        let only = Some("cli/".to_owned());
        let expected = Options { times: 3, load: 0, jobs: 2, only, list: true };
        assert_eq!(parse("--list --times 3 --only cli/ --load 0 --jobs 2"), Ok(expected));
    }

    #[test]
    fn an_invalid_option_is_an_error_that_names_it() {
        for (line, said) in [
            ("--times", "needs a value"),
            ("--times many", "\"many\" is not one"),
            ("--times 0", "at least 1"),
            ("--jobs 0", "at least 1"),
            ("--load -1", "\"-1\" is not one"),
            ("--load 100000", "at most 1000"),
            ("now", "`now`"),
        ] {
            let why = parse(line).unwrap_err();
            assert!(why.contains(said), "{line}: {why}");
        }
    }
}
