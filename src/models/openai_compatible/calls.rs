//! Tool calls out of their fragments, which come several at once and in as many dialects as there
//! are servers.

use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::domain::json::Json;
use crate::models::delta::ProviderToolCall;
use crate::models::openai_compatible::continuation::{CallOptions, keep};
use crate::models::openai_compatible::wire::{Fragment, Text};

/// The calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

/// What a fragment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It began a call.
    Began,
    /// A call went on.
    WentOn,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra_content: Option<Json>,
}

impl Calls {
    /// Takes a fragment in.
    ///
    /// By the book it names its call by an index, and only the first one has id and name. Some
    /// servers leave the index out and send whole calls, or give every call the index 0 and an id
    /// of its own; some repeat id or name in every fragment.
    pub(super) fn take(&mut self, fragment: Fragment<'_>) -> Taken {
        let function = fragment.function.unwrap_or_default();
        let text =
            |text: Option<Text<'_>>| text.map(|text| text.0.into_owned()).unwrap_or_default();
        let (id, name) = (text(fragment.id), text(function.name));
        let known = self.0.iter().rposition(|call| match fragment.index {
            Some(index) => call.index == Some(index),
            None if !id.is_empty() => call.id == id,
            None => name.is_empty(),
        });
        let goes_on = |call: &Call| {
            let other = !id.is_empty() && !call.id.is_empty() && call.id != id;
            !other || name.is_empty()
        };
        let known = known.filter(|at| self.0.get(*at).is_some_and(goes_on));
        let taken = if known.is_some() { Taken::WentOn } else { Taken::Began };
        if taken == Taken::Began {
            self.0.push(Call { index: fragment.index, ..Call::default() });
        }
        let at = known.unwrap_or(self.0.len() - 1);
        if let Some(call) = self.0.get_mut(at) {
            call.grow(id, &name, function.arguments, fragment.extra_content);
        }
        taken
    }

    /// Whether no call has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The calls, whole. An id that two of them share names neither.
    pub(super) fn finish(self, provider: &str) -> Vec<ProviderToolCall> {
        let mut seen = HashSet::new();
        let shared: HashSet<_> = self
            .0
            .iter()
            .filter(|call| !seen.insert(&call.id))
            .map(|call| call.id.clone())
            .collect();
        let calls = self.0.into_iter().map(|call| {
            let id = Some(call.id).filter(|id| !id.is_empty() && !shared.contains(id));
            let options = CallOptions { id, extra_content: call.extra_content };
            ProviderToolCall {
                name: call.name,
                arguments: arguments(&call.arguments),
                provider_options: keep(provider, &options),
            }
        });
        calls.collect()
    }
}

impl Call {
    fn grow(
        &mut self,
        id: String,
        name: &str,
        arguments: Option<&RawValue>,
        extra_content: Option<&RawValue>,
    ) {
        if self.id.is_empty() {
            self.id = id;
        }
        if self.name != name {
            self.name.push_str(name);
        }
        match arguments.map(RawValue::get) {
            Some(string) if string.starts_with('"') => {
                let piece: Text<'_> = serde_json::from_str(string).unwrap_or_default();
                self.arguments.push_str(&piece.0);
            }
            // Some servers send the object itself.
            Some(json) => self.arguments.push_str(json),
            None => {}
        }
        if let Some(extra) = extra_content {
            self.extra_content = Json::parse(extra.get()).ok();
        }
    }
}

/// Arguments once they are whole: `design/turn-runtime.md` section 3, limits.
fn arguments(text: &str) -> Json {
    if text.trim().is_empty() {
        return Json::of(&serde_json::Map::new());
    }
    Json::parse(text).map_or_else(|_| Json::text(text), Json::with_safe_integers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls of some events, each a list of fragments: name, arguments and what is kept.
    fn check_calls(events: &[&str], calls: &[(&str, &str, &str)]) {
        let mut taken = Calls::default();
        for event in events {
            let fragments: Vec<Fragment<'_>> = serde_json::from_str(event).expect(event);
            for fragment in fragments {
                taken.take(fragment);
            }
        }
        let whole = taken.finish("lab");
        let kept = |call: &ProviderToolCall| {
            let options = call.provider_options.as_ref();
            options.map(|options| options.json().get().to_owned()).unwrap_or_default()
        };
        let whole: Vec<_> = whole
            .iter()
            .map(|call| (call.name.as_str(), call.arguments.get(), kept(call)))
            .collect();
        let calls: Vec<_> =
            calls.iter().map(|(name, input, kept)| (*name, *input, (*kept).to_owned())).collect();
        assert_eq!(whole, calls);
    }

    #[test]
    fn fragments_of_several_calls_may_be_interleaved() {
        check_calls(
            &[
                r#"[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]"#,
                r#"[{"index":1,"id":"b","function":{"name":"list","arguments":"{\"p"}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\":"}},{"index":1,"function":{"arguments":"\":2}"}}]"#,
                r#"[{"index":0,"function":{"arguments":"1}"}}]"#,
            ],
            &[
                ("read", r#"{"x":1}"#, r#"{"lab":{"id":"a"}}"#),
                ("list", r#"{"p":2}"#, r#"{"lab":{"id":"b"}}"#),
            ],
        );
    }

    #[test]
    fn whole_calls_without_an_index_or_all_with_the_first_are_told_apart() {
        for index in ["", r#""index":0,"#] {
            let call = |id: &str| {
                format!(r#"[{{{index}"id":"{id}","function":{{"name":"f","arguments":"{{}}"}}}}]"#)
            };
            check_calls(
                &[&call("a"), &call("b")],
                &[("f", "{}", r#"{"lab":{"id":"a"}}"#), ("f", "{}", r#"{"lab":{"id":"b"}}"#)],
            );
        }
        let nameless = r#"[{"function":{"name":"f","arguments":"{}"}}]"#;
        check_calls(&[nameless, nameless], &[("f", "{}", ""), ("f", "{}", "")]);
    }

    #[test]
    fn what_is_repeated_in_every_fragment_counts_once() {
        check_calls(
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]"#,
                r#"[{"index":0,"id":"other","function":{"name":"","arguments":null}}]"#,
            ],
            &[("f", "{}", r#"{"lab":{"id":"a"}}"#)],
        );
    }

    #[test]
    fn an_id_that_two_calls_share_is_not_kept() {
        check_calls(
            &[
                r#"[{"index":0,"id":"x","function":{"name":"f"}},{"index":1,"id":"x","function":{"name":"g"}}]"#,
            ],
            &[("f", "{}", ""), ("g", "{}", "")],
        );
    }

    #[test]
    fn arguments_keep_their_digits_and_what_is_no_json_becomes_a_string() {
        let deep = "[".repeat(65) + &"]".repeat(65);
        for (sent, kept) in [
            (r#""{\"id\":9007199254740993}""#, r#"{"id":"9007199254740993"}"#.to_owned()),
            (r#""{\"a\": 1.50}""#, r#"{"a":1.50}"#.to_owned()),
            (r#"{"a": 1}"#, r#"{"a":1}"#.to_owned()),
            (r#""{oops""#, r#""{oops""#.to_owned()),
            (r#""{\"a\":\"\\ud83d\"}""#, r#""{\"a\":\"\\ud83d\"}""#.to_owned()),
            (&format!("\"{deep}\""), format!("\"{deep}\"")),
            (r#""""#, "{}".to_owned()),
        ] {
            let event = format!(r#"[{{"index":0,"function":{{"name":"f","arguments":{sent}}}}}]"#);
            check_calls(&[&event], &[("f", &kept, "")]);
        }
    }

    #[test]
    fn what_the_provider_wants_back_is_kept_byte_for_byte() {
        check_calls(
            &[
                r#"[{"index":0,"id":"a","extra_content":{"google":{"s":"\u0041"}},"function":{"name":"f"}}]"#,
            ],
            &[("f", "{}", r#"{"lab":{"id":"a","extra_content":{"google":{"s":"\u0041"}}}}"#)],
        );
    }
}
