//! Every crate is described at the top of its code, in its manifest, and in ARCHITECTURE.md.

use super::{Violation, manifest};
use crate::metadata::Member;

/// Checks the three places, given a way to read a file of the repository.
pub(crate) fn check<'a>(
    member: &Member,
    manifest: &str,
    text: &impl Fn(&str) -> Option<&'a str>,
) -> Vec<Violation> {
    let directory = member.manifest.trim_end_matches("Cargo.toml");
    let roots = [format!("{directory}src/lib.rs"), format!("{directory}src/main.rs")];
    let mut found: Vec<Violation> = roots.iter().filter_map(|path| undocumented(path, text(path)?)).collect();
    if roots.iter().all(|path| text(path).is_none()) {
        found.push(Violation::new(
            &member.manifest,
            1,
            "the crate has neither src/lib.rs nor src/main.rs, add one",
        ));
    }
    found.extend(undescribed(member, manifest));
    // A missing page is reported by the rule about required files.
    found.extend(text("ARCHITECTURE.md").and_then(|page| unmentioned(member, page)));
    found
}

fn undocumented(path: &str, code: &str) -> Option<Violation> {
    let first = code.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let page = first.strip_prefix("//!").map(str::trim).unwrap_or_default();
    is_placeholder(page).then(|| {
        Violation::new(path, 1, "no page at the top of the crate, start with `//!` and what the crate is")
    })
}

fn undescribed(member: &Member, text: &str) -> Option<Violation> {
    let line =
        manifest::entries(text).iter().find(|entry| entry.key == "description").map_or(1, |entry| entry.line);
    is_placeholder(&member.description).then(|| {
        Violation::new(&member.manifest, line, "no real description, say in one line what the crate is for")
    })
}

fn unmentioned(member: &Member, page: &str) -> Option<Violation> {
    let named = page.match_indices(&member.name).any(|(at, name)| {
        let before = page[..at].chars().next_back();
        let after = page[at + name.len()..].chars().next();
        !before.is_some_and(continues_name) && !after.is_some_and(continues_name)
    });
    let message = || format!("{} is not mentioned, describe the crate", member.name);
    (!named).then(|| Violation::new("ARCHITECTURE.md", 1, message()))
}

/// Returns whether a page mentions a crate. A hyphen continues a name: tollgate-core does not mention tollgate.
fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

fn is_placeholder(text: &str) -> bool {
    let text = text.to_lowercase();
    let fillers = ["placeholder", "tbd", "fixme", "lorem ipsum"];
    text.is_empty() || fillers.iter().any(|filler| text.starts_with(filler))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: Option<&'static str>, description: &str, page: Option<&'static str>) -> Vec<String> {
        let member = Member {
            name: "tollgate".to_owned(),
            description: description.to_owned(),
            manifest: "crates/tollgate/Cargo.toml".to_owned(),
            ..Member::default()
        };
        let text = |path: &str| match path {
            "crates/tollgate/src/lib.rs" => code,
            "ARCHITECTURE.md" => page,
            _ => None,
        };
        let manifest = "[package]\nname = \"tollgate\"\ndescription = \"\"\n";
        check(&member, manifest, &text).iter().map(ToString::to_string).collect()
    }

    const CODE: Option<&str> = Some("//! Limits.\n");
    const PAGE: Option<&str> = Some("The crate `tollgate` is what people import.\n");

    #[test]
    fn a_crate_that_explains_itself_passes() {
        assert_eq!(found(CODE, "An exact limiter", PAGE), [""; 0]);
        assert_eq!(found(CODE, "An exact limiter", None), [""; 0]);
    }

    #[test]
    fn a_missing_or_placeholder_page_is_caught() {
        for code in [Some("mod limit;\n//! Late.\n"), Some("//! Placeholder.\n"), Some(""), None] {
            assert_eq!(found(code, "An exact limiter", PAGE).len(), 1, "{code:?}");
        }
    }

    #[test]
    fn a_placeholder_description_is_caught_on_its_line() {
        assert!(found(CODE, "placeholder", PAGE)[0].starts_with("crates/tollgate/Cargo.toml:3: "));
        assert_eq!(found(CODE, "", PAGE).len(), 1);
    }

    #[test]
    fn a_longer_name_is_no_mention() {
        assert_eq!(found(CODE, "An exact limiter", Some("tollgate-core, my_tollgate\n")).len(), 1);
    }
}
