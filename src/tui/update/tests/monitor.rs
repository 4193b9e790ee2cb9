//! A watcher from outside: it sees keys, frames and time, and knows what may follow from them. It uses
//! nothing of how `update` comes to its decisions.

use std::time::Duration;

use super::script::Screen;
use crate::app::command::{Command, Decide, StalledWish, Unsent};
use crate::base::id::ToolCallId;
use crate::domain::question::Answer;
use crate::domain::turn::event::Decision;
use crate::tui::effect::Effect;
use crate::tui::input::Input;
use crate::tui::key::Key;
use crate::tui::msg::Msg;
use crate::tui::state::composer::Kept;
use crate::tui::state::keys::Arming;
use crate::tui::state::overlay::{About, Confirm, Overlay};
use crate::tui::state::{Focus, State};

/// How long a prompt has to stand on the screen without a key before it takes one
/// (`design/experience.md`).
const READ_FOR: Duration = Duration::from_millis(400);
/// How soon a second key has to come.
const SECOND_WITHIN: Duration = Duration::from_secs(2);

/// Watches from outside: keys, frames and time, and what may follow from them.
#[derive(Default)]
pub(super) struct Monitor {
    now: Duration,
    last_key: Option<(Key, Duration)>,
    /// The call whose prompt is open in the frames, since when, and whether a while without a key
    /// has passed there.
    seen: Option<(ToolCallId, Duration, bool)>,
}

pub(super) fn key(spelled: &str) -> Key {
    spelled.parse().expect("a key")
}

impl Monitor {
    /// Takes in what the screen shows now.
    pub(super) fn look(&mut self, screen: &Screen) {
        let now = screen.state.now.elapsed;
        let area = screen.layout.prompt.as_ref().filter(|area| area.is_open && screen.is_drawn);
        if screen.is_drawn {
            self.seen = match (area, self.seen.take()) {
                (None, _) => None,
                (Some(area), Some((call, since, armed))) if call == area.call => {
                    Some((call, since, armed))
                }
                (Some(area), _) => Some((area.call.clone(), now, false)),
            };
        }
        self.ripen(now);
    }

    fn ripen(&mut self, now: Duration) {
        let last = self.last_key.map_or(Duration::ZERO, |(_, at)| at);
        if let Some((_, since, armed)) = &mut self.seen {
            *armed |= now >= last.max(*since) + READ_FOR;
        }
    }

    pub(super) fn note(&mut self, after: &State, msg: &Msg) {
        let now = after.now.elapsed;
        match msg {
            Msg::Input(Input::Key(key)) => self.last_key = Some((*key, now)),
            // Whatever else comes breaks a sequence of keys.
            Msg::Input(Input::Text(_) | Input::Paste(_)) => {
                self.last_key = Some((key("F35"), now));
            }
            _ => {}
        }
    }

    pub(super) fn check_idle(effects: &[Effect]) {
        for effect in effects {
            let saves = matches!(
                effect,
                Effect::App(Command::SaveDraft { .. } | Command::Remember(_)) | Effect::Notify(_)
            );
            assert!(saves, "time alone did {effect:?}");
        }
    }

    pub(super) fn check(&mut self, before: &State, after: &State, msg: &Msg, effects: &[Effect]) {
        self.now = after.now.elapsed;
        self.ripen(self.now);
        let pressed = match msg {
            Msg::Input(Input::Key(key)) => Some(*key),
            _ => None,
        };
        for effect in effects {
            match effect {
                Effect::App(command) => self.check_command(before, pressed, command),
                Effect::Quit { .. } => self.check_quit(before, pressed),
                Effect::Suspend | Effect::Redraw | Effect::Copy { .. } => {
                    assert!(pressed.is_some(), "{effect:?}");
                }
                Effect::Notify(_) | Effect::Draw => {}
            }
        }
        let asks = |state: &State| {
            matches!(
                &state.overlay,
                Some(Overlay::Confirm(Confirm { about: About::Delete(_), .. }))
            )
        };
        if asks(after) && !asks(before) {
            assert_eq!((pressed, before.focus), (Some(key("d")), Focus::List));
            assert_eq!((&before.list.rename, &before.overlay), (&None, &None));
        }
        let decisions = effects.iter().filter(|effect| {
            matches!(effect, Effect::App(Command::Decide(_) | Command::Answer { .. }))
        });
        assert!(decisions.count() <= 1, "each is decided alone");
    }

    fn check_command(&self, before: &State, pressed: Option<Key>, command: &Command) {
        match command {
            Command::Decide(decide) => self.check_decision(before, pressed, decide),
            Command::Answer { call, answer, .. } => {
                self.check_armed(call);
                assert_eq!((before.focus, &before.overlay), (Focus::Prompt, &None));
                match answer {
                    Answer::Answered(answers) => {
                        assert_eq!(pressed, Some(key("Enter")));
                        assert!(answers.iter().all(|(_, texts)| !texts.is_empty()));
                    }
                    Answer::Dismissed => {
                        assert_eq!(pressed, Some(key("d")));
                        assert_eq!(self.last_key.map(|(key, _)| key), Some(key("Ctrl-X")));
                    }
                }
            }
            Command::Stop(turn) => {
                let runs = before.activity.runs(turn);
                let asked = confirms(before, About::Stop(turn.clone()));
                let twice = self
                    .last_key
                    .is_some_and(|(last, at)| last == key("Esc") && self.now <= at + SECOND_WITHIN);
                let meant = (pressed == Some(key("Esc")) && twice && runs)
                    || (pressed == Some(key("Ctrl-C")) && runs)
                    || (pressed == Some(key("y")) && asked);
                assert!(meant, "{turn} stopped by {pressed:?}");
            }
            Command::Resume(session) => {
                let offered = confirms(before, About::Interrupted(session.clone()));
                let meant = pressed == Some(key("C")) || (pressed == Some(key("r")) && offered);
                assert!(meant, "{session} resumed by {pressed:?}");
            }
            Command::CloseInterrupted(session) => {
                let offered = confirms(before, About::Interrupted(session.clone()));
                let meant = pressed == Some(key("X")) || (pressed == Some(key("y")) && offered);
                assert!(meant, "{session} closed by {pressed:?}");
            }
            Command::Send(_) => {
                let later = before.composer.send_after_close.is_some()
                    || before.composer.kept == Kept::AskedToSend;
                let resumed = pressed == Some(key("r")) && before.overlay.is_some();
                let meant = pressed == Some(key("Enter")) || later || resumed;
                assert!(meant, "sent by {pressed:?}");
            }
            command => self.check_session(before, pressed, command),
        }
    }

    /// As for any command, what is done with whole sessions.
    fn check_session(&self, before: &State, pressed: Option<Key>, command: &Command) {
        match command {
            Command::Delete(ids) => {
                assert_eq!(pressed, Some(key("y")));
                assert!(confirms(before, About::Delete(ids.clone())));
            }
            Command::Restore(_) => assert_eq!(pressed, Some(key("u"))),
            Command::Unsent(Unsent::TakeBack { .. }) => assert_eq!(pressed, Some(key("Alt-Up"))),
            Command::Unsent(Unsent::Release(_)) => assert_eq!(pressed, Some(key("Alt-S"))),
            Command::Archive { archived, .. } => {
                let undone = pressed == Some(key("u")) && !archived;
                assert!(pressed == Some(key("a")) || undone, "put away by {pressed:?}");
            }
            Command::Fork { .. } => {
                assert!(pressed == Some(key("e")) || pressed == Some(key("f")), "{pressed:?}");
            }
            Command::Compact(_) => {
                assert_eq!(pressed, Some(key("k")));
                assert_eq!(self.last_key.map(|(key, _)| key), Some(key("Ctrl-X")));
            }
            Command::Stalled(wish) => match wish {
                StalledWish::Retry => assert_eq!(pressed, Some(key("r"))),
                StalledWish::GiveUp => {
                    assert_eq!(pressed, Some(key("y")));
                    assert!(confirms(before, About::GiveUp), "nobody asked");
                }
            },
            Command::StopCompaction(_) => {
                let twice = pressed == Some(key("Esc"));
                assert!(twice || pressed == Some(key("Ctrl-C")), "{pressed:?}");
            }
            Command::Rename { .. } | Command::Purge(_) | Command::Unsent(Unsent::Edit { .. }) => {
                assert_eq!(pressed, Some(key("Enter")));
            }
            // `check_command` has looked at the first ones.
            Command::Decide(_)
            | Command::Answer { .. }
            | Command::Stop(_)
            | Command::Resume(_)
            | Command::CloseInterrupted(_)
            | Command::Send(_)
            | Command::Open(_)
            | Command::Close
            | Command::Inspect(_)
            | Command::SaveDraft { .. }
            | Command::AppendDraft { .. }
            | Command::LoadDraft(_)
            | Command::Remember(_)
            | Command::SaveListSettings(_) => {}
        }
    }

    fn check_decision(&self, before: &State, pressed: Option<Key>, decide: &Decide) {
        self.check_armed(&decide.call);
        let at_prompt = before.focus == Focus::Prompt && before.overlay.is_none();
        let in_full = matches!(&before.overlay,
            Some(Overlay::Full(full)) if full.prompt.call == decide.call);
        match (&decide.reason, decide.decision) {
            (None, Decision::Allow) => assert_eq!(pressed, Some(key("y"))),
            (None, Decision::Deny) => assert_eq!(pressed, Some(key("n"))),
            (Some(_), Decision::Allow) => panic!("a reason for allowing"),
            (Some(reason), Decision::Deny) => {
                assert_eq!(pressed, Some(key("Enter")));
                let Some(Overlay::Reason(asked)) = &before.overlay else { panic!("not asked") };
                assert_eq!((&asked.prompt.call, &asked.field.text()), (&decide.call, reason));
                return;
            }
        }
        assert!(at_prompt || in_full);
    }

    fn check_armed(&self, call: &ToolCallId) {
        let Some((seen, _, armed)) = &self.seen else { panic!("{call} was not on the screen") };
        assert_eq!(seen, call);
        assert!(armed, "{call} was answered before anybody could have read it");
    }

    fn check_quit(&self, before: &State, pressed: Option<Key>) {
        let empty = before.composer.editor.is_empty();
        let asked = confirms(before, About::Quit);
        let runs = before.activity.session_count() > 0;
        let twice = self
            .last_key
            .is_some_and(|(last, at)| last == key("Ctrl-C") && self.now <= at + SECOND_WITHIN);
        let meant = (pressed == Some(key("y")) && asked)
            || (pressed == Some(key("Ctrl-C")) && (asked || (twice && !runs)))
            || (pressed == Some(key("Ctrl-D")) && empty && !runs);
        assert!(meant, "quit by {pressed:?}");
    }
}

fn confirms(state: &State, about: About) -> bool {
    state.overlay == Some(Overlay::Confirm(Confirm { about, arming: Arming::Armed }))
}
