//! The rules of the seam to models, as a check of what a model streamed.

use crate::models::delta::{Answer, AnswerPart, ModelDelta, ProviderToolCall};
use crate::models::error::ModelError;

/// Holds what a model streamed to the rules of [`Model`](crate::models::model::Model).
///
/// # Errors
/// Which rule is broken.
pub fn check_stream(items: &[Result<ModelDelta, ModelError>]) -> Result<(), String> {
    let mut told = Told::default();
    for (at, item) in items.iter().enumerate() {
        let last = at + 1 == items.len();
        match item {
            Ok(ModelDelta::Finish(answer)) if last => return told.compare(answer),
            Ok(delta) if !last => told.take(delta)?,
            Err(_) if last => return Ok(()),
            Ok(_) => return Err("the stream ends without an end".to_owned()),
            Err(error) => return Err(format!("something follows the error {error}")),
        }
    }
    Err("the stream is empty".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Text,
    Reasoning,
}

/// What the deltas so far make up.
#[derive(Default)]
struct Told {
    blocks: Vec<(Block, String)>,
    calls: Vec<ProviderToolCall>,
    open: bool,
}

impl Told {
    fn take(&mut self, delta: &ModelDelta) -> Result<(), String> {
        match delta {
            ModelDelta::Waiting { .. } if self.blocks.is_empty() && self.calls.is_empty() => Ok(()),
            ModelDelta::Waiting { .. } => Err("it waits after the answer has begun".to_owned()),
            ModelDelta::TextStart => self.start(Block::Text),
            ModelDelta::ReasoningStart => self.start(Block::Reasoning),
            ModelDelta::Text(piece) => self.grow(Block::Text, piece),
            ModelDelta::Reasoning(piece) => self.grow(Block::Reasoning, piece),
            ModelDelta::TextEnd => self.end(Block::Text),
            ModelDelta::ReasoningEnd => self.end(Block::Reasoning),
            ModelDelta::ToolCall(_) if self.open => Err("a call inside a block".to_owned()),
            ModelDelta::ToolCall(call) => {
                self.calls.push(call.clone());
                Ok(())
            }
            ModelDelta::Usage(_) => Ok(()),
            ModelDelta::Finish(_) => Err("something follows the answer".to_owned()),
        }
    }

    fn start(&mut self, kind: Block) -> Result<(), String> {
        if std::mem::replace(&mut self.open, true) {
            return Err(format!("{kind:?} begins inside a block"));
        }
        self.blocks.push((kind, String::new()));
        Ok(())
    }

    fn grow(&mut self, kind: Block, piece: &str) -> Result<(), String> {
        match self.blocks.last_mut() {
            _ if piece.is_empty() => Err("a piece of nothing".to_owned()),
            Some((open, text)) if self.open && *open == kind => {
                text.push_str(piece);
                Ok(())
            }
            Some(_) | None => Err(format!("{kind:?} grows outside its block")),
        }
    }

    fn end(&mut self, kind: Block) -> Result<(), String> {
        let open = self.blocks.last().is_some_and(|(open, _)| *open == kind);
        if std::mem::take(&mut self.open) && open {
            return Ok(());
        }
        Err(format!("{kind:?} ends outside its block"))
    }

    fn compare(self, answer: &Answer) -> Result<(), String> {
        let (mut blocks, mut calls) = (Vec::new(), Vec::new());
        for part in &answer.parts {
            match part {
                AnswerPart::Text(part) => blocks.push((Block::Text, part.text.to_string())),
                AnswerPart::Reasoning(part) => {
                    blocks.push((Block::Reasoning, part.text.to_string()));
                }
                AnswerPart::ToolCall(call) => calls.push(call.clone()),
            }
        }
        if self.open || self.blocks != blocks {
            return Err(format!("the blocks told, {:?}, are not {blocks:?}", self.blocks));
        }
        if self.calls != calls {
            return Err(format!("the calls told, {:?}, are not {calls:?}", self.calls));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_breaks_a_rule_is_found_out() {
        let finish = || Ok(ModelDelta::Finish(Box::default()));
        for (items, rule) in [
            (vec![], "the stream is empty"),
            (vec![Ok(ModelDelta::TextStart)], "the stream ends without an end"),
            (vec![finish(), finish()], "something follows the answer"),
            (vec![Ok(ModelDelta::TextEnd), finish()], "Text ends outside its block"),
            (
                vec![Ok(ModelDelta::TextStart), Ok(ModelDelta::Reasoning("x".into())), finish()],
                "Reasoning grows outside its block",
            ),
            (
                vec![Ok(ModelDelta::TextStart), Ok(ModelDelta::TextEnd), finish()],
                r#"the blocks told, [(Text, "")], are not []"#,
            ),
        ] {
            assert_eq!(check_stream(&items), Err(rule.to_owned()));
        }
    }
}
