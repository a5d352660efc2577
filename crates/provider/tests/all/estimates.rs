//! Estimates before a call, and what is learned after it.

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_provider::{Estimator, MODELS_MAX, Tokens};

fn chat(model: &str, words: usize, max_tokens: Option<u64>) -> Value {
    let mut request =
        json!({"model": model, "messages": [{"role": "user", "content": "word ".repeat(words)}]});
    if let Some(max) = max_tokens {
        request["max_tokens"] = max.into();
    }
    request
}

#[test]
fn before_anything_is_learned_the_estimate_is_the_count_and_the_maximum_output() {
    let estimator = Estimator::new();
    let estimate = estimator.estimate(&chat("m", 400, Some(64)));
    assert_eq!((estimate.input, estimate.output, estimate.output_max), (507, 64, Some(64)));
    assert_eq!((estimate.total(), estimate.total_max()), (571, 571));
    assert_eq!(estimator.estimate(&chat("m", 400, None)).output, 500);
}

#[test]
fn a_model_that_uses_twice_the_count_is_estimated_at_twice_the_count() {
    let estimator = Estimator::new();
    for words in 1..=100 {
        let estimate = estimator.estimate(&chat("heavy", words, Some(4_000)));
        let counted = Estimator::new().estimate(&chat("heavy", words, None)).input;
        estimator.learn(&estimate, Tokens::new(2 * counted, 100));
    }
    let estimate = estimator.estimate(&chat("heavy", 400, Some(4_000)));
    // The histogram is exact to one part in sixteen, and never too low.
    assert!((2 * 507..=2 * 507 * 17 / 16).contains(&estimate.input), "{estimate:?}");
    assert!((100..=106).contains(&estimate.output), "{estimate:?}");
    assert_eq!(estimate.output_max, Some(4_000));
    assert_eq!(estimator.estimate(&chat("heavy", 400, Some(50))).output, 50, "at most the maximum");
    assert_eq!(estimator.estimate(&chat("light", 400, Some(64))).input, 507, "other models are unaffected");
}

#[test]
fn an_estimate_covers_the_configured_share_of_calls() {
    let covered = |permille: u16| {
        let estimator = Estimator::new().covering(permille);
        let mut high_enough = 0;
        for call in 0..2_000_u64 {
            let estimate = estimator.estimate(&chat("m", 40, None));
            // The usage is spread evenly from half to one and a half of the count, in a scattered
            // order.
            let used = Tokens::new(28 + call * 31 % 58, 1 + call * 7 % 100);
            high_enough += u64::from(call >= 1_000 && estimate.input >= used.input);
            estimator.learn(&estimate, used);
        }
        high_enough
    };
    let (half, most) = (covered(500), covered(950));
    assert!((480..=600).contains(&half), "{half}");
    assert!((930..=1_000).contains(&most), "{most}");
}

#[test]
fn waste_and_overshoot_are_counted_separately() {
    let estimator = Estimator::new();
    let estimate = estimator.estimate(&chat("m", 400, Some(64)));
    estimator.learn(&estimate, Tokens::new(500, 20));
    estimator.learn(&estimate, Tokens::new(600, 64));
    let accuracy = estimator.accuracy();
    assert_eq!((accuracy.calls, accuracy.estimated, accuracy.used), (2, 1_142, 1_184));
    assert_eq!((accuracy.wasted, accuracy.overshot, accuracy.overshot_calls), (51, 93, 1));
    assert_eq!(estimator.accuracy_by_model(), [("m".to_owned(), accuracy)]);
}

#[test]
fn models_beyond_the_bound_share_one_entry() {
    let estimator = Estimator::new();
    for number in 0..10_000 {
        let estimate = estimator.estimate(&chat(&format!("model-{number}"), 10, None));
        estimator.learn(&estimate, Tokens::new(3 * estimate.input.min(20), 7));
    }
    assert_eq!(estimator.accuracy_by_model().len(), MODELS_MAX + 1);
    assert_eq!(estimator.accuracy().calls, 10_000);
    let unseen = estimator.estimate(&chat("model-never-seen", 10, None));
    assert_eq!(unseen.output, 7);
}

#[test]
fn embeddings_have_no_answer_in_estimates_and_statistics() {
    let estimator = Estimator::new();
    let request = json!({"model": "text-embedding-3-large", "input": "word ".repeat(40)});
    for _ in 0..20 {
        let estimate = estimator.estimate(&request);
        assert_eq!(estimate.output, 0);
        estimator.learn(&estimate, Tokens::new(41, 0));
    }
    assert!((41..=44).contains(&estimator.estimate(&request).input));
}

#[test]
fn the_model_may_be_given_separately_and_the_body_may_be_any_bytes() {
    let estimator = Estimator::new();
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "word ".repeat(40)}]}]});
    let estimate = estimator.estimate_for("gemini-2.5-flash", &gemini);
    estimator.learn(&estimate, Tokens::new(50, 5));
    assert_eq!(estimator.accuracy_by_model()[0].0, "gemini-2.5-flash");
    assert_eq!(estimator.estimate_body(gemini.to_string().as_bytes()).input, estimate.input);
    assert_eq!(estimator.estimate_body(b"\xff\xfe not json").input, 9);
    assert_eq!(estimator.estimate_body(&b"[".repeat(100_000)).output, 500);
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = [
        "model",
        "messages",
        "content",
        "role",
        "text",
        "input",
        "contents",
        "parts",
        "inlineData",
        "data",
        "mimeType",
        "max_tokens",
        "n",
        "tools",
        "generationConfig",
        "maxOutputTokens",
        "candidateCount",
        "url",
        "x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![Just(u64::MAX), any::<u64>()].prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "data:[a-zé;,/]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, move |inner| {
        let pair = (prop::sample::select(keys.to_vec()).prop_map(str::to_owned), inner.clone());
        prop_oneof![
            prop::collection::vec(pair, 0..8).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_has_an_estimate_and_any_usage_can_be_learned(
        requests in prop::collection::vec((any_json(), any::<u64>(), any::<u64>()), 1..30),
    ) {
        let estimator = Estimator::new();
        for (request, input, output) in requests {
            let estimate = estimator.estimate(&request);
            prop_assert!(estimate.total() >= estimate.input.max(estimate.output));
            prop_assert!(estimate.output_max.is_none_or(|max| estimate.output <= max));
            estimator.learn(&estimate, Tokens::new(input, output));
        }
        let accuracy = estimator.accuracy();
        prop_assert!(accuracy.overshot_calls <= accuracy.calls);
    }
}
