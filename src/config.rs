//! What the program is told before it starts: the person's configuration, the environment, flags, and
//! where things live. It knows nobody who uses it: `app` hands each value to where it belongs.
//!
//! [`layer::load`] is the way in; [`schema::Config`] is what comes out.

pub mod bindings;
pub mod credential;
pub mod environment;
pub mod file;
pub mod layer;
pub mod origin;
pub mod path;
pub mod provider;
pub mod schema;
mod unknown;
pub mod value;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::file::{Parsed, parse};
    use super::schema::Config;
    use super::unknown;

    const EXAMPLE: &str = include_str!("../config.example.toml");

    /// The example with every key in force: prose has a space after its mark, keys have none.
    fn uncommented() -> String {
        let lines = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
            Some(key) if !key.is_empty() && !key.starts_with(' ') => key,
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn read(text: &str) -> Parsed {
        parse(Path::new("config.example.toml"), text).expect("the example is right")
    }

    /// The keys of a schema that hold values, with `any` for names that a person chooses.
    fn keys(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
        let inner = unknown::Keys::of(schema);
        for (name, schema) in &inner.named {
            keys(schema, &unknown::join(path, name), found);
        }
        if let Some(schema) = inner.chosen {
            keys(schema, &unknown::join(path, "any"), found);
        }
        if inner.named.is_empty() && inner.chosen.is_none() {
            found.insert(path.to_owned());
        }
    }

    #[test]
    fn the_example_as_it_stands_says_nothing() {
        assert_eq!(read(EXAMPLE), Parsed { config: Config::default(), set: Vec::new() });
    }

    #[test]
    fn the_example_with_all_keys_in_force_says_the_defaults_where_there_are_any() {
        let mut config = read(&uncommented()).config;
        for provider in config.providers.values() {
            assert_eq!(provider.timeouts, super::provider::Timeouts::default());
        }
        assert_eq!(config.providers.len(), 2);
        let keys = config.keys.take().expect("the example has keys");
        assert_eq!(keys.table()["preset"].get_ref().as_str(), Some("default"));
        assert_eq!(config.models.default.take().as_deref(), Some("work"));
        config.models.aliases.clear();
        config.providers.clear();
        assert_eq!(config, Config::default());
    }

    #[test]
    fn every_key_stands_in_the_example() {
        let mut all = BTreeSet::new();
        keys(unknown::schema().as_value(), "", &mut all);
        let shown = read(&uncommented()).set.into_iter().map(|(key, _)| {
            let words: Vec<_> = key.split('.').collect();
            match words.as_slice() {
                ["keys", ..] => "keys".to_owned(),
                ["models", "aliases", _] => "models.aliases.any".to_owned(),
                ["providers", _, "headers", _] => "providers.any.headers.any".to_owned(),
                ["providers", _, rest @ ..] => format!("providers.any.{}", rest.join(".")),
                _ => key,
            }
        });
        assert_eq!(all, shown.collect());
    }
}
