//! `tollgate token`: the secret that seals tickets.

use anyhow::Result;
use serde::Serialize;

use crate::args::TokenCommand;
use crate::context::Context;
use crate::output::{Answer, Output, TextPage};
use crate::views::action_label;

/// Runs a command for the secret.
pub(super) fn run(context: &Context, command: TokenCommand) -> Result<Output> {
    match command {
        TokenCommand::RotateSecret => rotate_secret(context),
    }
}

fn rotate_secret(context: &Context) -> Result<Output> {
    // Fails if the namespace does not exist, because its name may be a typo.
    context.catalog()?;
    let version = context.change(|catalog| Ok(catalog.rotate_secret().wait()?))?;
    let namespace = context.settings.namespace.value.clone();
    Ok(Output::new(RotateAnswer { dry_run: context.dry_run, namespace, version }))
}

#[derive(Serialize)]
struct RotateAnswer {
    dry_run: bool,
    namespace: String,
    version: u64,
}

impl Answer for RotateAnswer {
    fn text(&self, page: &mut TextPage) {
        let RotateAnswer { dry_run, namespace, version } = self;
        let action = action_label(*dry_run, "rotated", "rotate");
        page.line(format_args!("{action} the secret of namespace {namespace}, to version {version}"));
        page.remark("tickets sealed with the previous secret stay valid until the next rotation; older ones are refused");
    }
}
