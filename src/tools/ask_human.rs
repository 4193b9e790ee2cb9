//! The tool that asks the person. It has no executor: its result is the answer, from outside.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::plan::Plan;
use crate::domain::question::{Question, Questions, QuestionsError};
use crate::tools::input::{self, InputError};
use crate::tools::tool::Tool;

/// The tool `ask-human`.
#[derive(Debug)]
pub struct AskHuman {
    descriptor: ToolDescriptor,
}

/// What the model is told to write; [`Questions::read`] takes more than that.
#[derive(Deserialize, JsonSchema)]
struct Input {
    /// What to ask, all of it in one form.
    #[expect(dead_code, reason = "only the schema and the check of its form are made of it")]
    questions: Vec<Question>,
}

impl AskHuman {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        let description = "Asks the person questions and waits for the answers. Use it when only \
            they can decide; not for permissions, which are asked for by themselves.";
        Self {
            descriptor: ToolDescriptor {
                tool_id: "ask_human".to_owned(),
                name: "ask-human".to_owned(),
                description: description.to_owned(),
                input_schema: input::schema::<Input>(),
                execution: Execution::Async,
                requires_human: true,
            },
        }
    }
}

impl Default for AskHuman {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for AskHuman {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, input: &Json) -> Result<Plan, InputError> {
        match Questions::read(input) {
            Ok(_) => Ok(Plan::default()),
            Err(QuestionsError::Form(error)) => Err(input::misfit(input, &error)),
            Err(error) => Err(InputError::field("questions", error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::rig::Rig;
    use serde_json::json;

    fn check(input: &serde_json::Value, expected: Result<(), &str>) {
        let plan = AskHuman::new().plan(&Json::from_value(input));
        let plan = plan.map(|plan| assert_eq!(plan, Plan::default()));
        assert_eq!(plan.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn questions_touch_nothing_and_what_is_none_names_its_field() {
        check(&json!({ "questions": [{ "id": "a", "text": "Which?", "options": ["x"] }] }), Ok(()));
        check(&json!({ "question": "Go on?" }), Ok(()));
        check(
            &json!({ "questions": [{ "id": "a" }] }),
            Err("the input field `questions` does not fit: missing field `text`"),
        );
        check(
            &json!({ "questions": [] }),
            Err("the input field `questions` does not fit: ask at least one question"),
        );
    }

    #[tokio::test]
    async fn it_has_no_executor() {
        let ran = Rig::new().run(&AskHuman::new(), json!({ "question": "Go on?" })).await;
        let text = "ask_human cannot be run here; its result comes from outside";
        assert_eq!((ran.text.as_str(), ran.is_error), (text, true));
    }
}
