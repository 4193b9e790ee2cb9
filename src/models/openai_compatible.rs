//! Chat Completions, the interface that most servers have: any base URL, any headers, and all the
//! ways in which servers differ from each other.

mod calls;
mod continuation;
mod details;
mod encode;
mod fold;
mod parts;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::domain::agent::ModelDescriptor;
use crate::models::error::{Failure, ModelError};
use crate::models::http::conversation::{self, Outgoing};
use crate::models::http::{Endpoint, Heard, Manners, Reach};
use crate::models::model::{DeltaStream, Model};
use crate::models::request::ModelRequest;

/// A model behind a chat completions server.
pub struct OpenAiCompatible {
    descriptor: ModelDescriptor,
    server: Server,
}

impl Model for OpenAiCompatible {
    fn descriptor(&self) -> &ModelDescriptor {
        &self.descriptor
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> DeltaStream {
        let ModelDescriptor { provider, model } = &self.descriptor;
        let body = encode::body(provider, model, &request).into();
        let outgoing = Outgoing { path: &["chat", "completions"], model: model.clone(), body };
        let fold = fold::Fold::new(provider);
        conversation::stream(Arc::clone(&self.server.endpoint), outgoing, fold, cancel)
    }
}

/// A chat completions server.
#[derive(Clone)]
pub struct Server {
    provider: Arc<str>,
    endpoint: Arc<Endpoint>,
}

impl Server {
    /// The server of the provider with this name. It is asked nothing yet.
    #[must_use]
    pub fn new(provider: &str, reach: Reach, manners: Manners) -> Self {
        let endpoint = Arc::new(Endpoint::new(provider, reach, manners));
        Self { provider: Arc::from(provider), endpoint }
    }

    /// A model of it, whether or not it has it.
    #[must_use]
    pub fn model(&self, name: &str) -> OpenAiCompatible {
        let descriptor =
            ModelDescriptor { provider: self.provider.to_string(), model: name.to_owned() };
        OpenAiCompatible { descriptor, server: self.clone() }
    }

    /// The names of its models (`GET /models`), in its order. Asked once, without retries.
    ///
    /// # Errors
    /// [`ModelError`], also when it does not answer `within` that time.
    pub async fn models(&self, within: Duration) -> Result<Vec<String>, ModelError> {
        let listed = self.endpoint.get(&["models"], within).await?;
        names(&listed).ok_or_else(|| {
            let what = format!("no list of models in {listed}");
            self.endpoint.error(None, Failure::Malformed { what }, Heard::default())
        })
    }
}

/// The names in a list of models: under `data` by the book, under `models` or bare elsewhere.
fn names(json: &str) -> Option<Vec<String>> {
    let list: Value = serde_json::from_str(json).ok()?;
    let list = list.get("data").or_else(|| list.get("models")).unwrap_or(&list).as_array()?;
    let name = |model: &Value| {
        let name = ["id", "name", "model"].iter().find_map(|key| model.get(key));
        name.unwrap_or(model).as_str().map(str::to_owned)
    };
    Some(list.iter().filter_map(name).collect())
}
