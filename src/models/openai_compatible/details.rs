//! `reasoning_details`: what some providers want back verbatim, streamed in fragments.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain::json::Json;

/// The fields whose texts are streamed.
const GROWING: [&str; 2] = ["text", "summary"];

/// The text of fragments that a person may read.
pub(super) fn visible_text(fragments: &[Json]) -> String {
    let fields = fragments.iter().filter_map(|fragment| fragment.read::<Fields>().ok());
    fields.filter_map(|fields| fields.growing().map(|(_, text)| text)).collect()
}

/// The details that the fragments make up. Fragments of one text that follow each other are joined:
/// their texts are appended, every other field is the first that is not null, byte for byte.
/// Whatever came in one piece stays as it came.
pub(super) fn whole(fragments: Vec<Json>) -> Vec<Json> {
    let mut details: Vec<Detail> = Vec::new();
    for fragment in fragments {
        let fields = fragment.read::<Fields>().unwrap_or_default();
        match details.last_mut() {
            Some(last) if fields.continues(&last.fields) => last.join(fields),
            Some(_) | None => details.push(Detail { verbatim: Some(fragment), fields, text: None }),
        }
    }
    details.into_iter().map(Detail::into_json).collect()
}

struct Detail {
    /// As it came, while it has only one fragment.
    verbatim: Option<Json>,
    fields: Fields,
    /// The growing field and its text, once there are several fragments.
    text: Option<(String, String)>,
}

impl Detail {
    fn join(&mut self, more: Fields) {
        if self.verbatim.take().is_some() {
            self.text = self.fields.growing();
        }
        if let (Some((_, text)), Some((_, piece))) = (&mut self.text, more.growing()) {
            text.push_str(&piece);
        }
        for (name, value) in more.0 {
            match self.fields.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) if known.get() == "null" => *known = value,
                Some(_) => {}
                None => self.fields.0.push((name, value)),
            }
        }
    }

    fn into_json(mut self) -> Json {
        if let Some(verbatim) = self.verbatim {
            return verbatim;
        }
        if let Some((name, text)) = &self.text
            && let Some((_, value)) = self.fields.0.iter_mut().find(|(known, _)| known == name)
        {
            *value = Json::text(text);
        }
        Json::of(&self.fields)
    }
}

/// The fields of an object, in their order.
#[derive(Default)]
struct Fields(Vec<(String, Json)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn growing(&self) -> Option<(String, String)> {
        GROWING.iter().find_map(|name| Some(((*name).to_owned(), self.get(name)?.as_text()?)))
    }

    /// Whether this is a further fragment of a text that began with `first`.
    fn continues(&self, first: &Self) -> bool {
        let same = |name| self.get(name) == first.get(name);
        let (Some((mine, _)), Some((theirs, _))) = (self.growing(), first.growing()) else {
            return false;
        };
        mine == theirs && same("type") && same("index")
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_whole(fragments: &[&str], details: &[&str]) {
        let parse = |text: &&str| Json::parse(text).expect(text);
        let whole = whole(fragments.iter().map(parse).collect());
        assert_eq!(whole.iter().map(Json::get).collect::<Vec<_>>(), details);
    }

    #[test]
    fn fragments_of_one_text_are_joined_and_get_its_signature() {
        check_whole(
            &[
                r#"{"type":"reasoning.text","text":"I s","format":"f-v1","index":0}"#,
                r#"{"type":"reasoning.text","text":"ee","index":0,"signature":null}"#,
                r#"{"type":"reasoning.text","text":"","index":0,"signature":"c2\u002fn"}"#,
                r#"{"type":"reasoning.encrypted","data":"x","index":1}"#,
                r#"{"type":"reasoning.encrypted","data":"y","index":1}"#,
            ],
            &[
                r#"{"type":"reasoning.text","text":"I see","format":"f-v1","index":0,"signature":"c2\u002fn"}"#,
                r#"{"type":"reasoning.encrypted","data":"x","index":1}"#,
                r#"{"type":"reasoning.encrypted","data":"y","index":1}"#,
            ],
        );
    }

    #[test]
    fn other_kinds_and_indexes_stay_apart_and_as_they_came() {
        let apart = [
            r#"{"type":"reasoning.text","text":"\u0041","index":0}"#,
            r#"{"type":"reasoning.text","text":"b","index":1}"#,
            r#"{"type":"reasoning.summary","summary":"c","index":1}"#,
            r#""no object""#,
            r#"{"type":"reasoning.summary","summary":null}"#,
        ];
        check_whole(&apart, &apart);
    }
}
