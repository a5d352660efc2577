use std::borrow::Cow;

/// The replacement of a password.
const HIDDEN: &str = "***";

/// Replaces the passwords of URLs in a text: `redis://me:***@host`. A line is hidden up to its last `@`, because a
/// password that is not percent-encoded may contain any character.
///
/// # Examples
///
/// ```
/// let message = "redis://me:secret@cache.example did not answer";
/// assert_eq!(tollgate_open::redacted(message), "redis://me:***@cache.example did not answer");
/// ```
pub fn redacted(text: &str) -> Cow<'_, str> {
    if !text.contains("://") || !text.contains('@') {
        return text.into();
    }
    text.split_inclusive('\n').map(redacted_line).collect::<String>().into()
}

fn redacted_line(line: &str) -> Cow<'_, str> {
    let hidden = || {
        let user = line.find("://")? + "://".len();
        let host = line.rfind('@').filter(|at| *at > user)?;
        let password = user + line.get(user..host)?.find(':')? + 1;
        Some(format!("{}{HIDDEN}{}", &line[..password], &line[host..]))
    };
    hidden().map_or(line.into(), Cow::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_hidden_and_nothing_else() {
        for (text, shown) in [
            ("redis://me:hunter2@host:6379/0", "redis://me:***@host:6379/0"),
            ("redis://:hunter2@host", "redis://:***@host"),
            ("store = \"redis://me:hun@ter/2@host\"", "store = \"redis://me:***@host\""),
            ("one\nredis://me:hun\"ter 2@host\nme@host", "one\nredis://me:***@host\nme@host"),
            ("redis://me@host:6379", "redis://me@host:6379"),
            ("https://host:80/a", "https://host:80/a"),
            ("a:b@c", "a:b@c"),
            ("@://", "@://"),
            ("", ""),
        ] {
            assert_eq!(redacted(text), shown);
        }
    }
}
