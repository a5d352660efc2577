//! Token estimates from the characters of a text.
//!
//! Vocabularies have whole words of English, pieces of words of other alphabets, and about one
//! token for each character of Chinese. So each character has the average weight of its script,
//! rounded up a little; the statistics correct the rest.

/// The weight of a token; weights are in hundredths of a token.
const TOKEN: u64 = 100;

/// Returns the estimated tokens of a text, rounded up.
pub(crate) fn tokens(text: &str) -> u64 {
    let weight = text.chars().map(weight).fold(0_u64, u64::saturating_add);
    weight.div_ceil(TOKEN)
}

/// Returns the weight of a character.
fn weight(c: char) -> u64 {
    match c {
        ' ' | 'a'..='z' | 'A'..='Z' => 25,
        '0'..='9' => 40,
        '\n' | '\r' | '\t' => 35,
        '\0'..='\u{7f}' => 60,
        // Latin with diacritics, Greek, Cyrillic, Armenian, Georgian.
        '\u{80}'..='\u{58f}' | '\u{10a0}'..='\u{10ff}' | '\u{1e00}'..='\u{1fff}' => 45,
        // Punctuation and symbols that occur in any script.
        '\u{2000}'..='\u{2bff}' => 100,
        // Kana, Hangul and ideographs.
        '\u{1100}'..='\u{11ff}'
        | '\u{3000}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{ffef}' => 110,
        // Hebrew, Arabic, the scripts of India, Thai and related ones.
        '\u{590}'..='\u{1fff}' => 70,
        // Everything else is encoded as bytes: symbols, rare ideographs, private use.
        _ => 300,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_has_its_weight() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("a"), 1);
        assert_eq!(tokens(&"word ".repeat(400)), 500);
        assert_eq!(tokens("速率限制"), 5);
        assert!(tokens("ограничение скорости") > tokens("a limit of the speed"));
        assert!(tokens("{\"a\":[1,2,3]}") > tokens("a list of num"));
    }
}
