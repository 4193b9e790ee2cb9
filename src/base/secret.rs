//! Text that must never be shown: keys and tokens.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A secret text. It is wiped from memory when dropped and prints as `[secret]`.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the text in, without the white space around it (keys are often pasted with a line end).
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(SecretString::from(text.trim().to_owned()))
    }

    /// The text itself; only for the place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// `text` with every occurrence of the secret replaced by `[secret]`.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let secret = self.expose();
        if secret.is_empty() { text.to_owned() } else { text.replace(secret, "[secret]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints() {
        let secret = Secret::new("sk-123\n");
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert_eq!(secret.redact("key sk-123 is wrong"), "key [secret] is wrong");
        assert_eq!(Secret::new("").redact("as it was"), "as it was");
    }
}
