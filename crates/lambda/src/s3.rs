//! An archive in an S3 bucket.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata};
use aws_sdk_s3::primitives::ByteStream;
use tollgate_dynamo::aggregate::{Archive, ArchiveError};
use tollgate_store::Reply;

/// A bucket, and the prefix of the names in it.
pub(crate) struct S3 {
    client: Client,
    bucket: String,
    prefix: String,
}

impl S3 {
    pub(crate) async fn open(bucket: &str, prefix: &str) -> S3 {
        let config = aws_config::defaults(aws_config::BehaviorVersion::latest()).load().await;
        // An emulator has no host names for its buckets.
        let is_emulated = config.endpoint_url().is_some();
        let config = aws_sdk_s3::config::Builder::from(&config).force_path_style(is_emulated);
        let client = Client::from_conf(config.build());
        S3 { client, bucket: bucket.into(), prefix: prefix.into() }
    }

    fn key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.into() } else { format!("{}/{name}", self.prefix) }
    }
}

impl Archive for S3 {
    fn put<'a>(&'a self, name: &'a str, contents: Vec<u8>) -> Reply<'a, Result<(), ArchiveError>> {
        let key = self.key(name);
        Reply::later(async move {
            let put = self.client.put_object().bucket(&self.bucket).key(&key);
            let put = put.content_type("application/x-ndjson").content_encoding("gzip");
            match put.body(ByteStream::from(contents)).send().await {
                Ok(_) => Ok(()),
                Err(error) => {
                    let why = error.message().map(str::to_owned);
                    let why = why.unwrap_or_else(|| DisplayErrorContext(&error).to_string());
                    Err(ArchiveError(format!("s3://{}/{key}", self.bucket), why))
                }
            }
        })
    }
}
