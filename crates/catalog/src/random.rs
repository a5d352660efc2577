//! Random bytes, and the ids that are made of them.

use crate::{CatalogError, Result};

const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// So many random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|why| CatalogError::NoRandomness(why.to_string()))?;
    Ok(bytes)
}

/// An id for a namespace: 8 random bytes as 11 characters. It never starts with `-`, which command lines would take
/// for an option.
pub(crate) fn namespace_id() -> Result<String> {
    loop {
        let id = url_safe(bytes()?);
        if !id.starts_with('-') {
            return Ok(id);
        }
    }
}

/// Base64 with the alphabet that is safe in URLs, without padding.
fn url_safe(bytes: [u8; 8]) -> String {
    // Six bits a character, from the top; the last one has four bits and two zeros.
    let bits = u128::from(u64::from_be_bytes(bytes)) << 2;
    (0..11).rev().map(|place| char::from(URL_SAFE[(bits >> (6 * place) & 63) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_base64() {
        assert_eq!(url_safe([0; 8]), "AAAAAAAAAAA");
        assert_eq!(url_safe([255; 8]), "__________8");
        assert_eq!(url_safe(*b"tollgate"), "dG9sbGdhdGU");
    }

    #[test]
    fn no_id_looks_like_an_option_and_none_comes_twice() {
        let ids: std::collections::HashSet<String> = (0..10_000).map(|_| namespace_id().unwrap()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 11 && !id.starts_with('-')));
    }
}
