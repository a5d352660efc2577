//! Fuzzing of URLs.

use crate::StoreUrl;

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

/// Parses a URL. An accepted URL is equal to that of its own text.
///
/// # Panics
///
/// If that is not so.
pub fn url(data: &[u8]) {
    let Ok(url) = String::from_utf8_lossy(data).parse::<StoreUrl>() else { return };
    let again = url.with_password().parse::<StoreUrl>();
    assert_eq!(again.as_ref(), Ok(&url), "{}", url.with_password());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_the_url_of_a_store_or_an_error() {
        driver::run(
            url,
            &[
                b"memory",
                b"file:limits.db",
                b"shm:limits",
                b"redis+sentinel://me:secret@a,b/main?prefix=a&prefetch=5",
                b"dynamodb:limits?region=eu-west-1&create=true&chains=transaction&prefetch=5",
            ],
        );
    }
}
