//! The providers of the configuration, with their keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::app::log::Redactions;
use crate::base::clock::{Clock, Entropy};
use crate::base::secret::Secret;
use crate::config::credential::KeySource;
use crate::config::environment::Environment;
use crate::config::layer::Loaded;
use crate::config::provider;
use crate::models::guide;
use crate::models::http::{
    BaseUrl, KeyProvider, MalformedBaseUrl, Manners, NoKey, Patience, Reach, Timeouts, is_secret,
};
use crate::models::registry::{self, Models};

/// What the models are made from.
pub(super) struct Providers<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) environment: &'a Environment,
    pub(super) redactions: &'a Redactions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) guide_pace: Option<Duration>,
}

impl Providers<'_> {
    /// All models. No key is fetched, and no server is asked anything. A provider whose address is
    /// none cannot be used, and says so when it is to be.
    pub(super) fn models(self) -> Models {
        let (mut providers, mut unusable) = (BTreeMap::new(), BTreeMap::new());
        for (id, provider) in &self.loaded.config.providers {
            let name = id.as_str().to_owned();
            match self.configured(provider) {
                Ok(provider) => drop(providers.insert(name, provider)),
                Err(error) => drop(unusable.insert(name, error.to_string())),
            }
        }
        let aliases = self.loaded.config.models.aliases.iter();
        let options = registry::Options {
            providers,
            unusable,
            aliases: aliases.map(|(alias, to)| (alias.as_str().to_owned(), to.clone())).collect(),
            default: self.loaded.config.models.default.clone(),
            guide_pace: self.guide_pace.unwrap_or(guide::PACE),
        };
        let manners = Manners {
            timeouts: Timeouts::default(),
            patience: Patience::default(),
            clock: self.clock,
            entropy: self.entropy,
        };
        Models::new(options, &manners)
    }

    fn configured(
        &self,
        provider: &provider::Provider,
    ) -> Result<registry::Provider, MalformedBaseUrl> {
        let key = provider.key.clone().map(|source| {
            let (environment, redactions) = (self.environment.clone(), self.redactions.clone());
            Arc::new(Key { source, environment, redactions }) as Arc<dyn KeyProvider>
        });
        let base_url = provider.base_url.as_str().parse::<BaseUrl>()?;
        let headers = provider.headers.iter();
        let headers: BTreeMap<_, _> = headers
            .map(|(name, value)| (name.as_str().to_owned(), value.secret().clone()))
            .collect();
        for value in headers.values().filter(|value| is_secret(value)) {
            self.redactions.add(value.clone());
        }
        let provider::Timeouts { connect_s, first_byte_s, idle_s } = provider.timeouts;
        let seconds = Duration::from_secs;
        Ok(registry::Provider {
            kind: match provider.kind {
                provider::ProviderKind::OpenaiCompatible => registry::Kind::OpenAiCompatible,
            },
            reach: Reach { base_url, key, headers },
            models: provider.models.clone(),
            timeouts: Timeouts {
                connect: seconds(connect_s.get()),
                first_byte: seconds(first_byte_s.get()),
                next_byte: seconds(idle_s.get()),
                ..Timeouts::default()
            },
        })
    }
}

/// A key as the configuration says where it is.
#[derive(Debug)]
struct Key {
    source: KeySource,
    environment: Environment,
    redactions: Redactions,
}

#[async_trait]
impl KeyProvider for Key {
    async fn key(&self) -> Result<Secret, NoKey> {
        let key = self.source.fetch(&self.environment).await;
        let key = key.map_err(|error| NoKey(error.to_string()))?;
        self.redactions.add(key.clone());
        Ok(key)
    }
}
