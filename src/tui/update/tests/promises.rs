//! The two promises under anything at all: whatever a person, a terminal and a program do, nothing is
//! decided that was not meant, and nothing that was typed is lost.

use proptest::prelude::*;
use ratatui::layout::Size;

use super::app::{App, Mood};
use super::monitor::{Monitor, key};
use super::script::Screen;
use crate::app::command::{Command, DraftOf, Unsent};
use crate::tui::editor::{Editor, Shape};
use crate::tui::effect::Effect;
use crate::tui::input::{Button, Input, Mouse, MouseKind};
use crate::tui::key::{Key, KeyCode, Mods};
use crate::tui::msg::Msg;
use crate::tui::state::form::Form;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::prompts::Stage;
use crate::tui::state::{Focus, State};
use crate::tui::update::overlay;

#[derive(Clone, Debug)]
enum Step {
    Key(&'static str),
    /// Keys one after the other.
    Keys(&'static [&'static str]),
    /// A session is opened from the list.
    Open(usize),
    /// All commands are carried out.
    ServeAll,
    /// A character that is typed nowhere else in the run.
    Type,
    Paste(usize),
    Text(&'static str),
    Click(u16, u16),
    Window(bool),
    Wait(u64),
    Frames(bool),
    Serve(Mood),
    Happen(usize),
    Resize(u16),
}

const KEYS: [&str; 43] = [
    "y",
    "n",
    "N",
    "v",
    "Y",
    "s",
    "p",
    "d",
    "u",
    "q",
    "x",
    "C",
    "X",
    "j",
    "k",
    "Enter",
    "Esc",
    "Space",
    "Tab",
    "Shift-Tab",
    "Up",
    "Down",
    "Ctrl-Y",
    "Ctrl-T",
    "Ctrl-N",
    "Ctrl-C",
    "Ctrl-X",
    "Ctrl-D",
    "Ctrl-B",
    "F1",
    "i",
    "l",
    "PgUp",
    "Left",
    "Alt-Up",
    "Alt-Up",
    "Alt-S",
    "Alt-W",
    "r",
    "e",
    "f",
    "a",
    "A",
];

/// Ways to where something can be decided.
const SCRIPTS: [&[&str]; 9] = [
    &["Ctrl-T", "Enter"],
    &["Ctrl-T", "j", "Enter"],
    &["Ctrl-C", "Ctrl-Y"],
    &["Ctrl-B", "Ctrl-B", "Shift-Tab", "Shift-Tab"],
    &["Ctrl-X", "d"],
    &["Esc", "Esc"],
    &["i", "Enter"],
    &["i", "Alt-Up"],
    &["i", "Alt-W"],
];

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::sample::select(KEYS.to_vec()).prop_map(Step::Key),
        4 => prop::sample::select(vec!["y", "n", "Ctrl-Y", "Enter", "Esc", "Space"])
            .prop_map(Step::Key),
        2 => prop::sample::select(SCRIPTS.to_vec()).prop_map(Step::Keys),
        3 => Just(Step::ServeAll),
        2 => Just(Step::Type),
        1 => prop::sample::select(vec![1usize, 30]).prop_map(Step::Paste),
        1 => prop::sample::select(vec!["y", "dy", "n"]).prop_map(Step::Text),
        1 => (0..100u16, 0..26u16).prop_map(|(x, y)| Step::Click(x, y)),
        1 => any::<bool>().prop_map(Step::Window),
        4 => prop::sample::select(vec![50u64, 399, 400, 700, 2_100]).prop_map(Step::Wait),
        1 => prop::bool::weighted(0.8).prop_map(Step::Frames),
        6 => prop_oneof![3 => Just(Mood::Willing), 1 => Just(Mood::Refusing)]
            .prop_map(Step::Serve),
        4 => (0..6usize).prop_map(Step::Happen),
        1 => prop::sample::select(vec![40u16, 120]).prop_map(Step::Resize),
    ]
}

/// Anything, and often enough what leads to a decision or just misses it.
fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop::sample::select(vec![399u64, 400, 401, 1_000]).prop_map(Step::Wait);
    let keys = ["y", "y", "n", "N", "v", "Space", "Down", "Tab", "Enter", "Ctrl-X", "d", "Esc"];
    let keys = prop::sample::select(keys.to_vec()).prop_map(Step::Key);
    let keys = prop_oneof![6 => keys, 1 => Just(Step::Type), 1 => any_step()];
    let approach = (wait, prop::collection::vec(keys, 1..6)).prop_map(|(wait, keys)| {
        let there = [Step::ServeAll, Step::Key("Ctrl-Y"), wait];
        there.into_iter().chain(keys).collect()
    });
    let wait = prop::sample::select(vec![399u64, 400]).prop_map(Step::Wait);
    let surprise = (0..6usize, 1..8usize, wait).prop_map(|(at, events, wait)| {
        let there = [Step::ServeAll, Step::Open(at), Step::ServeAll, Step::Wait(2_100)];
        let events = vec![Step::Happen(at); events];
        let keys = [wait, Step::Key("y"), Step::Key("n")];
        there.into_iter().chain(events).chain(keys).collect()
    });
    let alone = any_step().prop_map(|step| vec![step]);
    let part = prop_oneof![6 => alone, 1 => approach, 1 => surprise];
    prop::collection::vec(part, 0..60).prop_map(|parts: Vec<Vec<Step>>| parts.concat())
}

/// A run: the screen, the program behind it, and what has been typed.
struct Run {
    screen: Screen,
    app: App,
    typed: u32,
    monitor: Monitor,
}

impl Run {
    fn new() -> Self {
        let mut run =
            Self { screen: Screen::new(), app: App::new(), typed: 0, monitor: Monitor::default() };
        let entries: Vec<_> = run.app.sessions.iter().map(super::world::Session::indexed).collect();
        run.screen.tell_all(entries);
        run
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Key(spelled) => self.key(spelled.parse().expect("a key")),
            Step::Keys(spelled) => {
                spelled.iter().for_each(|spelled| self.key(spelled.parse().expect("a key")));
            }
            Step::Open(at) => self.open(*at),
            Step::ServeAll => {
                while !self.app.queue.is_empty() {
                    self.take(&Step::Serve(Mood::Willing));
                }
            }
            Step::Type => {
                let c = self.next_char();
                self.key(Key::plain(KeyCode::Char(c)));
            }
            Step::Paste(lines) => {
                let lines: Vec<_> = (0..*lines).map(|_| self.next_char().to_string()).collect();
                let text = lines.join("\n");
                self.send(&Msg::Input(Input::Paste(text)));
            }
            Step::Text(text) => self.send(&Msg::Input(Input::Text((*text).to_owned()))),
            Step::Click(column, row) => {
                let kind = MouseKind::Press(Button::Left);
                let mouse = Mouse { kind, column: *column, row: *row, mods: Mods::NONE };
                self.send(&Msg::Input(Input::Mouse(mouse)));
            }
            Step::Window(true) => self.send(&Msg::Input(Input::FocusGained)),
            Step::Window(false) => self.send(&Msg::Input(Input::FocusLost)),
            Step::Wait(ms) => {
                let effects = self.screen.wait(*ms);
                Monitor::check_idle(&effects);
                self.obey(effects);
            }
            Step::Frames(drawn) => {
                self.screen.is_drawn = *drawn;
                let effects = self.screen.draw();
                self.obey(effects);
            }
            Step::Serve(mood) => {
                for notice in self.app.serve(*mood) {
                    self.send(&Msg::Notice(notice));
                }
            }
            Step::Happen(at) => {
                for notice in self.app.happen(*at) {
                    self.send(&Msg::Notice(notice));
                }
            }
            Step::Resize(width) => self.send(&Msg::Resize(Size::new(*width, 30))),
        }
    }

    fn open(&mut self, at: usize) {
        let state = &mut self.screen.state;
        let session =
            at.checked_rem(self.app.sessions.len()).and_then(|at| self.app.sessions.get(at));
        let Some(session) = session.filter(|_| state.prompts.stage == Stage::Docked) else {
            return;
        };
        let mut closed = Vec::new();
        overlay::close(state, &mut closed);
        state.list.filter = None;
        state.list.rename = None;
        state.list.selected = Some(session.id.clone());
        state.focus = Focus::List;
        self.obey(closed);
        self.key(key("Enter"));
    }

    fn key(&mut self, key: Key) {
        self.send(&Msg::Input(Input::Key(key)));
    }

    fn send(&mut self, msg: &Msg) {
        let before = self.screen.state.clone();
        self.monitor.look(&self.screen);
        let effects = self.screen.send(msg.clone());
        self.monitor.check(&before, &self.screen.state, msg, &effects);
        self.monitor.note(&self.screen.state, msg);
        check_whole(&self.screen.state);
        self.obey(effects);
    }

    fn obey(&mut self, effects: Vec<Effect>) {
        self.monitor.look(&self.screen);
        self.app.queue.extend(super::script::commands(effects));
    }

    fn next_char(&mut self) -> char {
        self.typed += 1;
        marker(self.typed)
    }

    /// Everything that holds text, in memory or on the disk.
    fn everywhere(&self) -> String {
        let state = &self.screen.state;
        let draft = state.composer.draft();
        let drafts = state.composer.sending.values().chain(state.composer.strays.values());
        let drafts = drafts.chain(state.prompts.reasons.values()).chain([&draft]).cloned();
        let mut all: String =
            drafts.map(|draft| Editor::with_draft(Shape::Page, &draft).text()).collect();
        all.push_str(&state.composer.editor.text());
        all.extend(state.prompts.forms.values().map(Form::typed));
        if let Some(Overlay::Reason(reason)) = &state.overlay {
            all.push_str(&reason.field.text());
        }
        if let Some(Overlay::Rewrite(rewrite)) = &state.overlay {
            all.push_str(&rewrite.field.text());
        }
        all.push_str(&self.app.disk());
        for command in &self.app.queue {
            match command {
                Command::Remember(text) | Command::Unsent(Unsent::Edit { text, .. }) => {
                    all.push_str(text);
                }
                Command::SaveDraft { draft, .. }
                | Command::AppendDraft { typed: draft, .. }
                | Command::Fork { draft, .. }
                | Command::Unsent(Unsent::TakeBack { draft, .. }) => {
                    all.push_str(&draft.text);
                    all.extend(draft.pastes.iter().map(String::as_str));
                }
                _ => {}
            }
        }
        all
    }
}

/// Characters that are no keys: one for each time something is typed.
fn marker(number: u32) -> char {
    char::from_u32(0x4E00 + number).expect("an ideograph")
}

/// What always holds.
fn check_whole(state: &State) {
    let open = state.prompts.stage != Stage::Docked;
    assert_eq!(state.focus == Focus::Prompt, open, "an open prompt has the focus");
    assert!(!open || state.prompts.open().is_some(), "what is open waits");
    assert!(state.status.toasts.len() <= 3);
    assert_eq!(state.conversation.session().is_some(), {
        matches!(state.composer.of, DraftOf::Session(_))
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_decided_that_was_not_meant(steps in any_steps()) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
        }
    }

    #[test]
    fn nothing_that_was_typed_is_ever_lost(steps in any_steps()) {
        // These delete by their meaning, and a title or a filter is given up by leaving it.
        let deletes = |step: &Step| matches!(step, Step::Key("Ctrl-D" | "d"));
        let mut run = Run::new();
        let mut present: Vec<char> = Vec::new();
        for step in steps.iter().filter(|step| !deletes(step)) {
            run.take(step);
            let everywhere = run.everywhere();
            for c in &present {
                prop_assert!(everywhere.contains(*c), "{c} was lost by {step:?}");
            }
            let typed = (1..=run.typed).map(marker);
            present = typed.filter(|c| everywhere.contains(*c)).collect();
        }
        // Half a second later a killed program would find all of it again.
        for _ in 0..3 {
            run.take(&Step::ServeAll);
            run.take(&Step::Wait(1_000));
        }
        let disk = run.app.disk();
        for c in present {
            prop_assert!(disk.contains(c), "{c} is not on the disk");
        }
    }
}
