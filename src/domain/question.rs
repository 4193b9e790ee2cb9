//! Questions to a person: the input and the result of the tool `ask-human`
//! (`design/turn-runtime.md` section 9).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::json::{self, Json};
use crate::domain::turn::event::ToolResultData;

/// What a model asks, in one form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions {
    /// The questions, in order; at least one.
    pub questions: Vec<Question>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What its answer is called in the result.
    pub id: String,
    /// The question.
    pub text: String,
    /// What can be chosen; free text is always possible too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub options: Option<Vec<String>>,
    /// Whether several options can be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub multiple: Option<bool>,
}

/// An input that asks nothing.
#[derive(Debug, thiserror::Error)]
pub enum MalformedQuestions {
    /// It has another form.
    #[error(
        "neither a list `questions` of {{id, text, options?, multiple?}} nor a `question`: {0}"
    )]
    Form(#[from] serde_json::Error),
    /// There is no question in it.
    #[error("`questions` is empty")]
    Empty,
    /// Two questions have one id.
    #[error("two questions have the id {0:?}")]
    IdTwice(String),
}

/// The id of the question in the short form `{question}`.
pub const ONLY_QUESTION: &str = "answer";

impl Questions {
    /// Reads the input of the tool: `{questions: […]}`, or the short form `{question}`.
    ///
    /// # Errors
    /// [`MalformedQuestions`] if it has neither form, asks nothing, or uses an id twice.
    pub fn read(input: &Json) -> Result<Self, MalformedQuestions> {
        #[derive(Deserialize)]
        struct Short {
            question: String,
        }
        if let Ok(short) = input.read::<Short>() {
            let (id, text) = (ONLY_QUESTION.to_owned(), short.question);
            return Ok(Self {
                questions: vec![Question { id, text, options: None, multiple: None }],
            });
        }
        let form: Self = input.read()?;
        if form.questions.is_empty() {
            return Err(MalformedQuestions::Empty);
        }
        let mut ids = std::collections::BTreeSet::new();
        match form.questions.iter().find(|question| !ids.insert(question.id.as_str())) {
            Some(twice) => Err(MalformedQuestions::IdTwice(twice.id.clone())),
            None => Ok(form),
        }
    }
}

/// What a person did with a form of questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Answered: the chosen options and free text of each question, by its id.
    Answered(BTreeMap<String, Vec<String>>),
    /// Sent it away unanswered.
    Dismissed,
}

impl Answer {
    /// As the result of the call.
    #[must_use]
    pub fn to_result(&self) -> ToolResultData {
        #[derive(Serialize)]
        struct Output<'a> {
            outcome: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            answers: Option<&'a BTreeMap<String, Vec<String>>>,
        }
        let (outcome, answers) = match self {
            Self::Answered(answers) => ("answered", Some(answers)),
            Self::Dismissed => ("dismissed", None),
        };
        ToolResultData {
            output: Json::of(&Output { outcome, answers }),
            is_error: answers.is_none(),
            metadata: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> Result<Questions, MalformedQuestions> {
        Questions::read(&Json::parse(input).expect("json"))
    }

    #[test]
    fn both_forms_are_read() {
        let short = read(r#"{"question":"Why?"}"#).expect("short");
        assert_eq!(short.questions.len(), 1);
        assert_eq!(short.questions[0].id, ONLY_QUESTION);
        let form =
            read(r#"{"questions":[{"id":"a","text":"A?","options":["x","y"],"multiple":true}]}"#);
        let question = form.expect("form").questions.remove(0);
        assert_eq!(question.options, Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(question.multiple, Some(true));
    }

    #[test]
    fn what_asks_nothing_is_refused() {
        assert!(matches!(read(r#"{"questions":[]}"#), Err(MalformedQuestions::Empty)));
        assert!(matches!(read(r#"{"text":"x"}"#), Err(MalformedQuestions::Form(_))));
        let twice = r#"{"questions":[{"id":"a","text":"1"},{"id":"a","text":"2"}]}"#;
        assert!(matches!(read(twice), Err(MalformedQuestions::IdTwice(id)) if id == "a"));
    }

    #[test]
    fn answers_are_written_as_the_contract_has_them() {
        let answers = BTreeMap::from([("a".to_owned(), vec!["x".to_owned()])]);
        let answered = Answer::Answered(answers).to_result();
        assert_eq!(answered.output.get(), r#"{"outcome":"answered","answers":{"a":["x"]}}"#);
        assert!(!answered.is_error);
        let dismissed = Answer::Dismissed.to_result();
        assert_eq!(dismissed.output.get(), r#"{"outcome":"dismissed"}"#);
        assert!(dismissed.is_error);
    }
}
