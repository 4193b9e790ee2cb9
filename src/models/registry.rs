//! Which models there are and which one answers: names to descriptors, descriptors to models, and
//! the model of somebody who chose none.

mod choice;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future;

use crate::domain::agent::ModelDescriptor;
use crate::models::error::ModelError;
use crate::models::guide::{self, GUIDE, Guide};
use crate::models::http::{Manners, Reach, Timeouts};
use crate::models::model::Model;
use crate::models::openai_compatible::Server;

pub use choice::{Choice, LocalServer, Why};

/// How long a local server may take to be found; longer would be felt.
pub const LOCAL_WAIT: Duration = Duration::from_millis(200);

/// Servers that run on the person's own machine, at their usual places. A configured provider of the
/// same name takes the place of one.
const LOCAL: [(&str, &str); 4] = [
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("llama-cpp", "http://127.0.0.1:8080/v1"),
    ("lm-studio", "http://127.0.0.1:1234/v1"),
    ("vllm", "http://127.0.0.1:8000/v1"),
];

/// An alias may stand for an alias this many times.
const ALIAS_STEPS_MAX: usize = 8;

/// What the configuration says about models.
#[derive(Clone, Debug)]
pub struct Options {
    /// Providers by their names.
    pub providers: BTreeMap<String, Provider>,
    /// Providers that cannot be used, and why.
    pub unusable: BTreeMap<String, String>,
    /// Names for names.
    pub aliases: BTreeMap<String, String>,
    /// The model of somebody who chose none: an alias or `provider/model`.
    pub default: Option<String>,
    /// From one word of the guide to the next.
    pub guide_pace: Duration,
}

impl Default for Options {
    /// Nothing is configured.
    fn default() -> Self {
        Self {
            providers: BTreeMap::new(),
            unusable: BTreeMap::new(),
            aliases: BTreeMap::new(),
            default: None,
            guide_pace: guide::PACE,
        }
    }
}

/// A configured provider.
#[derive(Clone, Debug)]
pub struct Provider {
    /// What it speaks.
    pub kind: Kind,
    /// How it is reached.
    pub reach: Reach,
    /// Models of it that are found by their bare names ([`Models::resolve`]); it may have others.
    pub models: Vec<String>,
    /// How long is waited for it.
    pub timeouts: Timeouts,
}

/// The interface that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Chat Completions.
    OpenAiCompatible,
}

/// A name that leads to no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Neither an alias nor a provider and a model.
    #[error("no model is named {name:?}; write provider/model (providers: {providers})")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The providers that there are, in words.
        providers: String,
    },
    /// Several providers list it.
    #[error("{name:?} is a model of {providers}; write provider/model")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Who lists it, in words.
        providers: String,
    },
    /// Aliases that stand for each other.
    #[error("the alias {alias:?} leads in a circle; see [models.aliases]")]
    Circle {
        /// The alias that was asked for.
        alias: String,
    },
    /// A provider that is not configured (any more).
    #[error(
        "there is no provider {provider:?} (providers: {providers}); add [providers.{provider}]"
    )]
    NoProvider {
        /// The provider.
        provider: String,
        /// The providers that there are, in words.
        providers: String,
    },
    /// A provider whose configuration leads nowhere.
    #[error("the provider {provider:?} cannot be used: {why}; see [providers.{provider}]")]
    Unusable {
        /// The provider.
        provider: String,
        /// Why not.
        why: String,
    },
}

/// Why a provider's models cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// There is no such provider.
    #[error(transparent)]
    Unknown(#[from] ResolveError),
    /// It does not say.
    #[error(transparent)]
    Unanswered(#[from] ModelError),
}

/// All models.
pub struct Models {
    guide: Arc<Guide>,
    providers: BTreeMap<String, Entry>,
    unusable: BTreeMap<String, String>,
    aliases: BTreeMap<String, String>,
    default: Option<String>,
}

struct Entry {
    server: Server,
    models: Vec<String>,
}

impl Models {
    /// The configured providers, those of this machine, and the guide. Nobody is asked anything.
    #[must_use]
    pub fn new(options: Options, manners: &Manners) -> Self {
        let local = LOCAL.iter().filter_map(|(name, base_url)| {
            let reach = Reach::at(base_url.parse().ok()?);
            let server = Server::new(name, reach, manners.clone());
            Some(((*name).to_owned(), Entry { server, models: Vec::new() }))
        });
        let mut providers: BTreeMap<_, _> = local.collect();
        for (name, Provider { kind, reach, models, timeouts }) in options.providers {
            let manners = Manners { timeouts, ..manners.clone() };
            let server = match kind {
                Kind::OpenAiCompatible => Server::new(&name, reach, manners),
            };
            providers.insert(name, Entry { server, models });
        }
        let guide = Arc::new(Guide::new(options.guide_pace));
        let Options { unusable, aliases, default, .. } = options;
        // One that was configured under the name of a server of this machine is not that server.
        providers.retain(|name, _| !unusable.contains_key(name));
        Self { guide, providers, unusable, aliases, default }
    }

    /// The model behind a name: an alias, `provider/model` (the model's name may have slashes of its
    /// own), or the bare name of a model that one provider lists.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub fn resolve(&self, name: &str) -> Result<ModelDescriptor, ResolveError> {
        let mut meant = name;
        for _ in 0..ALIAS_STEPS_MAX {
            match self.aliases.get(meant) {
                Some(target) => meant = target,
                None => return self.resolve_plain(meant),
            }
        }
        Err(ResolveError::Circle { alias: name.to_owned() })
    }

    /// The model with this descriptor. That its provider has it is found out by asking it.
    ///
    /// # Errors
    /// [`ResolveError::NoProvider`] and [`ResolveError::Unusable`].
    pub fn model(&self, descriptor: &ModelDescriptor) -> Result<Arc<dyn Model>, ResolveError> {
        if descriptor.provider == GUIDE {
            return Ok(Arc::<Guide>::clone(&self.guide));
        }
        let entry = self.entry(&descriptor.provider)?;
        Ok(Arc::new(entry.server.model(&descriptor.model)))
    }

    /// The model of somebody who chose none: the configured default, one that was found on this
    /// machine ([`Models::local_servers`]), the guide.
    ///
    /// # Errors
    /// [`ResolveError`] when the configured default leads nowhere; nothing is put in its place.
    pub fn default_model(&self, local: Option<ModelDescriptor>) -> Result<Choice, ResolveError> {
        let (model, why) = match (&self.default, local) {
            (Some(name), _) => (self.resolve(name)?, Why::Configured),
            (None, Some(model)) => (model, Why::Local),
            (None, None) => (guide::descriptor(), Why::NothingElse),
        };
        Ok(Choice { model, why })
    }

    /// Asks a provider for the names of its models.
    ///
    /// # Errors
    /// [`ListError`], also when it does not answer `within` that time.
    pub async fn ask_for_models(
        &self,
        provider: &str,
        within: Duration,
    ) -> Result<Vec<String>, ListError> {
        if provider == GUIDE {
            return Ok(vec![GUIDE.to_owned()]);
        }
        Ok(self.entry(provider)?.server.models(within).await?)
    }

    /// The servers on this machine that answer `within` that time ([`LOCAL_WAIT`]), all asked at
    /// once, the likeliest first. Not before the first frame.
    pub async fn local_servers(&self, within: Duration) -> Vec<LocalServer> {
        let asked = LOCAL.iter().map(|(name, _)| async {
            let models = self.ask_for_models(name, within).await.ok()?;
            Some(LocalServer { provider: (*name).to_owned(), models })
        });
        future::join_all(asked).await.into_iter().flatten().collect()
    }

    fn resolve_plain(&self, name: &str) -> Result<ModelDescriptor, ResolveError> {
        if name == GUIDE {
            return Ok(guide::descriptor());
        }
        if let Some((provider, model)) = name.split_once('/') {
            self.check_usable(provider)?;
            let known = provider == GUIDE || self.providers.contains_key(provider);
            if known && !model.is_empty() {
                let (provider, model) = (provider.to_owned(), model.to_owned());
                return Ok(ModelDescriptor { provider, model });
            }
        }
        let lists = |entry: &Entry| entry.models.iter().any(|model| model == name);
        let listing = self.providers.iter().filter(|(_, entry)| lists(entry));
        let listing: Vec<&str> = listing.map(|(provider, _)| provider.as_str()).collect();
        let (name, providers) = (name.to_owned(), self.provider_names());
        match listing.as_slice() {
            [provider] => Ok(ModelDescriptor { provider: (*provider).to_owned(), model: name }),
            [] => Err(ResolveError::Unknown { name, providers }),
            several => Err(ResolveError::Ambiguous { name, providers: several.join(", ") }),
        }
    }

    fn check_usable(&self, provider: &str) -> Result<(), ResolveError> {
        self.unusable.get(provider).map_or(Ok(()), |why| {
            let (provider, why) = (provider.to_owned(), why.clone());
            Err(ResolveError::Unusable { provider, why })
        })
    }

    fn entry(&self, provider: &str) -> Result<&Entry, ResolveError> {
        self.check_usable(provider)?;
        self.providers.get(provider).ok_or_else(|| ResolveError::NoProvider {
            provider: provider.to_owned(),
            providers: self.provider_names(),
        })
    }

    fn provider_names(&self) -> String {
        let names = self.providers.keys().map(String::as_str).chain([GUIDE]);
        names.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::System;
    use crate::models::http::Patience;
    use crate::testing::model_server::{ModelServer, Reply};
    use serde_json::json;

    fn provider(base_url: &str, models: &[&str]) -> Provider {
        Provider {
            kind: Kind::OpenAiCompatible,
            reach: Reach::at(base_url.parse().expect("a base URL")),
            models: models.iter().map(|name| (*name).to_owned()).collect(),
            timeouts: Timeouts::default(),
        }
    }

    fn models(options: Options) -> Models {
        let clock = Arc::new(System::new());
        let (timeouts, patience) = (Timeouts::default(), Patience::default());
        let manners =
            Manners { timeouts, patience, clock: Arc::<System>::clone(&clock), entropy: clock };
        Models::new(options, &manners)
    }

    /// Two providers with a few models, and some aliases.
    fn configured() -> Models {
        let owned = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
        models(Options {
            providers: BTreeMap::from([
                ("lab".to_owned(), provider("http://h/v1", &["qwen3", "org/big", "same"])),
                ("work".to_owned(), provider("https://h/v1", &["same"])),
            ]),
            aliases: [("quick", "lab/qwen3"), ("usual", "quick"), ("a", "b"), ("b", "a")]
                .map(owned)
                .into(),
            ..Options::default()
        })
    }

    fn descriptor(provider: &str, model: &str) -> ModelDescriptor {
        ModelDescriptor { provider: provider.to_owned(), model: model.to_owned() }
    }

    #[test]
    fn names_lead_to_models() {
        for (name, provider, model) in [
            ("lab/qwen3", "lab", "qwen3"),
            ("lab/not/listed:4b", "lab", "not/listed:4b"),
            ("quick", "lab", "qwen3"),
            ("usual", "lab", "qwen3"),
            ("qwen3", "lab", "qwen3"),
            ("org/big", "lab", "org/big"),
            ("ollama/qwen3:4b", "ollama", "qwen3:4b"),
            ("guide", GUIDE, GUIDE),
            ("guide/guide", GUIDE, GUIDE),
        ] {
            assert_eq!(configured().resolve(name), Ok(descriptor(provider, model)), "{name}");
        }
    }

    #[test]
    fn a_name_that_leads_nowhere_says_what_would() {
        for (name, sentence) in [
            (
                "other/x",
                "no model is named \"other/x\"; write provider/model \
                 (providers: lab, llama-cpp, lm-studio, ollama, vllm, work, guide)",
            ),
            (
                "lab/",
                "no model is named \"lab/\"; write provider/model \
                 (providers: lab, llama-cpp, lm-studio, ollama, vllm, work, guide)",
            ),
            ("same", "\"same\" is a model of lab, work; write provider/model"),
            ("a", "the alias \"a\" leads in a circle; see [models.aliases]"),
        ] {
            let error = configured().resolve(name).expect_err(name);
            assert_eq!(error.to_string(), sentence);
        }
    }

    #[test]
    fn a_descriptor_leads_to_its_model_while_its_provider_is_there() {
        for known in [descriptor("lab", "qwen3"), descriptor("lab", "new"), guide::descriptor()] {
            let model = configured().model(&known).expect("a model");
            assert_eq!(model.descriptor(), &known);
        }
        let gone = configured().model(&descriptor("gone", "m")).err().expect("an error");
        assert_eq!(
            gone.to_string(),
            "there is no provider \"gone\" (providers: lab, llama-cpp, lm-studio, ollama, vllm, \
             work, guide); add [providers.gone]"
        );
    }

    fn check_default(
        default: Option<&str>,
        local: Option<ModelDescriptor>,
        model: &str,
        why: &str,
    ) {
        let models = models(Options { default: default.map(str::to_owned), ..Options::default() });
        let choice = models.default_model(local).expect("a model");
        assert_eq!(
            (choice.model.to_string().as_str(), choice.why.to_string().as_str()),
            (model, why)
        );
    }

    #[test]
    fn the_default_is_what_is_nearest() {
        let local = Some(descriptor("ollama", "q"));
        check_default(Some("vllm/x"), local.clone(), "vllm/x", "configured default");
        check_default(None, local, "ollama/q", "found on this machine");
        check_default(None, None, "guide/guide", "a script: no model is connected");
    }

    #[test]
    fn a_configured_default_that_leads_nowhere_is_an_error() {
        let models = models(Options { default: Some("gone/x".to_owned()), ..Options::default() });
        assert!(models.default_model(None).is_err());
    }

    #[tokio::test]
    async fn a_provider_that_cannot_be_used_says_why_and_harms_no_other() {
        let why = "it is nowhere".to_owned();
        let models = models(Options {
            providers: [("lab".to_owned(), provider("http://h/v1", &["tiny"]))].into(),
            unusable: [("ollama".to_owned(), why.clone())].into(),
            ..Options::default()
        });
        let provider = "ollama".to_owned();
        let unusable = ResolveError::Unusable { provider, why };
        assert_eq!(models.resolve("ollama/x"), Err(unusable.clone()));
        let descriptor = ModelDescriptor { provider: "ollama".to_owned(), model: "x".to_owned() };
        assert_eq!(models.model(&descriptor).err(), Some(unusable.clone()));
        let listed = models.ask_for_models("ollama", LOCAL_WAIT).await;
        assert!(matches!(listed, Err(ListError::Unknown(why)) if why == unusable));
        assert!(models.resolve("tiny").is_ok());
    }

    #[tokio::test]
    async fn servers_on_this_machine_are_found_if_they_answer() {
        let list = json!({"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:4b"}]});
        let ollama = ModelServer::start([Reply::json(200, &list)]).await.expect("a port");
        let silent = ModelServer::start([Reply::nothing()]).await.expect("a port");
        let page = ModelServer::start([Reply::status(200).bytes("<html>")]).await.expect("a port");
        let failing = ModelServer::start([Reply::status(500)]).await.expect("a port");
        let servers =
            [("ollama", &ollama), ("llama-cpp", &silent), ("lm-studio", &page), ("vllm", &failing)];
        let providers = servers
            .map(|(name, server)| (name.to_owned(), provider(&server.base_url(), &[])))
            .into();
        let models = models(Options { providers, ..Options::default() });
        let found = models.local_servers(Duration::from_secs(5)).await;
        let names = vec!["nomic-embed-text".to_owned(), "qwen3:4b".to_owned()];
        assert_eq!(found, [LocalServer { provider: "ollama".to_owned(), models: names }]);
        assert_eq!(found[0].model(), Some(descriptor("ollama", "qwen3:4b")));
    }
}
