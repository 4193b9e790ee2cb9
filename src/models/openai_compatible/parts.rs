//! The parts of an answer as they grow: text, reasoning and calls, in the order in which they began.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::domain::json::Json;
use crate::domain::message::{ReasoningPart, TextPart};
use crate::models::delta::{AnswerPart, ModelDelta};
use crate::models::error::Failure;
use crate::models::openai_compatible::calls::{Calls, Taken};
use crate::models::openai_compatible::continuation::{ReasoningField, ReasoningOptions, keep};
use crate::models::openai_compatible::details;
use crate::models::openai_compatible::wire::Fragment;

/// No model writes this much in one answer; a server that runs in a circle does.
pub(super) const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The parts so far. The last one is open, if it is no call.
#[derive(Debug, Default)]
pub(super) struct Parts {
    all: Vec<Part>,
    calls: Calls,
    /// The bytes of all of it.
    len: usize,
}

#[derive(Debug)]
enum Part {
    Text(Block),
    Reasoning(Block, ReasoningOptions),
    /// The next one of the calls.
    Call,
}

/// A text that grows.
#[derive(Debug, Default)]
struct Block {
    text: String,
    /// How many bytes of it have been told.
    told: usize,
}

/// A piece of reasoning.
#[derive(Debug, Default)]
pub(super) struct Thought<'a> {
    /// What a person may read of it.
    pub(super) text: &'a str,
    /// The field in which the text came, if it has one of its own.
    pub(super) field: Option<ReasoningField>,
    /// What the provider wants back.
    pub(super) details: Vec<Json>,
}

impl Parts {
    /// Whether nothing has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a call has begun.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Text goes on, or begins.
    pub(super) fn write(
        &mut self,
        text: &str,
        out: &mut VecDeque<ModelDelta>,
    ) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.count(text.len())?;
        if !matches!(self.all.last(), Some(Part::Text(_))) {
            self.close(out);
            out.push_back(ModelDelta::TextStart);
            self.all.push(Part::Text(Block::default()));
        }
        if let Some(Part::Text(block)) = self.all.last_mut() {
            block.text.push_str(text);
        }
        Ok(())
    }

    /// Reasoning goes on, or begins.
    pub(super) fn think(
        &mut self,
        thought: Thought<'_>,
        out: &mut VecDeque<ModelDelta>,
    ) -> Result<(), Failure> {
        let Thought { text, field, details } = thought;
        if text.is_empty() && details.is_empty() {
            return Ok(());
        }
        self.count(text.len() + details.iter().map(|detail| detail.get().len()).sum::<usize>())?;
        // Hidden reasoning belongs to what was thought before; it must not cut a text in two.
        let goes_on = match self.all.last() {
            Some(Part::Reasoning(..)) => true,
            Some(_) | None => text.is_empty() && self.last_reasoning().is_some(),
        };
        if !goes_on {
            self.close(out);
            out.push_back(ModelDelta::ReasoningStart);
            self.all.push(Part::Reasoning(Block::default(), ReasoningOptions::default()));
        }
        if let Some((block, options)) = self.last_reasoning() {
            block.text.push_str(text);
            options.field = options.field.or(field);
            options.details.extend(details);
        }
        Ok(())
    }

    /// A fragment of a call.
    pub(super) fn call(
        &mut self,
        fragment: Fragment<'_>,
        out: &mut VecDeque<ModelDelta>,
    ) -> Result<(), Failure> {
        let arguments = fragment.function.as_ref().and_then(|function| function.arguments);
        self.count(arguments.map_or(0, |raw| raw.get().len()))?;
        if self.calls.take(fragment) == Taken::Began {
            self.close(out);
            self.all.push(Part::Call);
        }
        Ok(())
    }

    /// Tells what has come of the open block since the last time.
    pub(super) fn tell(&mut self, out: &mut VecDeque<ModelDelta>) {
        let (block, delta): (_, fn(Arc<str>) -> ModelDelta) = match self.all.last_mut() {
            Some(Part::Text(block)) => (block, ModelDelta::Text),
            Some(Part::Reasoning(block, _)) => (block, ModelDelta::Reasoning),
            Some(Part::Call) | None => return,
        };
        if let Some(news) = block.text.get(block.told..).filter(|news| !news.is_empty()) {
            out.push_back(delta(Arc::from(news)));
            block.told = block.text.len();
        }
    }

    /// Tells what is left, the calls too, and gives the parts of the answer.
    pub(super) fn finish(
        mut self,
        provider: &str,
        out: &mut VecDeque<ModelDelta>,
    ) -> Vec<AnswerPart> {
        self.close(out);
        let calls = self.calls.finish(provider);
        out.extend(calls.iter().cloned().map(ModelDelta::ToolCall));
        let mut calls = calls.into_iter();
        let parts = self.all.into_iter().filter_map(|part| match part {
            Part::Text(Block { text, .. }) => {
                let part = TextPart { text: text.into(), provider_options: None };
                Some(AnswerPart::Text(part))
            }
            Part::Reasoning(Block { text, .. }, ReasoningOptions { field, details }) => {
                let options = ReasoningOptions { field, details: details::whole(details) };
                let provider_options = keep(provider, &options);
                Some(AnswerPart::Reasoning(ReasoningPart { text: text.into(), provider_options }))
            }
            Part::Call => calls.next().map(AnswerPart::ToolCall),
        });
        parts.collect()
    }

    fn last_reasoning(&mut self) -> Option<(&mut Block, &mut ReasoningOptions)> {
        self.all.iter_mut().rev().find_map(|part| match part {
            Part::Reasoning(block, options) => Some((block, options)),
            Part::Text(_) | Part::Call => None,
        })
    }

    fn count(&mut self, bytes: usize) -> Result<(), Failure> {
        self.len += bytes;
        if self.len > ANSWER_BYTES_MAX {
            let (what, limit_bytes) = ("the answer", ANSWER_BYTES_MAX);
            return Err(Failure::TooLong { what, limit_bytes });
        }
        Ok(())
    }

    /// Tells what is left of the open block, and that it is whole.
    fn close(&mut self, out: &mut VecDeque<ModelDelta>) {
        self.tell(out);
        match self.all.last() {
            Some(Part::Text(_)) => out.push_back(ModelDelta::TextEnd),
            Some(Part::Reasoning(..)) => out.push_back(ModelDelta::ReasoningEnd),
            Some(Part::Call) | None => {}
        }
    }
}
