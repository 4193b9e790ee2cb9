//! The guide's script, and what it answers to a request: a pure function of the two.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use crate::domain::json::Json;
use crate::domain::message::{Message, ReasoningPart, TextPart};
use crate::models::delta::{Answer, AnswerPart, ProviderToolCall};
use crate::models::request::ModelRequest;

/// More of a tool's result is not quoted.
const QUOTED_CHARS_MAX: usize = 200;
/// An answer goes through fewer steps than this; a circle in a script ends here.
const STEPS_MAX: usize = 16;

/// A script; `assets/guide.toml` explains its form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    first: String,
    otherwise: String,
    steps: BTreeMap<String, Step>,
    topics: Vec<Topic>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(default)]
    reasoning: String,
    say: String,
    call: Option<Call>,
    absent: Option<String>,
    #[serde(default)]
    results: Vec<Outcome>,
    then: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    input: toml::Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome {
    #[serde(default)]
    words: Vec<String>,
    then: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    words: Vec<String>,
    step: String,
}

impl Script {
    /// Reads a script.
    pub(super) fn parse(toml: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(toml)
    }

    /// What the guide answers.
    ///
    /// Where it is follows from the messages: a call of its own with a result, and it goes on from
    /// there; else the last message of a person is a question about some topic. A first message
    /// about none of them, and it begins. What a person asked while a tool ran is answered first.
    pub(super) fn reply(&self, request: &ModelRequest) -> Answer {
        let mut speech = Speech { script: self, request, parts: Vec::new(), quote: String::new() };
        let last = request.messages.iter().rposition(|it| matches!(it, Message::Assistant(_)));
        let Some(last) = last else {
            return speech.run(self.asked_about(&request.messages).unwrap_or(&self.first));
        };
        let (before, news) = request.messages.split_at(last + 1);
        let Some((outcome, result)) = self.outcome(before.last(), news) else {
            return speech.run(self.asked_about(news).unwrap_or(&self.otherwise));
        };
        if let Some(step) = self.asked_about(news).and_then(|topic| self.steps.get(topic)) {
            speech.say(&step.say);
        }
        speech.quote = quote(result);
        speech.run(outcome)
    }

    /// The step after the call in `asking`, whose result is among `news`, and that result.
    fn outcome<'a>(
        &self,
        asking: Option<&'a Message>,
        news: &'a [Message],
    ) -> Option<(&str, &'a str)> {
        let Some(Message::Assistant(asking)) = asking else { return None };
        let call = asking.tool_calls().next()?;
        let mut steps = self.steps.values();
        let calls = |step: &&Step| step.call.as_ref().is_some_and(|it| it.tool == call.tool_name);
        let step = steps.find(calls)?;
        let result = news.iter().find_map(|message| match message {
            Message::Tool(tool) if tool.tool_call_id == call.tool_call_id => Some(&tool.content),
            Message::Tool(_) | Message::User(_) | Message::Assistant(_) => None,
        })?;
        let said = words_of(result);
        let mut outcomes = step.results.iter();
        let outcome = outcomes.find(|it| it.words.is_empty() || has_any(&said, &it.words))?;
        Some((&outcome.then, result))
    }

    /// The step about what a person last asked.
    fn asked_about(&self, news: &[Message]) -> Option<&str> {
        let asked = news.iter().rev().find_map(|message| match message {
            Message::User(user) => Some(words_of(&user.plain_text())),
            Message::Tool(_) | Message::Assistant(_) => None,
        })?;
        let topic = self.topics.iter().find(|topic| has_any(&asked, &topic.words))?;
        Some(&topic.step)
    }
}

/// An answer in the making.
struct Speech<'a> {
    script: &'a Script,
    request: &'a ModelRequest,
    parts: Vec<AnswerPart>,
    /// What `{result}` stands for.
    quote: String,
}

impl<'a> Speech<'a> {
    /// Goes through the steps from `name` on, to a call or an end.
    fn run(mut self, name: &'a str) -> Answer {
        let mut next = Some(name);
        for _ in 0..STEPS_MAX {
            let Some(step) = next.and_then(|name| self.script.steps.get(name)) else { break };
            self.reason(&step.reasoning);
            self.say(&step.say);
            next = match &step.call {
                Some(call) if self.is_offered(&call.tool) => return self.call(call),
                Some(_) => step.absent.as_deref(),
                None => step.then.as_deref(),
            };
        }
        Answer { parts: self.parts, finish_reason: "stop".to_owned(), ..Answer::default() }
    }

    fn is_offered(&self, tool: &str) -> bool {
        self.request.tools.iter().any(|offered| offered.name == tool)
    }

    fn call(mut self, call: &Call) -> Answer {
        self.parts.push(AnswerPart::ToolCall(ProviderToolCall {
            name: call.tool.clone(),
            arguments: Json::of(&call.input),
            provider_options: None,
        }));
        Answer { parts: self.parts, finish_reason: "tool-calls".to_owned(), ..Answer::default() }
    }

    fn reason(&mut self, reasoning: &str) {
        if !reasoning.is_empty() {
            let part = ReasoningPart { text: reasoning.into(), provider_options: None };
            self.parts.push(AnswerPart::Reasoning(part));
        }
    }

    /// Adds a paragraph to the text.
    fn say(&mut self, text: &str) {
        let text = text.trim().replace("{result}", &self.quote);
        if let Some(AnswerPart::Text(said)) = self.parts.last_mut() {
            said.text = format!("{}\n\n{text}", said.text).into();
            return;
        }
        let part = TextPart { text: text.into(), provider_options: None };
        self.parts.push(AnswerPart::Text(part));
    }
}

/// A tool's result in one short line; of a person's answers only what the person said.
fn quote(result: &str) -> String {
    #[derive(Deserialize)]
    struct Answers {
        answers: HashMap<String, Vec<String>>,
    }
    let answers = serde_json::from_str::<Answers>(result).map(|it| it.answers);
    let said =
        answers.map(|answers| answers.into_values().flatten().collect::<Vec<_>>().join(", "));
    let text = said.as_deref().unwrap_or(result);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// The words of a text, in small letters, each between single spaces.
fn words_of(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(String::from(" "), |mut all, word| {
        all.push_str(word);
        all.push(' ');
        all
    })
}

fn has_any(words: &str, phrases: &[String]) -> bool {
    phrases.iter().any(|phrase| words.contains(&format!(" {phrase} ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::base::id::ToolCallId;
    use crate::domain::agent::{Execution, ToolDescriptor};
    use crate::domain::message::{AssistantMessage, ToolMessage, UserMessage};
    use crate::models::guide::WELCOME_TEXT;

    const TOOLS: [&str; 3] = ["read-file", "write-file", "ask-human"];
    const ANSWERED: &str =
        r#"{"outcome":"answered","answers":{"choice":["How to connect a real model"]}}"#;

    fn script() -> Script {
        Script::parse(include_str!("../../../assets/guide.toml")).expect("the script")
    }

    fn tool(name: &str) -> ToolDescriptor {
        ToolDescriptor {
            tool_id: name.replace('-', "_"),
            name: name.to_owned(),
            description: String::new(),
            input_schema: Json::of(&()),
            execution: Execution::Sync,
            requires_human: false,
        }
    }

    /// A conversation with the guide, as the loop would lead it.
    struct Talk {
        script: Script,
        request: ModelRequest,
        calls: usize,
    }

    /// The tool that an answer calls, if it calls one, and its text.
    type Reply = (Option<String>, String);

    impl Talk {
        fn with(tools: &[&str]) -> Self {
            let request = ModelRequest {
                system_prompt: "".into(),
                tools: tools.iter().map(|name| tool(name)).collect(),
                messages: Vec::new(),
                parameters: Json::of(&()),
            };
            Self { script: script(), request, calls: 0 }
        }

        fn reply(&mut self) -> Reply {
            let answer = self.script.reply(&self.request);
            self.calls += 1;
            let message = answer.into_message(|_| self.last_call());
            let call = message.tool_calls().next().map(|call| call.tool_name.clone());
            let text = message.plain_text();
            self.request.messages.push(Message::Assistant(Arc::new(message)));
            (call, text)
        }

        fn last_call(&self) -> ToolCallId {
            ToolCallId::from(format!("t_{}", self.calls))
        }

        fn say(&mut self, text: &str) -> Reply {
            self.request.messages.push(Message::User(Arc::new(UserMessage::text(text))));
            self.reply()
        }

        fn hand_in(&mut self, result: &str) {
            self.request.messages.push(Message::Tool(Arc::new(ToolMessage {
                content: result.into(),
                tool_call_id: self.last_call(),
                tool_name: String::new(),
                provider_options: None,
            })));
        }

        fn give(&mut self, result: &str) -> Reply {
            self.hand_in(result);
            self.reply()
        }
    }

    fn check_reply(reply: &Reply, call: Option<&str>, pieces: &[&str]) {
        assert_eq!(reply.0.as_deref(), call, "{}", reply.1);
        for piece in pieces {
            assert!(reply.1.contains(piece), "{piece:?} is not in {}", reply.1);
        }
    }

    #[test]
    fn the_tour_shows_markdown_a_tool_an_approval_and_a_question() {
        let mut talk = Talk::with(&TOOLS);
        let markdown = ["a script, not a language model", "\n- ", "\n|---|", "```sh\n"];
        check_reply(&talk.say("hi"), Some("read-file"), &markdown);
        check_reply(&talk.give(WELCOME_TEXT), Some("write-file"), &["That worked", "`notes.md`"]);
        check_reply(&talk.give("wrote 63 bytes"), Some("ask-human"), &["Thank you"]);
        check_reply(&talk.give(ANSWERED), None, &["Good choice", "base_url", "Ollama"]);
    }

    #[test]
    fn a_denial_is_understood_and_its_reason_quoted() {
        let mut talk = Talk::with(&TOOLS);
        talk.say("hi");
        talk.give(WELCOME_TEXT);
        let denied = "permission denied by the person:\nnot on my disk";
        let quoted = ["You said no", "> permission denied by the person: not on my disk"];
        check_reply(&talk.give(denied), Some("ask-human"), &quoted);
    }

    #[test]
    fn the_tour_goes_on_whatever_a_tool_gives_back() {
        let mut talk = Talk::with(&TOOLS);
        talk.say("hi");
        let gone = "welcome.md: no such file";
        check_reply(&talk.give(gone), Some("write-file"), &["did not work", "> welcome.md"]);
        let lost = "the run was interrupted, its outcome is unknown and it was not repeated";
        check_reply(&talk.give(lost), Some("ask-human"), &["nobody knows"]);
        let closed = r#"{"outcome":"dismissed"}"#;
        check_reply(&talk.give(closed), None, &["closed the question", "base_url"]);

        let mut talk = Talk::with(&TOOLS);
        talk.say("hi");
        check_reply(&talk.give("denied by a rule"), Some("write-file"), &["> denied by a rule"]);
        let full = "error: no space left on device";
        check_reply(&talk.give(full), Some("ask-human"), &["writing did not work", full]);
        check_reply(&talk.give("no human is available"), None, &["> no human", "base_url"]);
    }

    #[test]
    fn every_choice_has_its_answer() {
        for (choice, pieces) in [
            ("The most useful keys", ["Here they are.", "most useful keys"]),
            ("Nothing, I look around myself", ["I leave you to it", "base_url"]),
            ("what is the meaning of life?", ["> what is the meaning of life?", "base_url"]),
        ] {
            let mut talk = Talk::with(&["ask-human"]);
            check_reply(&talk.say("hi"), Some("ask-human"), &["not a language model"]);
            let answers = ANSWERED.replace("How to connect a real model", choice);
            check_reply(&talk.give(&answers), None, &pieces);
        }
    }

    #[test]
    fn a_tool_that_is_not_there_is_left_out() {
        check_reply(&Talk::with(&[]).say("hi"), None, &["not a language model", "base_url"]);
        check_reply(&Talk::with(&["write-file"]).say("hi"), Some("write-file"), &["notes.md"]);
    }

    #[test]
    fn later_messages_are_answered_by_their_words() {
        for (asked, piece) in [
            ("Which keys are there?", "## The most useful keys"),
            ("how do approvals work", "## Approvals"),
            ("I want to use Ollama", "## Connecting a model"),
            ("where are my SESSIONS", "## Sessions"),
            ("can I delete one", "## Deleting"),
            ("how do I PURGE a session", "`D` in the list"),
            ("restore it", "sessions restore"),
            ("archive", "`a` in the list"),
            ("can I fork", "`f` in the timeline"),
            ("what waits?", "`Alt-W` edits one"),
            ("which keys take a message back", "`Alt-Up`, `Alt-W`"),
            ("how do I quit", "## Stopping and leaving"),
            ("are you an AI?", "no language model behind me"),
            ("42", "I am only a script"),
            ("monkeys", "I am only a script"),
        ] {
            let mut talk = Talk::with(&[]);
            talk.say("hi");
            check_reply(&talk.say(asked), None, &[piece, "You can ask me about"]);
        }
        let mut talk = Talk::with(&TOOLS);
        let earlier = AssistantMessage::text("said by another model");
        talk.request.messages.push(Message::Assistant(Arc::new(earlier)));
        check_reply(&talk.say("the tour, please"), Some("read-file"), &["I am the guide"]);
    }

    #[test]
    fn a_first_message_about_a_topic_is_answered() {
        for (asked, piece) in [("keys", "## The most useful keys"), ("sessions", "## Sessions")] {
            check_reply(&Talk::with(&TOOLS).say(asked), None, &[piece]);
        }
        check_reply(&Talk::with(&TOOLS).say("hi"), Some("read-file"), &["I am the guide"]);
    }

    #[test]
    fn a_message_while_a_tool_runs_is_answered_before_the_tour_goes_on() {
        let mut talk = Talk::with(&TOOLS);
        talk.say("hi");
        talk.hand_in(WELCOME_TEXT);
        let both = ["## Sessions", "notes.md"];
        check_reply(&talk.say("what about sessions?"), Some("write-file"), &both);
        talk.hand_in("cancelled");
        check_reply(&talk.say("enough"), None, &["You stopped me there"]);
    }

    #[test]
    fn the_script_leads_somewhere_from_everywhere() {
        let script = script();
        let named = |name: &str| script.steps.get(name).unwrap_or_else(|| panic!("no step {name}"));
        let mut led_to: BTreeSet<&str> = [script.first.as_str(), &script.otherwise].into();
        led_to.extend(script.topics.iter().map(|topic| topic.step.as_str()));
        let mut tools = BTreeSet::new();
        for step in script.steps.values() {
            let outcomes = step.results.iter().map(|outcome| &outcome.then);
            led_to.extend(outcomes.chain(&step.absent).chain(&step.then).map(String::as_str));
            if let Some(call) = &step.call {
                assert!(tools.insert(&call.tool), "{} is called twice", call.tool);
                let open = step.results.iter().filter(|outcome| outcome.words.is_empty());
                assert_eq!(open.count(), 1);
                assert!(step.results.last().is_some_and(|outcome| outcome.words.is_empty()));
                assert!(step.absent.is_some() && step.then.is_none());
            }
            // Without any tool, whatever leads on ends before the limit.
            let onward = |step: &&Step| step.then.as_deref().or(step.absent.as_deref()).map(named);
            let steps = std::iter::successors(Some(step), onward);
            assert!(steps.take(STEPS_MAX).count() < STEPS_MAX);
        }
        assert_eq!(led_to, script.steps.keys().map(String::as_str).collect());
    }

    #[test]
    fn a_long_result_is_quoted_in_part() {
        assert_eq!(quote(&"é ".repeat(300)), "é ".repeat(100) + "…");
    }
}
