//! Random bytes from the operating system, and ids that are made of them.

use crate::{CatalogError, Result, base64url};

/// Returns `N` random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|why| CatalogError::NoRandomness(why.to_string()))?;
    Ok(bytes)
}

/// Returns an id for a namespace: 8 random bytes as 11 characters. It never starts with `-`, which
/// command lines would take for an option.
pub(crate) fn namespace_id() -> Result<String> {
    loop {
        let id = base64url::encode(&bytes::<8>()?);
        if !id.starts_with('-') {
            return Ok(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_looks_like_an_option_and_none_is_repeated() {
        let ids: std::collections::HashSet<String> = (0..10_000).map(|_| namespace_id().unwrap()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 11 && !id.starts_with('-')));
    }
}
