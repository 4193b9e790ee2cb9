//! A form of questions that a person is answering.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::app::command::Draft;
use crate::domain::json::Json;
use crate::domain::question::{PLAIN_ID, Question, Questions};
use crate::tui::editor::{Editor, Shape};

/// See the module. Nothing is chosen in it until the person chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The questions and what has been answered so far.
    pub fields: Vec<Field>,
    /// Which question has the focus.
    pub at: usize,
    /// What of it.
    pub spot: Spot,
}

/// A question and what has been answered so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The question.
    pub question: Question,
    /// The options that are chosen, by their place.
    pub chosen: BTreeSet<usize>,
    /// The free text.
    pub text: Editor,
}

/// What of a question has the focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// An option, by its place.
    Option(usize),
    /// The free text.
    Text,
}

/// What a form asks for before it can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filled {
    /// Nothing: these are the answers, by the ids of the questions.
    All(Vec<(String, Vec<String>)>),
    /// This question has no answer yet.
    Missing(usize),
}

/// How a form is kept on the disk, as the text of a draft.
#[derive(Serialize, Deserialize)]
struct KeptField {
    chosen: BTreeSet<usize>,
    text: Draft,
}

impl Form {
    /// An empty form for the input of the tool. An input that cannot be read as questions is shown
    /// as it is, with room for a free answer.
    #[must_use]
    pub fn new(input: &Json) -> Self {
        let questions = Questions::read(input)
            .map_or_else(|_| vec![unreadable(input)], |asked| asked.list().to_vec());
        let fields = questions.into_iter().map(Field::new).collect();
        let mut form = Self { fields, at: 0, spot: Spot::Text };
        form.spot = form.first_spot();
        form
    }

    /// The question that has the focus.
    #[must_use]
    pub fn field(&self) -> Option<&Field> {
        self.fields.get(self.at)
    }

    /// The text that has the focus, to type into.
    pub fn text_mut(&mut self) -> Option<&mut Editor> {
        self.fields.get_mut(self.at).map(|field| &mut field.text)
    }

    /// The option above or below, in this question.
    pub fn move_by(&mut self, step: isize) {
        let Spot::Option(at) = self.spot else { return };
        let last = self.field().map_or(0, |field| field.options().len().saturating_sub(1));
        self.spot = Spot::Option(at.saturating_add_signed(step).min(last));
    }

    /// The free text of this question, or the next question behind it; after the last the first.
    pub fn go_on(&mut self) {
        match self.spot {
            Spot::Option(_) => self.spot = Spot::Text,
            Spot::Text => self.go_to((self.at + 1) % self.fields.len().max(1)),
        }
    }

    /// A question.
    pub fn go_to(&mut self, question: usize) {
        self.at = question;
        self.spot = self.first_spot();
    }

    /// The free text of the question that has the focus.
    pub fn go_to_text(&mut self) {
        self.spot = Spot::Text;
    }

    /// Chooses the option that has the focus, or takes the choice back. Where one option only can
    /// be chosen, it takes the place of the other.
    pub fn toggle(&mut self) {
        let Spot::Option(at) = self.spot else { return };
        let Some(field) = self.fields.get_mut(self.at) else { return };
        if field.chosen.remove(&at) {
            return;
        }
        if !field.question.multiple {
            field.chosen.clear();
        }
        field.chosen.insert(at);
    }

    /// The answers, or the first question that has none.
    #[must_use]
    pub fn filled(&self) -> Filled {
        let mut order = (self.at..self.fields.len()).chain(0..self.at);
        let is_missing =
            |at: &usize| self.fields.get(*at).is_some_and(|field| field.answer().is_empty());
        if let Some(missing) = order.find(is_missing) {
            return Filled::Missing(missing);
        }
        let answers = self.fields.iter().map(|field| (field.question.id.clone(), field.answer()));
        Filled::All(answers.collect())
    }

    /// Whether nothing has been chosen or typed.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.fields.iter().all(|field| field.chosen.is_empty() && field.text.is_empty())
    }

    /// All that was typed, for the history when the question goes away.
    #[must_use]
    pub fn typed(&self) -> String {
        let texts = self.fields.iter().map(|field| field.text.text());
        texts.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// As it is kept on the disk; empty for an untouched form.
    #[must_use]
    pub fn draft(&self) -> Draft {
        if self.is_untouched() {
            return Draft::default();
        }
        let fields: Vec<KeptField> = self.fields.iter().map(Field::kept).collect();
        Draft { text: Json::of(&fields).get().to_owned(), ..Draft::default() }
    }

    /// Takes over what was kept, unless something has been chosen or typed since.
    pub fn restore(&mut self, draft: &Draft) {
        let kept = serde_json::from_str::<Vec<KeptField>>(&draft.text).unwrap_or_default();
        if !self.is_untouched() {
            return;
        }
        for (field, kept) in self.fields.iter_mut().zip(kept) {
            let options = field.options().len();
            field.chosen = kept.chosen.into_iter().filter(|option| *option < options).collect();
            field.text = Editor::with_draft(Shape::Page, &kept.text);
        }
    }

    fn first_spot(&self) -> Spot {
        match self.field() {
            Some(field) if !field.options().is_empty() => Spot::Option(0),
            Some(_) | None => Spot::Text,
        }
    }
}

impl Field {
    fn new(question: Question) -> Self {
        Self { question, chosen: BTreeSet::new(), text: Editor::new(Shape::Page) }
    }

    /// What can be chosen.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.question.options
    }

    fn answer(&self) -> Vec<String> {
        let chosen = self.chosen.iter().filter_map(|at| self.options().get(*at)).cloned();
        let text = Some(self.text.text()).filter(|text| !text.trim().is_empty());
        chosen.chain(text).collect()
    }

    fn kept(&self) -> KeptField {
        KeptField { chosen: self.chosen.clone(), text: self.text.draft() }
    }
}

fn unreadable(input: &Json) -> Question {
    let (id, text) = (PLAIN_ID.to_owned(), input.to_model_text());
    Question { id, text, options: Vec::new(), multiple: false }
}
