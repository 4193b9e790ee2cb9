//! A checker and a classifier that say what a test tells them to.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::domain::permission::decide::{ReadGuard, Verdict};
use crate::domain::permission::plan::LocatedPath;
use crate::domain::permission::rule::Ruling;
use crate::domain::turn::event::Classification;
use crate::policy::checker::{Call, NoVerdict, PermissionChecker};
use crate::policy::classifier::{Batch, Classifier, ClassifyError, Opinion};
use crate::testing::gate::Gate;

/// A checker that allows everything but what it was told about.
#[derive(Debug, Default)]
pub struct ScriptedChecker {
    says: Mutex<HashMap<String, Says>>,
    asked: Mutex<Vec<String>>,
}

/// What a scripted checker says of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It may run.
    Allow,
    /// Somebody must be asked.
    Ask,
    /// It may not run.
    Deny,
    /// Nothing: the checker fails.
    Nothing,
    /// It breaks down.
    Panic,
}

impl ScriptedChecker {
    /// From now on it says this of the tool with this id.
    pub fn say(&self, tool_id: &str, says: Says) {
        lock(&self.says).insert(tool_id.to_owned(), says);
    }

    /// The tools that it was asked about, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }
}

#[async_trait]
impl PermissionChecker for ScriptedChecker {
    async fn check(&self, call: &Call) -> Result<Verdict, NoVerdict> {
        lock(&self.asked).push(call.tool_id.clone());
        let says = lock(&self.says).get(&call.tool_id).copied().unwrap_or(Says::Allow);
        let rule = format!("the rule about {}", call.tool_id);
        match says {
            Says::Allow => Ok(Verdict::Allow { rule }),
            Says::Ask => Ok(Verdict::Ask { rule }),
            Says::Deny => Ok(Verdict::Deny { rule, reason: "not here".to_owned() }),
            Says::Nothing => Err(NoVerdict { why: "the rules are lost".to_owned() }),
            Says::Panic => unreachable!("the rules are mad"),
        }
    }

    fn read_guard(&self, _: &Call) -> Arc<dyn ReadGuard> {
        Arc::new(AllReadable)
    }
}

struct AllReadable;

impl ReadGuard for AllReadable {
    fn ruling(&self, _: &LocatedPath) -> Ruling {
        Ruling::Allow
    }
}

/// A classifier that plays a script.
#[derive(Debug, Default)]
pub struct ScriptedClassifier {
    scripts: Mutex<VecDeque<Thinks>>,
    batches: Mutex<Vec<Vec<String>>>,
}

/// What a scripted classifier thinks of one batch.
#[derive(Clone, Debug)]
pub enum Thinks {
    /// This of each call, by the names of the tools; the others are left out.
    Of(Vec<(&'static str, Classification)>),
    /// Nothing: it fails.
    Nothing,
    /// It breaks down.
    Panic,
    /// Nothing until the gate is open or it is cancelled, then it defers all.
    Late(Gate),
}

impl ScriptedClassifier {
    /// A classifier with a script for each batch to come; after the last it fails.
    #[must_use]
    pub fn new(scripts: impl IntoIterator<Item = Thinks>) -> Arc<Self> {
        let scripts = Mutex::new(scripts.into_iter().collect());
        Arc::new(Self { scripts, batches: Mutex::default() })
    }

    /// The batches that it was asked about, as the names of the tools.
    #[must_use]
    pub fn batches(&self) -> Vec<Vec<String>> {
        lock(&self.batches).clone()
    }
}

#[async_trait]
impl Classifier for ScriptedClassifier {
    async fn classify(
        &self,
        batch: &Batch,
        cancel: &CancellationToken,
    ) -> Result<Vec<Opinion>, ClassifyError> {
        let names = batch.calls.iter().map(|call| call.tool_name.clone());
        lock(&self.batches).push(names.collect());
        let script = lock(&self.scripts).pop_front();
        let thinks = match script {
            Some(Thinks::Of(thinks)) => thinks,
            Some(Thinks::Late(gate)) => tokio::select! {
                biased;
                // Neither wait loses anything.
                () = cancel.cancelled() => return Err(ClassifyError::Cancelled),
                () = gate.pass() => Vec::new(),
            },
            Some(Thinks::Panic) => unreachable!("it went mad"),
            Some(Thinks::Nothing) | None => {
                return Err(ClassifyError::Unreadable("no yes and no no".to_owned()));
            }
        };
        let opinion = |(name, decision): &(&str, Classification)| {
            let call = batch.calls.iter().find(|call| call.tool_name == *name)?;
            let reason = format!("{name} looks like it");
            Some(Opinion { tool_call_id: call.tool_call_id.clone(), decision: *decision, reason })
        };
        Ok(thinks.iter().filter_map(opinion).collect())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
