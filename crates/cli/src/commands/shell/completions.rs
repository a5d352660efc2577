//! `tollgate completions`.

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::args::CompletionsArgs;
use crate::completion;
use crate::output::{Answer, Output, TextPage};

/// Prints the completion script of a shell.
pub(in crate::commands) fn completions(args: CompletionsArgs) -> Result<Output> {
    let shell = args.shell.to_string();
    let script = completion::script(&shell).with_context(|| format!("{shell} has no completion script"))?;
    Ok(Output::new(CompletionsAnswer { shell, script }))
}

#[derive(Serialize)]
struct CompletionsAnswer {
    shell: String,
    script: String,
}

impl Answer for CompletionsAnswer {
    fn text(&self, page: &mut TextPage) {
        page.verbatim(self.script.trim());
    }
}
