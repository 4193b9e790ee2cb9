//! How many tokens a text may have. Always an estimate, and to be shown as one.

/// Ten times the bytes of an average token, over the vocabularies in use (3.7 bytes).
const BYTES_PER_TEN_TOKENS: u128 = 37;

/// What a provider counted for a text of known size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The size of the text.
    pub bytes: usize,
    /// The tokens that the provider reported for it.
    pub tokens: u64,
}

/// The tokens of a text of `bytes` bytes: by the last count of the same conversation if there is
/// one, else by the average.
#[must_use]
pub fn tokens(bytes: usize, last: Option<Counted>) -> u64 {
    let wide = |number: usize| number as u128;
    let tokens = match last {
        Some(Counted { bytes: counted, tokens }) if counted > 0 && tokens > 0 => {
            (wide(bytes) * u128::from(tokens)).div_ceil(wide(counted))
        }
        Some(_) | None => (wide(bytes) * 10).div_ceil(BYTES_PER_TEN_TOKENS),
    };
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_count_a_token_has_three_point_seven_bytes() {
        assert_eq!(tokens(0, None), 0);
        assert_eq!(tokens(37, None), 10);
        assert_eq!(tokens(38, None), 11);
        assert_eq!(tokens(37_000_000_000, None), 10_000_000_000);
    }

    #[test]
    fn the_last_count_corrects_the_average() {
        let last = Counted { bytes: 1_000, tokens: 500 };
        assert_eq!(tokens(2_001, Some(last)), 1_001);
        assert_eq!(tokens(37, Some(Counted { bytes: 0, tokens: 0 })), 10);
    }
}
