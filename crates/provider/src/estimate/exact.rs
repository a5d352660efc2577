//! Exact token counts with the vocabularies of OpenAI's models, which `tiktoken-rs` contains.

use tiktoken_rs::tokenizer::get_tokenizer;
use tiktoken_rs::{CoreBPE, bpe_for_tokenizer};

use super::{TokenCounter, script};

/// The maximum size of a piece of text that is counted at once. A piece ends before a space if
/// possible, where tokens end; elsewhere the split may add a token. Without the bound, the regular
/// expression that splits text into words gives up on a word of a million letters.
const PIECE_MAX: usize = 8 << 10;

/// The maximum size of a text that is counted. Longer texts are estimated, because counting them
/// takes too long.
const TEXT_MAX: usize = 4 << 20;

/// Returns a counter for a model, if its vocabulary is known.
pub(super) fn counter(model: &str) -> Option<TokenCounter> {
    // Routers write `openai/gpt-4o`.
    let model = model.rsplit('/').next().unwrap_or(model);
    let vocabulary = bpe_for_tokenizer(get_tokenizer(model)?).ok()?;
    Some(Box::new(move |text| count(vocabulary, text)))
}

fn count(vocabulary: &CoreBPE, text: &str) -> u64 {
    if text.len() > TEXT_MAX {
        return script::tokens(text);
    }
    let mut rest = text;
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(piece_len(rest));
        sum = sum.saturating_add(u64::try_from(vocabulary.count_ordinary(piece)).unwrap_or(u64::MAX));
        rest = tail;
    }
    sum
}

fn piece_len(text: &str) -> usize {
    if text.len() <= PIECE_MAX {
        return text.len();
    }
    let end = text.floor_char_boundary(PIECE_MAX);
    let bytes = text.as_bytes();
    let between_words = |at: &usize| {
        bytes[*at] == b' ' && bytes[at - 1].is_ascii_alphabetic() && bytes[at + 1].is_ascii_alphabetic()
    };
    (end / 2..end).rev().find(between_words).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_of_a_known_model_are_exact() {
        let count = counter("gpt-4o").unwrap();
        assert_eq!(count("hello world"), 2);
        assert_eq!(count(""), 0);
        assert_eq!(counter("openai/gpt-4o-mini").unwrap()("hello world"), 2);
        assert!(counter("claude-sonnet-4-5").is_none());
    }

    #[test]
    fn counting_in_pieces_equals_counting_the_whole() {
        let text = "The quick brown fox jumps over the lazy dog, twice. ".repeat(1_000);
        let vocabulary = bpe_for_tokenizer(get_tokenizer("gpt-4o").unwrap()).unwrap();
        assert_eq!(count(vocabulary, &text), vocabulary.count_ordinary(&text) as u64);
    }

    #[test]
    fn texts_without_word_boundaries_are_counted() {
        let count = counter("gpt-4o").unwrap();
        for text in [" ", "a", "\n", "\u{3000}", "\t \n", "'", "9", "é", "速", "\u{300}", "A'"] {
            assert!(count(&text.repeat(20_000)) > 0, "{text:?}");
        }
    }

    #[test]
    fn an_estimate_from_characters_is_at_least_nine_tenths_and_at_most_twice_the_count() {
        let texts = [
            "A rate limiter decides who may call an expensive service now, who has to wait, and who is refused.",
            "Ein Begrenzer entscheidet, wer einen teuren Dienst jetzt aufrufen darf, wer wartet und wer abgewiesen wird.",
            "限流器决定谁现在可以调用昂贵的服务，谁需要等待，谁会被拒绝。",
            "レート制限は、誰が今すぐ高価なサービスを呼び出せるかを決めます。",
            "Ограничитель решает, кто может сейчас обратиться к дорогому сервису, а кто подождёт.",
            "fn take(limit: &Limit, state: State, now: Tick) -> (State, Verdict) { refill(limit, state, now) }",
            r#"{"name":"rpm","capacity":1000,"window":60,"tags":["a","b"],"nested":{"x":1.5,"y":null}}"#,
        ];
        let count = counter("gpt-4o").unwrap();
        for text in texts {
            let (exact, estimate) = (count(text), script::tokens(text));
            assert!(estimate * 100 >= exact * 90 && estimate <= exact * 2, "{estimate} for {exact}: {text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_counted(text in any::<String>(), times in 1..100_usize) {
            let count = counter("gpt-4").unwrap();
            prop_assert!(count(&text.repeat(times)) <= (text.len() * times) as u64);
        }
    }
}
