//! `tollgate man`.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::CommandFactory;
use clap_mangen::Man;
use serde::Serialize;

use crate::args::{Cli, ManArgs};
use crate::atomic_write::write_atomically;
use crate::context::Context;
use crate::exit::{Exit, UsageError};
use crate::output::{Answer, Format, Output, TextPage};
use crate::views::action_label;

/// Shows a page of the manual, or writes all pages to a directory.
pub(in crate::commands) fn man(context: &Context, args: &ManArgs) -> Result<Output> {
    let mut root = Cli::command();
    root.build();
    match &args.folder {
        Some(folder) => write_all(context, &root, folder),
        None => {
            let command = find(&root, &args.command)?;
            let answer = PageAnswer { name: title(command), page: page(command)? };
            if context.format == Format::Text && io::stdout().is_terminal() {
                return show(&answer);
            }
            Ok(Output::new(answer))
        }
    }
}

fn find<'a>(root: &'a clap::Command, words: &[String]) -> Result<&'a clap::Command> {
    let mut command = root;
    for word in words {
        command = command.find_subcommand(word).ok_or_else(|| {
            let there: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let valid = if there.is_empty() {
                "it has none".into()
            } else {
                format!("valid are {}", there.join(", "))
            };
            UsageError(format!(
                "{:?} is not a command of `{}`; {valid}",
                word,
                title(command).replace('-', " ")
            ))
        })?;
    }
    Ok(command)
}

fn title(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &clap::Command) -> Result<String> {
    let mut page = Vec::new();
    // A subcommand has no version of its own, and its page would have none.
    let source = format!("tollgate {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(source).render(&mut page).context("the manual cannot be written")?;
    String::from_utf8(page).context("the manual is not UTF-8")
}

/// Shows a page with man(1), because its source is unreadable on a terminal.
fn show(answer: &PageAnswer) -> Result<Output> {
    // Every man(1) takes a name with a slash for a file; not every one reads from stdin.
    let path = std::env::temp_dir().join(format!("{}.{}.1", answer.name, std::process::id()));
    // An existing file may be a link of another user, so it is not overwritten.
    let written = File::create_new(&path).and_then(|mut file| file.write_all(answer.page.as_bytes()));
    written.with_context(|| format!("{} cannot be written", path.display()))?;
    let shown = Command::new("man").arg(&path).status();
    // An error is ignored: the system cleans its directory for temporary files.
    let _ = std::fs::remove_file(&path);
    match shown {
        Ok(status) if status.success() => Ok(Output::silent(Exit::OK)),
        Ok(_) => Ok(Output::silent(Exit::FAILURE)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Err(UsageError(format!(
            "there is no man(1) to show the page on a terminal; write the page to a file (> {}.1), or read --help",
            answer.name
        ))
        .into()),
        Err(why) => Err(why).context("man(1) cannot be run"),
    }
}

fn write_all(context: &Context, root: &clap::Command, folder: &Path) -> Result<Output> {
    if !context.dry_run {
        let failed = || format!("the directory {} cannot be created", folder.display());
        std::fs::create_dir_all(folder).with_context(failed)?;
    }
    let mut files = Vec::new();
    let mut open = vec![root];
    while let Some(command) = open.pop() {
        let name = format!("{}.1", title(command));
        if !context.dry_run {
            let path = folder.join(&name);
            write_atomically(&path, &page(command)?)
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        files.push(name);
        open.extend(command.get_subcommands().filter(|below| !below.is_hide_set()));
    }
    files.sort();
    Ok(Output::new(FolderAnswer { dry_run: context.dry_run, folder: folder.display().to_string(), files }))
}

#[derive(Serialize)]
struct PageAnswer {
    name: String,
    page: String,
}

#[derive(Serialize)]
struct FolderAnswer {
    dry_run: bool,
    folder: String,
    files: Vec<String>,
}

impl Answer for PageAnswer {
    fn text(&self, page: &mut TextPage) {
        page.verbatim(self.page.trim_end());
    }
}

impl Answer for FolderAnswer {
    fn text(&self, page: &mut TextPage) {
        let action = action_label(self.dry_run, "wrote", "write");
        page.line(format_args!("{action} {} pages to {}", self.files.len(), self.folder));
    }
}
