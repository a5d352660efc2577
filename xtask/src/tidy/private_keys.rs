//! No private key in the tree: tests make the keys they need.

use super::Violation;

/// The first line of a key in PEM, of any algorithm, has this behind `BEGIN`.
const MARK: &str = concat!("PRIVATE", " KEY-----");

/// Endings of files that hold keys.
const ENDINGS: [&str; 4] = [".key", ".p12", ".pfx", ".ppk"];

/// Finds keys by the name of the file, and in its text.
pub(crate) fn check(path: &str, text: &str) -> Option<Violation> {
    let marked = text.lines().position(|line| line.contains("-----BEGIN ") && line.contains(MARK));
    let line = if ENDINGS.iter().any(|ending| path.ends_with(ending)) { Some(0) } else { marked }?;
    Some(Violation::new(path, line + 1, "a private key, make one when the test runs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_caught_by_its_name_and_by_its_text() {
        let key = |kind: &str| format!("text\n-----BEGIN {kind}{MARK}\nMII\n-----END {kind}{MARK}\n");
        for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
            assert_eq!(check("tests/server.pem", &key(kind)).unwrap().line, 2, "{kind}");
            assert_eq!(
                check("src/lib.rs", &format!("const KEY: &str = \"{}\";", key(kind))).unwrap().line,
                2
            );
        }
        assert!(check("tests/server.key", "\u{1}").is_some());
    }

    #[test]
    fn a_certificate_and_a_page_about_keys_pass() {
        assert!(check("ca.pem", "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n").is_none());
        assert!(check("docs/page.md", "The private key is made by the test.\n").is_none());
    }
}
