//! Base64 with the URL-safe alphabet, without padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut wide = [0; 4];
        wide[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(wide);
        // One byte takes two characters, two take three, three take four.
        for digit in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

/// Decodes a text, if [`encode`] could have written it: unused bits must be 0, so that no two texts
/// have the same bytes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for digit in 0..4 {
            bits = bits << 6 | chunk.get(digit).map_or(Some(0), |character| value_of(*character))?;
        }
        let [_, wide @ ..] = u32::to_be_bytes(bits);
        let (decoded, unused) = wide.split_at(chunk.len() - 1);
        if decoded.is_empty() || unused.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(decoded);
    }
    Some(bytes)
}

fn value_of(character: u8) -> Option<u32> {
    let value = match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_as_in_the_standard() {
        // The examples of RFC 4648, without padding.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(encode(&[255; 8]), "__________8");
        assert_eq!(encode(&[251, 239]), "--8");
    }

    #[test]
    fn every_byte_is_decoded_and_every_other_text_is_refused() {
        let all: Vec<u8> = (0..=255).collect();
        for end in 0..=all.len() {
            assert_eq!(decode(&encode(&all[..end])).as_deref(), Some(&all[..end]));
        }
        // A character too many, padding, the other alphabet, unused bits.
        for bad in ["Z", "Zm9vY", "Zg==", "Zm8=", "+/+/", "Zh", "Zm9", " Zg", "Zg\n", "Zé"] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
