//! Where a provider is.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

use crate::base::secret::Secret;

/// Where a provider's interface begins, such as `http://127.0.0.1:8123/v1`: http or https, with a
/// host.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

/// A text that is no [`BaseUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a base URL ({why}); it looks like https://host/v1")]
pub struct MalformedBaseUrl {
    /// What is wrong with it.
    pub why: String,
}

impl FromStr for BaseUrl {
    type Err = MalformedBaseUrl;

    fn from_str(text: &str) -> Result<Self, MalformedBaseUrl> {
        let url = Url::parse(text.trim()).map_err(|e| MalformedBaseUrl { why: e.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(MalformedBaseUrl { why: format!("scheme {:?}", url.scheme()) });
        }
        Ok(Self(url))
    }
}

impl BaseUrl {
    /// The address of `path` under this base; a query stays (some gateways want a version there).
    pub(crate) fn join(&self, path: &[&str]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// Host and port, for people.
    pub(crate) fn place(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether it is this machine itself, which no proxy leads to.
    pub(crate) fn is_this_machine(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// Whether the way is encrypted.
    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The password that may stand in it.
    pub(crate) fn password(&self) -> Option<Secret> {
        self.0.password().map(Secret::new)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the whole: a password may stand in it.
        write!(f, "{}://{}{}", self.0.scheme(), self.place(), self.0.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> BaseUrl {
        text.parse().expect("a base URL")
    }

    #[test]
    fn a_path_is_joined_whatever_the_base_ends_with() {
        for (text, joined) in [
            ("http://h/v1", "http://h/v1/chat/completions"),
            ("http://h/v1/", "http://h/v1/chat/completions"),
            ("http://h", "http://h/chat/completions"),
            ("https://h/o?api-version=1", "https://h/o/chat/completions?api-version=1"),
        ] {
            assert_eq!(base(text).join(&["chat", "completions"]).as_str(), joined);
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused_and_says_why() {
        for (text, why) in [
            ("127.0.0.1:8080/v1", "relative URL without a base"),
            ("localhost:8080", r#"scheme "localhost""#),
            ("http://", "empty host"),
        ] {
            let refused = text.parse::<BaseUrl>().expect_err(text);
            assert_eq!(refused, MalformedBaseUrl { why: why.to_owned() });
        }
    }

    #[test]
    fn a_password_in_the_base_url_does_not_print() {
        assert_eq!(format!("{:?}", base("http://me:pw@h:1/v1")), "http://h:1/v1");
    }
}
