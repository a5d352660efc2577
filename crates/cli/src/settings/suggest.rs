//! Suggestions for mistyped names.

/// One letter in so many may be wrong.
const WRONG_PER_LETTERS: usize = 3;

/// Returns the candidate that is nearest to a word, if one is near.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let far = |candidate: &&str| distance(word, candidate);
    let best = candidates.iter().copied().min_by_key(far)?;
    (distance(word, best) <= best.len().div_ceil(WRONG_PER_LETTERS)).then_some(best)
}

/// Returns the Levenshtein distance of two words.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in two.iter().enumerate() {
            let exchanged = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_near_and_another_word_is_not() {
        let names = ["store", "namespace", "store_timeout"];
        assert_eq!(nearest("stor", &names), Some("store"));
        assert_eq!(nearest("store-timeout", &names), Some("store_timeout"));
        assert_eq!(nearest("Namespaces", &names), Some("namespace"));
        assert_eq!(nearest("rpm", &names), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
