//! The settings of the function, from its environment.

use std::path::PathBuf;

use anyhow::{Result, bail};
use tollgate_core::Span;
use tollgate_store::usage::UsageRetention;

/// The table, the archive of its audit events, and the retention of usage.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LambdaSettings {
    pub(crate) table: String,
    /// The endpoint of DynamoDB, if it is an emulator.
    pub(crate) endpoint: Option<String>,
    pub(crate) archive: Option<ArchiveAt>,
    pub(crate) usage_retention: Option<UsageRetention>,
}

/// Where audit events are archived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArchiveAt {
    Folder(PathBuf),
    S3 { bucket: String, prefix: String },
}

impl LambdaSettings {
    /// Reads `TOLLGATE_TABLE`; `TOLLGATE_ARCHIVE`: `s3://BUCKET`, `s3://BUCKET/PREFIX`, or a
    /// folder; and `TOLLGATE_USAGE_RETENTION`: days such as `90d`, or `forever`, once for all
    /// windows or three times with commas for hours, days and months. Region and credentials are
    /// those of the function.
    ///
    /// # Errors
    ///
    /// A missing or invalid variable.
    pub(crate) fn resolve(variable: &dyn Fn(&str) -> Option<String>) -> Result<LambdaSettings> {
        let get = |name: &str| variable(name).filter(|value| !value.is_empty());
        let Some(table) = get("TOLLGATE_TABLE") else {
            bail!("TOLLGATE_TABLE is not set; it names the table")
        };
        let endpoint = get("AWS_ENDPOINT_URL_DYNAMODB").or_else(|| get("AWS_ENDPOINT_URL"));
        let archive = get("TOLLGATE_ARCHIVE").map(|archive| ArchiveAt::parse(&archive)).transpose()?;
        let usage_retention =
            get("TOLLGATE_USAGE_RETENTION").map(|text| usage_retention(&text)).transpose()?;
        Ok(LambdaSettings { table, endpoint, archive, usage_retention })
    }
}

fn usage_retention(text: &str) -> Result<UsageRetention> {
    let span = |text: &str| match text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok()) {
        Some(days) if days > 0 => Some(Some(Span::from_secs(days.saturating_mul(86_400)))),
        None if text == "forever" => Some(None),
        _ => None,
    };
    let spans: Option<Vec<Option<Span>>> = text.split(',').map(span).collect();
    match spans.as_deref() {
        Some([all]) => Ok(UsageRetention::uniform(*all)),
        Some([hours, days, months]) => Ok(UsageRetention::new(*hours, *days, *months)),
        _ => bail!(
            "TOLLGATE_USAGE_RETENTION is {text:?}; write it like 90d or forever, or like 90d,400d,forever for hours, \
             days and months"
        ),
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

    fn resolve(variables: &[(&str, &str)]) -> Result<LambdaSettings> {
        let get =
            |name: &str| variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned());
        LambdaSettings::resolve(&get)
    }

    #[test]
    fn a_table_is_needed_and_an_archive_is_not() {
        assert!(resolve(&[]).unwrap_err().to_string().contains("TOLLGATE_TABLE"));
        let settings = resolve(&[("TOLLGATE_TABLE", "limits"), ("TOLLGATE_ARCHIVE", "")]).unwrap();
        let (endpoint, archive, usage_retention) = (None, None, None);
        assert_eq!(settings, LambdaSettings { table: "limits".into(), endpoint, archive, usage_retention });
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

    #[test]
    fn usage_is_kept_for_days_or_forever() {
        let days = |count: u64| Some(Span::from_secs(count * 86_400));
        assert_eq!(usage_retention("100d").unwrap(), UsageRetention::uniform(days(100)));
        let three = UsageRetention::new(days(90), days(400), None);
        assert_eq!(usage_retention("90d,400d,forever").unwrap(), three);
        for text in ["90", "0d", "90h", "90d,400d", "90d,,1d", "never"] {
            assert!(usage_retention(text).unwrap_err().to_string().contains("90d,400d,forever"), "{text}");
        }
        let retention = resolve(&[("TOLLGATE_TABLE", "limits"), ("TOLLGATE_USAGE_RETENTION", "forever")]);
        assert_eq!(retention.unwrap().usage_retention, Some(UsageRetention::FOREVER));
    }
}
