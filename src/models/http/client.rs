//! The HTTP client of a provider.

use std::str::FromStr as _;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, redirect};

use crate::base::secret::Secret;
use crate::models::error::Failure;
use crate::models::http::{Reach, Timeouts, cause};

/// Builds a client; else what is in the way, in words.
pub(super) fn build(
    reach: &Reach,
    key: Option<&Secret>,
    timeouts: &Timeouts,
) -> Result<Client, (Failure, String)> {
    // Without one, building a client panics. When the program has chosen already, that holds.
    let _chosen_already = rustls::crypto::ring::default_provider().install_default();
    let misconfigured = |what: String| (Failure::Misconfigured, what);
    let mut builder = ClientBuilder::new()
        .user_agent(concat!("turnstile/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers(reach, key).map_err(misconfigured)?)
        .connect_timeout(timeouts.connect)
        // A key must not follow a redirect, and a redirected POST arrives as a GET.
        .redirect(redirect::Policy::none());
    if reach.base_url.is_this_machine() {
        builder = builder.no_proxy();
    }
    if !reach.base_url.is_https() {
        // Nothing to trust, so that a system without certificates can use a local server.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| (Failure::NoCertificates, cause(&error)))
}

fn headers(reach: &Reach, key: Option<&Secret>) -> Result<HeaderMap, String> {
    let bearer = key.map(|key| Secret::new(&format!("Bearer {}", key.expose())));
    let authorization = bearer.as_ref().map(|bearer| (AUTHORIZATION.as_str(), bearer));
    let others = reach.headers.iter().map(|(name, value)| (name.as_str(), value));
    let mut headers = HeaderMap::new();
    for (name, value) in authorization.into_iter().chain(others) {
        let parsed =
            HeaderName::from_str(name).ok().zip(HeaderValue::from_str(value.expose()).ok());
        let Some((name, mut value)) = parsed else {
            return Err(format!("the header {name:?} has a name or a value that cannot be sent"));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
