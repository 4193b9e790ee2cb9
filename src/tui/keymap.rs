//! The keymap: which action the keys mean where the focus is. Dispatch, help and hints are drawn
//! from the same table, so what is shown is what works.

pub mod context;
pub mod read;

use std::collections::BTreeMap;

use toml::de::DeTable;

use crate::tui::action::Action;
use crate::tui::key::{Key, KeySequence};
use crate::tui::keymap::context::Context;
use crate::tui::keymap::read::{Entry, KeymapProblem, Preset, Source};

/// The keys that the program comes with, and its presets.
const DEFAULTS: Source<'static> =
    Source { name: "keymap.toml", text: include_str!("../../assets/keymap.toml") };

/// The presets that lie between the defaults and a person's own keys.
const PRESETS: [Preset; 2] = [
    (
        "emacs",
        Source { name: "keymap/emacs.toml", text: include_str!("../../assets/keymap/emacs.toml") },
    ),
    (
        "multiplexer",
        Source {
            name: "keymap/multiplexer.toml",
            text: include_str!("../../assets/keymap/multiplexer.toml"),
        },
    ),
];

/// A person's `[keys]` table: `preset`, and one table for each context to change.
#[derive(Clone, Copy, Debug)]
pub struct Personal<'a> {
    /// The file in which it stands.
    pub source: Source<'a>,
    /// The table, with its spans.
    pub table: &'a DeTable<'a>,
}

/// What some keys mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// They are bound to this.
    Action(Action),
    /// They begin a longer sequence.
    Pending,
    /// Nothing, or they are text.
    Unbound,
}

/// The keys of one action, as help shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Where they are bound.
    pub context: Context,
    /// Every way to call the action there, the first one for hints.
    pub keys: Vec<&'a KeySequence>,
    /// What they do.
    pub action: Action,
}

/// All bindings of all contexts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keymap {
    contexts: BTreeMap<Context, Vec<Binding>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Binding {
    keys: KeySequence,
    action: Action,
}

impl Keymap {
    /// The default keys, with a preset and a person's own laid over them. A person's binding
    /// replaces whatever it would hide or be hidden by.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the tables, in the order in which it is written.
    pub fn new(personal: Option<Personal<'_>>) -> Result<Self, Vec<KeymapProblem>> {
        let mut keymap = Self::default();
        keymap.lay(read::file(DEFAULTS)?.entries);
        let Some(Personal { source, table }) = personal else {
            return Ok(keymap);
        };
        let own = read::tables(source, table, &PRESETS)?;
        if let Some(preset) = own.preset {
            keymap.lay(read::file(preset)?.entries);
        }
        keymap.lay(own.entries);
        Ok(keymap)
    }

    /// What `keys` mean where `stack` has the focus, the nearest context first. With
    /// [`Context::Editing`] in it, a character is text for all contexts below.
    #[must_use]
    pub fn lookup(&self, stack: &[Context], keys: &[Key]) -> Lookup {
        let is_text = keys.first().is_some_and(|key| key.text().is_some());
        for context in stack {
            let mut begun = self.of(*context).iter().filter(|b| b.keys.starts_with(keys));
            if let Some(binding) = begun.next() {
                let whole = binding.keys.keys().len() == keys.len();
                return if whole { Lookup::Action(binding.action) } else { Lookup::Pending };
            }
            if is_text && *context == Context::Editing {
                break;
            }
        }
        Lookup::Unbound
    }

    /// What can be done where `stack` has the focus, without bindings that a nearer context hides,
    /// in the order of the tables.
    #[must_use]
    pub fn rows(&self, stack: &[Context]) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        for context in stack {
            for Binding { keys, action } in self.of(*context) {
                if self.lookup(stack, keys.keys()) != Lookup::Action(*action) {
                    continue;
                }
                match rows.iter_mut().find(|r| r.action == *action && r.context == *context) {
                    Some(row) => row.keys.push(keys),
                    None => rows.push(Row { context: *context, keys: vec![keys], action: *action }),
                }
            }
        }
        rows
    }

    /// The keys to show in a hint for `action` where `stack` has the focus, if any are bound.
    #[must_use]
    pub fn hint(&self, stack: &[Context], action: Action) -> Option<&KeySequence> {
        let bindings = stack.iter().flat_map(|context| self.of(*context));
        let reached = |b: &&Binding| self.lookup(stack, b.keys.keys()) == Lookup::Action(action);
        bindings.filter(|b| b.action == action).find(reached).map(|b| &b.keys)
    }

    fn of(&self, context: Context) -> &[Binding] {
        self.contexts.get(&context).map_or(&[], Vec::as_slice)
    }

    /// Lays a layer over what is there: first all that it takes away, then what it binds.
    fn lay(&mut self, layer: Vec<Entry>) {
        for entry in &layer {
            let bindings = self.contexts.entry(entry.context).or_default();
            let binds = entry.action.is_some();
            bindings.retain(|old| {
                let hidden = old.keys.starts_with(entry.keys.keys());
                let hides = binds && entry.keys.starts_with(old.keys.keys());
                !hidden && !hides
            });
        }
        for Entry { context, keys, action, .. } in layer {
            if let Some(action) = action {
                self.contexts.entry(context).or_default().push(Binding { keys, action });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action::{AppAction, ComposerAction, EditAction, MoveAction, QuestionAction};

    const LIST: [Context; 3] = [Context::List, Context::Moving, Context::Global];
    const COMPOSER: [Context; 3] = [Context::Composer, Context::Editing, Context::Global];
    const ANSWER: [Context; 3] = [Context::Answer, Context::Editing, Context::Global];

    fn with_keys(text: &str) -> Result<Keymap, Vec<KeymapProblem>> {
        let document = DeTable::parse(text).expect("the test writes TOML");
        let table = document.get_ref()["keys"].get_ref().as_table().expect("a table");
        Keymap::new(Some(Personal { source: Source { name: "config.toml", text }, table }))
    }

    fn defaults() -> Keymap {
        Keymap::new(None).expect("the default keys are right")
    }

    fn check_lookup(keymap: &Keymap, stack: &[Context], keys: &str, found: Lookup) {
        let sequence: KeySequence = keys.parse().expect("the test spells keys");
        assert_eq!(keymap.lookup(stack, sequence.keys()), found, "{keys} in {stack:?}");
    }

    fn check_problems(text: &str, expected: &[&str]) {
        let problems = with_keys(text).expect_err("something is wrong");
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    const fn edit(action: EditAction) -> Lookup {
        Lookup::Action(Action::Edit(action))
    }

    const fn app(action: AppAction) -> Lookup {
        Lookup::Action(Action::App(action))
    }

    #[test]
    fn every_action_has_a_key_and_every_default_key_is_reached() {
        let keymap = defaults();
        for action in Action::all() {
            let bound = Context::ALL.iter().any(|c| keymap.hint(&[*c], action).is_some());
            assert!(bound, "{action} has no key");
        }
        for context in Context::ALL {
            let shown: usize = keymap.rows(&[context]).iter().map(|row| row.keys.len()).sum();
            assert_eq!(shown, keymap.of(context).len(), "{context}");
        }
    }

    #[test]
    fn the_nearest_context_that_knows_the_keys_decides() {
        let keymap = defaults();
        check_lookup(
            &keymap,
            &LIST,
            "Ctrl-D",
            Lookup::Action(Action::Move(MoveAction::HalfPageDown)),
        );
        check_lookup(
            &keymap,
            &[Context::Permission, Context::Global],
            "Ctrl-D",
            app(AppAction::Quit),
        );
        let delete = Lookup::Action(Action::Composer(ComposerAction::DeleteOrQuit));
        check_lookup(&keymap, &COMPOSER, "Ctrl-D", delete);
        check_lookup(&keymap, &ANSWER, "Ctrl-D", edit(EditAction::DeleteForward));
    }

    #[test]
    fn characters_are_text_where_text_is_typed() {
        let keymap = defaults();
        check_lookup(&keymap, &LIST, "?", app(AppAction::Help));
        check_lookup(&keymap, &COMPOSER, "?", Lookup::Unbound);
        check_lookup(&keymap, &COMPOSER, "F1", app(AppAction::Help));
    }

    #[test]
    fn a_sequence_is_pending_until_it_ends_or_fails() {
        let keymap = defaults();
        let dismiss = Lookup::Action(Action::Question(QuestionAction::Dismiss));
        check_lookup(&keymap, &ANSWER, "Ctrl-X", Lookup::Pending);
        check_lookup(&keymap, &ANSWER, "Ctrl-X d", dismiss);
        check_lookup(&keymap, &ANSWER, "Ctrl-X q", Lookup::Unbound);
        check_lookup(&keymap, &COMPOSER, "Ctrl-X d", Lookup::Unbound);
    }

    #[test]
    fn a_person_binds_rebinds_and_unbinds() {
        let keymap = with_keys(
            "[keys.composer]\n\"Enter\" = \"newline\"\n\"Alt-Enter\" = \"send\"\n\
             [keys.global]\n\"Ctrl-N\" = \"none\"\n\"Ctrl-X Ctrl-P\" = \"new-session\"\n\
             [keys.answer]\n\"Ctrl-X\" = \"next-field\"\n",
        )
        .expect("nothing is wrong");
        let composer = |action| Lookup::Action(Action::Composer(action));
        check_lookup(&keymap, &COMPOSER, "Enter", composer(ComposerAction::Newline));
        check_lookup(&keymap, &COMPOSER, "Alt-Enter", composer(ComposerAction::Send));
        check_lookup(&keymap, &COMPOSER, "Ctrl-N", Lookup::Unbound);
        check_lookup(&keymap, &COMPOSER, "Ctrl-X Ctrl-P", app(AppAction::NewSession));
        let next = Lookup::Action(Action::Question(QuestionAction::Next));
        check_lookup(&keymap, &ANSWER, "Ctrl-X", next);
    }

    #[test]
    fn presets_lie_between_the_defaults_and_the_person() {
        let keymap =
            with_keys("[keys]\npreset = \"emacs\"\n[keys.editing]\n\"Ctrl-F\" = \"word-right\"\n")
                .expect("nothing is wrong");
        check_lookup(&keymap, &COMPOSER, "Ctrl-B", edit(EditAction::CharLeft));
        check_lookup(&keymap, &COMPOSER, "Ctrl-F", edit(EditAction::WordRight));
        check_lookup(&keymap, &COMPOSER, "Ctrl-X b", app(AppAction::ToggleList));
        check_lookup(&keymap, &LIST, "Ctrl-B", Lookup::Unbound);
        assert!(with_keys("[keys]\npreset = \"multiplexer\"\n").is_ok());
        assert_eq!(with_keys("[keys]\npreset = \"default\"\n"), Ok(defaults()));
    }

    #[test]
    fn rows_and_hints_show_only_what_works() {
        let keymap = defaults();
        let rows = keymap.rows(&COMPOSER);
        let of = |action| rows.iter().filter(move |row| row.action == action);
        let newline = Action::Composer(ComposerAction::Newline);
        let shown: Vec<String> =
            of(newline).flat_map(|row| &row.keys).map(ToString::to_string).collect();
        assert_eq!(shown, ["Alt-Enter", "Ctrl-J", "Shift-Enter"]);
        assert_eq!(of(Action::App(AppAction::NextPane)).count(), 0);
        let help = keymap.hint(&COMPOSER, Action::App(AppAction::Help)).map(ToString::to_string);
        assert_eq!(help.as_deref(), Some("F1"));
    }

    #[test]
    fn every_problem_is_told_with_its_place() {
        check_problems(
            "[keys]\npreset = \"vi\"\n[keys.lst]\n\"x\" = \"quit\"\n[keys.list]\n\
             \"Hyper-X\" = \"quit\"\n\"x\" = \"fly\"\n  \"é\" = \"send\"\n\"y\" = 3\n\
             \"Up\" = \"mvoe-up\"\n",
            &[
                "config.toml:2:10: no preset is called \"vi\"; there are default, emacs, \
                 multiplexer",
                "config.toml:3:7: no context is called \"lst\"; there are global, moving, list, \
                 timeline, permission, question, answer, waiting, composer, editing, events, \
                 help, confirm, interrupted, rewrite, field, filter",
                "config.toml:6:1: no key is called \"Hyper-X\"; keys look like x, Ctrl-X, \
                 Alt-Enter, Shift-Tab, PgUp, F1",
                "config.toml:7:7: no action is called \"fly\"; list takes interrupt, escape, help, \
                 next-pane, previous-pane, go-to-prompt, waiting-list, new-session, toggle-list, \
                 compact, retry-writes, give-up-writes, redraw, suspend, quit, move-up, \
                 move-down, page-up, page-down, \
                 half-page-up, half-page-down, move-to-top, move-to-bottom, to-list, to-timeline, \
                 to-composer, open-session, filter-sessions, sort-sessions, mark-session, \
                 rename-session, delete-session, undo-delete, purge-session, archive-session, \
                 show-archived, resume-turn, close-turn, none",
                "config.toml:8:9: send does nothing in list",
                "config.toml:9:7: expected the name of an action",
                "config.toml:10:8: no action is called \"mvoe-up\"; did you mean \"move-up\"?",
            ],
        );
    }

    #[test]
    fn two_bindings_of_one_key_are_told_with_both_places() {
        check_problems(
            "[keys.list]\n\"x\" = \"open-session\"\n\"Ctrl-X\" = \"quit\"\n\"ctrl-x d\" = \"quit\"\n\
             \"ctrl-x\" = \"none\"\n",
            &[
                "config.toml:4:1: Ctrl-X d in list is bound twice, also at config.toml:3:1 as \
                 Ctrl-X",
                "config.toml:5:1: Ctrl-X in list is bound twice, also at config.toml:3:1 as \
                 Ctrl-X",
            ],
        );
    }
}
