//! Questions that an agent asks a person, and the answers as the tool's result
//! (`design/turn-runtime.md` section 9).

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::json::Json;
use crate::domain::turn::event::ToolResultData;

/// The name under which a model knows the tool that asks a person (`design/tools.md`).
pub const ASK_HUMAN: &str = "ask-human";

/// The id of the one question of an input without a list.
pub const PLAIN_ID: &str = "question";

/// What is asked in one call; at least one question, each with an id of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Questions(Vec<Question>);

/// One question. It can always be answered with free text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// A short name for the question; the answers come under it.
    pub id: String,
    /// The question itself.
    pub text: String,
    /// Answers to choose from; the person may always write another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Whether several of the options may be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiple: bool,
}

/// Why an input holds no questions.
#[derive(Debug, thiserror::Error)]
pub enum QuestionsError {
    /// It has another form.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// There is nothing to answer.
    #[error("ask at least one question")]
    Empty,
    /// A question says nothing.
    #[error("question {0:?} has no text")]
    NoText(String),
    /// Two answers would come under one name.
    #[error("two questions have the id {0:?}; give each its own")]
    SameId(String),
}

#[derive(Deserialize)]
struct Input {
    questions: Option<Vec<Question>>,
    question: Option<String>,
}

impl Questions {
    /// Reads the input of a call: `{questions: [{id, text, options?, multiple?}]}`, or a plain
    /// `{question}`, whose id is `question`.
    ///
    /// # Errors
    /// [`QuestionsError`]: another form, or questions that cannot be answered.
    pub fn read(input: &Json) -> Result<Self, QuestionsError> {
        let Input { questions, question } = input.read()?;
        let plain = question.map(|text| {
            vec![Question { id: PLAIN_ID.to_owned(), text, options: Vec::new(), multiple: false }]
        });
        let questions = questions.or(plain).unwrap_or_default();
        if questions.is_empty() {
            return Err(QuestionsError::Empty);
        }
        let mut ids = HashSet::new();
        for question in &questions {
            if question.text.trim().is_empty() {
                return Err(QuestionsError::NoText(question.id.clone()));
            }
            if !ids.insert(&question.id) {
                return Err(QuestionsError::SameId(question.id.clone()));
            }
        }
        Ok(Self(questions))
    }

    /// The questions in their order.
    #[must_use]
    pub fn list(&self) -> &[Question] {
        &self.0
    }
}

/// What a person says to questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To each question, by its id and in the order of the questions, what was chosen or written.
    Answered(Vec<(String, Vec<String>)>),
    /// They do not want to answer.
    Dismissed,
}

impl Answer {
    /// The result of the call that asked.
    #[must_use]
    pub fn to_result(&self) -> ToolResultData {
        let (output, is_error) = match self {
            Self::Answered(answers) => {
                let answers: serde_json::Map<_, _> = answers
                    .iter()
                    .map(|(id, texts)| (id.clone(), texts.as_slice().into()))
                    .collect();
                (serde_json::json!({ "outcome": "answered", "answers": answers }), false)
            }
            Self::Dismissed => (serde_json::json!({ "outcome": "dismissed" }), true),
        };
        ToolResultData { output: Json::from_value(&output), is_error, metadata: None }
    }
}

/// Whether the result of a call that asked says that nobody wanted to answer.
#[must_use]
pub fn is_dismissed(output: &Json) -> bool {
    output.to_value().get("outcome").is_some_and(|outcome| outcome == "dismissed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Questions, String> {
        Questions::read(&Json::parse(json).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn questions_are_read_in_both_forms() {
        let questions = read(
            r#"{"questions":[{"id":"a","text":"Which?","options":["x","y"],"multiple":true,"header":"H"},{"id":"b","text":"Why?"}]}"#,
        );
        let plain = |id: &str, text: &str| Question {
            id: id.to_owned(),
            text: text.to_owned(),
            options: Vec::new(),
            multiple: false,
        };
        let options = vec!["x".to_owned(), "y".to_owned()];
        let first = Question { options, multiple: true, ..plain("a", "Which?") };
        assert_eq!(questions.unwrap().list(), [first, plain("b", "Why?")]);
        let one = read(r#"{"question":"Go on?"}"#);
        assert_eq!(one.unwrap().list(), [plain("question", "Go on?")]);
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        for (input, why) in [
            ("{}", "ask at least one question"),
            (r#"{"questions":[]}"#, "ask at least one question"),
            (r#"{"question":" "}"#, "question \"question\" has no text"),
            (
                r#"{"questions":[{"id":"a","text":"x"},{"id":"a","text":"y"}]}"#,
                "two questions have the id \"a\"; give each its own",
            ),
        ] {
            assert_eq!(read(input).unwrap_err(), why, "{input}");
        }
        assert!(
            read(r#"{"questions":[{"id":"a"}]}"#).unwrap_err().contains("missing field `text`")
        );
        assert!(read("7").is_err());
    }

    #[test]
    fn an_answer_becomes_the_result_of_the_call() {
        let answers = vec![
            ("b".to_owned(), vec!["x".to_owned(), "my own".to_owned()]),
            ("a".to_owned(), Vec::new()),
        ];
        let result = Answer::Answered(answers).to_result();
        assert_eq!(
            Json::of(&result).get(),
            r#"{"output":{"outcome":"answered","answers":{"b":["x","my own"],"a":[]}},"isError":false}"#
        );
        assert_eq!(
            Json::of(&Answer::Dismissed.to_result()).get(),
            r#"{"output":{"outcome":"dismissed"},"isError":true}"#
        );
        assert!(is_dismissed(&Answer::Dismissed.to_result().output));
        assert!(!is_dismissed(&Answer::Answered(Vec::new()).to_result().output));
    }
}
