//! `tollgate completions`.

use anyhow::{Context as _, Result};
use clap::CommandFactory;
use serde::Serialize;

use crate::args::{Cli, CompletionsArgs};
use crate::output::{Answer, Output, TextPage};

/// Prints the completion script of a shell.
pub(in crate::commands) fn completions(args: CompletionsArgs) -> Result<Output> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tollgate", &mut script);
    let script = String::from_utf8(script).context("the completions are not UTF-8")?;
    Ok(Output::new(CompletionsAnswer { shell: args.shell.to_string(), script }))
}

#[derive(Serialize)]
struct CompletionsAnswer {
    shell: String,
    script: String,
}

impl Answer for CompletionsAnswer {
    fn text(&self, page: &mut TextPage) {
        page.line(self.script.trim_end());
    }
}
