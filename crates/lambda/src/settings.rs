//! What the function is told by its environment.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// Which table, and where its audit events are archived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) table: String,
    /// Where AWS is, if it is an emulator.
    pub(crate) endpoint: Option<String>,
    pub(crate) archive: Option<ArchiveAt>,
}

/// Where audit events are archived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArchiveAt {
    Folder(PathBuf),
    S3 { bucket: String, prefix: String },
}

impl Settings {
    /// `TOLLGATE_TABLE`, and `TOLLGATE_ARCHIVE`: `s3://BUCKET`, `s3://BUCKET/PREFIX`, or a folder. Region and credentials
    /// are those of the function.
    ///
    /// # Errors
    ///
    /// What is missing or not valid.
    pub(crate) fn resolve(variable: &dyn Fn(&str) -> Option<String>) -> Result<Settings> {
        let get = |name: &str| variable(name).filter(|value| !value.is_empty());
        let Some(table) = get("TOLLGATE_TABLE") else {
            bail!("TOLLGATE_TABLE is not set; it names the table")
        };
        let endpoint = get("AWS_ENDPOINT_URL_DYNAMODB").or_else(|| get("AWS_ENDPOINT_URL"));
        let archive = get("TOLLGATE_ARCHIVE").map(|archive| ArchiveAt::parse(&archive)).transpose()?;
        Ok(Settings { table, endpoint, archive })
    }
}

impl ArchiveAt {
    fn parse(text: &str) -> Result<ArchiveAt> {
        let Some(rest) = text.strip_prefix("s3://") else { return Ok(ArchiveAt::Folder(text.into())) };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            bail!("TOLLGATE_ARCHIVE is {text:?}, which names no bucket; write it like s3://bucket/prefix");
        }
        Ok(ArchiveAt::S3 { bucket: bucket.into(), prefix: prefix.trim_matches('/').into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(variables: &[(&str, &str)]) -> Result<Settings> {
        let get =
            |name: &str| variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned());
        Settings::resolve(&get)
    }

    #[test]
    fn a_table_is_needed_and_an_archive_is_not() {
        assert!(resolve(&[]).unwrap_err().to_string().contains("TOLLGATE_TABLE"));
        let settings = resolve(&[("TOLLGATE_TABLE", "limits"), ("TOLLGATE_ARCHIVE", "")]).unwrap();
        assert_eq!(settings, Settings { table: "limits".into(), endpoint: None, archive: None });
    }

    #[test]
    fn an_archive_is_a_folder_or_a_bucket() {
        let archive = |text: &str| {
            resolve(&[("TOLLGATE_TABLE", "limits"), ("TOLLGATE_ARCHIVE", text)]).map(|it| it.archive.unwrap())
        };
        let s3 = |bucket: &str, prefix: &str| ArchiveAt::S3 { bucket: bucket.into(), prefix: prefix.into() };
        assert_eq!(archive("s3://logs").unwrap(), s3("logs", ""));
        assert_eq!(archive("s3://logs/tollgate/prod/").unwrap(), s3("logs", "tollgate/prod"));
        assert_eq!(archive("/mnt/logs").unwrap(), ArchiveAt::Folder("/mnt/logs".into()));
        assert!(archive("s3://").is_err());
    }
}
