//! `tollgate config`: shows the settings and their sources.

use anyhow::Result;
use serde::Serialize;

use crate::args::ConfigCommand;
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable};
use crate::settings::SettingSource;

/// Shows the settings.
pub(super) fn run(context: &Context, command: ConfigCommand) -> Result<Output> {
    let ConfigCommand::Show { sources } = command;
    let settings = context.settings.rows()?.map(|(key, value, source)| SettingView {
        key: key.name,
        value,
        source: SourceName::of(source),
        from: source.to_string(),
    });
    let config = context.settings.config.as_ref();
    Ok(Output::new(Shown {
        settings: settings.into(),
        config_file: config.map(|(path, _)| path.display().to_string()),
        config_file_exists: config.is_some_and(|(_, exists)| *exists),
        sources,
    }))
}

#[derive(Serialize)]
struct Shown {
    settings: Vec<SettingView>,
    config_file: Option<String>,
    config_file_exists: bool,
    #[serde(skip)]
    sources: bool,
}

#[derive(Serialize)]
struct SettingView {
    key: &'static str,
    value: String,
    source: SourceName,
    from: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum SourceName {
    Flag,
    Environment,
    File,
    Default,
}

impl SourceName {
    fn of(source: &SettingSource) -> SourceName {
        match source {
            SettingSource::Flag(_) => SourceName::Flag,
            SettingSource::Environment(_) => SourceName::Environment,
            SettingSource::File(_) => SourceName::File,
            SettingSource::Default => SourceName::Default,
        }
    }
}

impl Answer for Shown {
    fn text(&self, page: &mut TextPage) {
        let mut table = TextTable::new(["SETTING", "SOURCE", "VALUE"]).hide_empty(1).wrap(2);
        for SettingView { key, value, source, from } in &self.settings {
            // The path of the file is long, and is shown below.
            let source = match (self.sources, source) {
                (false, _) => "",
                (true, SourceName::File) => "config file",
                (true, _) => from,
            };
            table.row([TableCell::name(key), TableCell::from(source), value.into()]);
        }
        page.table(&table);
        if let (true, Some(path)) = (self.sources, &self.config_file) {
            page.gap();
            let state = if self.config_file_exists { "" } else { " (does not exist)" };
            page.line(format!("config file: {path}{state}"));
        }
    }
}
