//! Which model answers somebody who chose none, and why.

use std::fmt;

use crate::domain::agent::ModelDescriptor;

/// The model of somebody who chose none, and why it is that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The model.
    pub model: ModelDescriptor,
    /// Why.
    pub why: Why,
}

/// Why a model is the default. Its text is for the status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The configuration names it.
    Configured,
    /// Its server runs on this machine.
    Local,
    /// There is nothing else.
    NothingElse,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("configured default"),
            Self::Local => f.write_str("found on this machine"),
            Self::NothingElse => f.write_str("a script: no model is connected"),
        }
    }
}

/// A server on this machine that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// Its provider.
    pub provider: String,
    /// Its models, in its order.
    pub models: Vec<String>,
}

impl LocalServer {
    /// The model to talk to, if it has one: its first that is not for embeddings.
    #[must_use]
    pub fn model(&self) -> Option<ModelDescriptor> {
        let model = self.models.iter().find(|name| !name.contains("embed"))?;
        Some(ModelDescriptor { provider: self.provider.clone(), model: model.clone() })
    }
}
