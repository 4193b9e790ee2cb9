//! The guide: the model that answers when there is no other. It is a script, says so, needs nothing
//! and shows what the program does, through the same seam as every model.

mod script;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::domain::agent::ModelDescriptor;
use crate::models::delta::{Answer, AnswerPart, ModelDelta};
use crate::models::error::{Failure, ModelError, Report};
use crate::models::guide::script::Script;
use crate::models::model::{DeltaStream, Model};
use crate::models::request::ModelRequest;

/// The name of the guide's provider and of its only model.
pub const GUIDE: &str = "guide";
/// From one word to the next: fast enough not to bore, slow enough to be seen streaming.
pub const PACE: Duration = Duration::from_millis(20);
/// The file that the guide reads in the folder of its session; whoever makes the folder puts it
/// there, with [`WELCOME_TEXT`].
pub const WELCOME_FILE: &str = "welcome.md";
/// What stands in [`WELCOME_FILE`].
pub const WELCOME_TEXT: &str = include_str!("../../assets/welcome.md");

/// The guide's descriptor.
#[must_use]
pub fn descriptor() -> ModelDescriptor {
    ModelDescriptor { provider: GUIDE.to_owned(), model: GUIDE.to_owned() }
}

/// The scripted model.
#[derive(Debug)]
pub struct Guide {
    descriptor: ModelDescriptor,
    script: Script,
    pace: Duration,
}

impl Guide {
    /// The guide, with this pause before each word: [`PACE`] for people, none for tests.
    #[must_use]
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "the script is part of the program, and every test of the guide reads it"
    )]
    pub fn new(pace: Duration) -> Self {
        let script = Script::parse(include_str!("../../assets/guide.toml"));
        let script = script.expect("the built-in script has the form of a script");
        Self { descriptor: descriptor(), script, pace }
    }
}

impl Model for Guide {
    fn descriptor(&self) -> &ModelDescriptor {
        &self.descriptor
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> DeltaStream {
        let (deltas, pace) = (deltas(self.script.reply(&request)), self.pace);
        stream::unfold(Some((deltas, cancel)), move |state| async move {
            let (mut deltas, cancel) = state?;
            let delta = deltas.pop_front()?;
            let speaks = matches!(delta, ModelDelta::Text(_) | ModelDelta::Reasoning(_));
            let pause = async {
                if speaks && !pace.is_zero() {
                    sleep(pace).await;
                }
            };
            tokio::select! {
                biased;
                // Neither wait loses anything.
                () = cancel.cancelled() => Some((Err(cancelled()), None)),
                () = pause => Some((Ok(delta), Some((deltas, cancel)))),
            }
        })
        .boxed()
    }
}

fn cancelled() -> ModelError {
    let report =
        Report { provider: GUIDE.to_owned(), model: Some(GUIDE.to_owned()), ..Report::default() };
    ModelError { failure: Failure::Cancelled, report: Box::new(report) }
}

/// An answer as it would come: word by word.
fn deltas(answer: Answer) -> VecDeque<ModelDelta> {
    let mut deltas = VecDeque::new();
    let words = |text: &Arc<str>| -> Vec<Arc<str>> {
        text.split_inclusive([' ', '\n']).map(Arc::from).collect()
    };
    for part in &answer.parts {
        match part {
            AnswerPart::Text(part) => {
                deltas.push_back(ModelDelta::TextStart);
                deltas.extend(words(&part.text).into_iter().map(ModelDelta::Text));
                deltas.push_back(ModelDelta::TextEnd);
            }
            AnswerPart::Reasoning(part) => {
                deltas.push_back(ModelDelta::ReasoningStart);
                deltas.extend(words(&part.text).into_iter().map(ModelDelta::Reasoning));
                deltas.push_back(ModelDelta::ReasoningEnd);
            }
            AnswerPart::ToolCall(call) => deltas.push_back(ModelDelta::ToolCall(call.clone())),
        }
    }
    deltas.push_back(ModelDelta::Finish(Box::new(answer)));
    deltas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json::Json;
    use crate::domain::message::{Message, UserMessage};
    use crate::testing::stream_rules::check_stream;

    fn request() -> ModelRequest {
        ModelRequest {
            system_prompt: "".into(),
            tools: Arc::from([]),
            messages: vec![Message::User(Arc::new(UserMessage::text("hi")))],
            parameters: Json::of(&()),
        }
    }

    #[tokio::test]
    async fn it_keeps_the_rules_of_a_model() {
        let guide = Guide::new(Duration::ZERO);
        let items: Vec<_> = guide.stream(request(), CancellationToken::new()).collect().await;
        assert_eq!(check_stream(&items), Ok(()));
        assert_eq!(guide.descriptor().to_string(), "guide/guide");
    }

    #[tokio::test(start_paused = true)]
    async fn it_speaks_word_by_word_at_its_pace() {
        let start = tokio::time::Instant::now();
        let stream = Guide::new(PACE).stream(request(), CancellationToken::new());
        let items: Vec<_> = stream.collect().await;
        let spoken = |item: &&Result<_, _>| {
            matches!(item, Ok(ModelDelta::Text(_) | ModelDelta::Reasoning(_)))
        };
        let words = u32::try_from(items.iter().filter(spoken).count()).expect("few");
        assert!(words > 100, "{words}");
        assert_eq!(start.elapsed(), words * PACE);
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_be_stopped_between_words() {
        let cancel = CancellationToken::new();
        let mut stream = Guide::new(PACE).stream(request(), cancel.clone());
        assert_eq!(stream.next().await, Some(Ok(ModelDelta::ReasoningStart)));
        cancel.cancel();
        let rest: Vec<_> = stream.collect().await;
        assert_eq!(rest, [Err(cancelled())]);
    }
}
