//! A person at a screen that is drawn after every message, as the shell does it: keys, text, time and
//! notices go in, effects come out.

use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::{Rect, Size};

use super::world::Session;
use crate::app::command::{Command, Draft, DraftOf};
use crate::app::notice::Notice;
use crate::base::clock::Timestamp;
use crate::tui::effect::Effect;
use crate::tui::input::Input;
use crate::tui::key::KeySequence;
use crate::tui::keymap::Keymap;
use crate::tui::layout::{
    ItemArea, Layout, ListArea, ListRow, OverlayArea, PromptArea, TextAreaBox, TimelineArea, Top,
};
use crate::tui::msg::Msg;
use crate::tui::state::conversation::{At, Reading};
use crate::tui::state::folds::Fold;
use crate::tui::state::item::Body;
use crate::tui::state::list::Row;
use crate::tui::state::prompts::{Room, Stage};
use crate::tui::state::settings::{Access, Deleted, Motion, NotifyWhen, Settings};
use crate::tui::state::{Now, State};
use crate::tui::update::{start, update};

/// How many rows the conversation has on these screens.
pub(super) const TIMELINE_ROWS: u16 = 10;
/// How many rows the list has.
pub(super) const LIST_ROWS: u16 = 8;
/// How many rows an open tool call takes; everything else takes one, but messages of several lines.
pub(super) const OPEN_ROWS: usize = 5;

#[derive(Clone)]
pub(super) struct Screen {
    pub(super) state: State,
    pub(super) layout: Layout,
    /// Whether frames reach the screen.
    pub(super) is_drawn: bool,
    now: Duration,
}

pub(super) fn settings() -> Settings {
    Settings {
        keymap: Arc::new(Keymap::new(None).expect("the default keys are right")),
        access: Access::Full,
        deleted: Deleted::Kept,
        motion: Motion::Full,
        notify: NotifyWhen::Unfocused,
        zone: jiff::tz::TimeZone::UTC,
    }
}

impl Screen {
    /// The empty page, a minute after the last key, with nothing kept.
    pub(super) fn new() -> Self {
        Self::with(settings())
    }

    pub(super) fn with(settings: Settings) -> Self {
        let now = Duration::from_mins(1);
        let at = Now { elapsed: now, wall: Timestamp::from_ms(0) };
        let mut state = State::new(settings, Size::new(120, 40), at);
        let effects = start(&mut state, None);
        let drafts = [DraftOf::NewSession, DraftOf::Rewrite];
        assert_eq!(commands(effects), drafts.map(Command::LoadDraft));
        let mut screen = Self { state, layout: Layout::default(), is_drawn: true, now };
        screen.tell(Notice::Draft { of: DraftOf::NewSession, draft: Draft::default() });
        screen
    }

    /// A screen that shows this session.
    pub(super) fn showing(session: &Session) -> Self {
        let mut screen = Self::new();
        screen.open(session);
        screen.wait(1_000);
        screen
    }

    /// Opens a session through the list, as the program answers.
    pub(super) fn open(&mut self, session: &Session) -> Vec<Effect> {
        let mut effects = self.ask_for(session);
        effects.extend(self.tell_all(session.opened()));
        effects.extend(self.load_draft(session, Draft::default()));
        effects
    }

    /// Asks for a session through the list; the program has not answered.
    pub(super) fn ask_for(&mut self, session: &Session) -> Vec<Effect> {
        let mut effects = self.tell(session.indexed());
        crate::tui::update::focus::go(
            &mut self.state,
            crate::tui::state::Focus::List,
            &mut effects,
        );
        self.state.list.selected = Some(session.id.clone());
        effects.extend(self.keys("Enter"));
        effects
    }

    /// The draft of a session comes from the disk.
    pub(super) fn load_draft(&mut self, session: &Session, draft: Draft) -> Vec<Effect> {
        let of = DraftOf::Session(session.id.clone());
        self.tell(Notice::Draft { of, draft })
    }

    /// Gives a message, and draws.
    pub(super) fn send(&mut self, msg: Msg) -> Vec<Effect> {
        let tick = Msg::Tick(self.at());
        let mut effects = update(&mut self.state, &self.layout, tick);
        effects.extend(update(&mut self.state, &self.layout, msg));
        effects.extend(self.draw());
        effects
    }

    /// Draws, if frames reach the screen.
    pub(super) fn draw(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        for _ in 0..3 {
            if !self.is_drawn {
                break;
            }
            self.layout = layout(&self.state);
            let after = update(&mut self.state, &self.layout, Msg::Drawn);
            let again = after.contains(&Effect::Draw);
            effects.extend(after.into_iter().filter(|effect| *effect != Effect::Draw));
            if !again {
                break;
            }
        }
        effects
    }

    /// Presses keys, spelled as in key tables, with spaces between them.
    pub(super) fn keys(&mut self, spelled: &str) -> Vec<Effect> {
        let words = spelled.split(' ').filter(|word| !word.is_empty());
        let presses = words.flat_map(|word| {
            let sequence: KeySequence = word.parse().expect("the script spells keys");
            sequence.keys().to_vec()
        });
        presses.flat_map(|key| self.send(Msg::Input(Input::Key(key)))).collect()
    }

    /// Types a text, key by key.
    pub(super) fn types(&mut self, text: &str) -> Vec<Effect> {
        use crate::tui::key::{Key, KeyCode};
        let keys: Vec<Key> = text.chars().map(|c| Key::plain(KeyCode::Char(c))).collect();
        keys.into_iter().flat_map(|key| self.send(Msg::Input(Input::Key(key)))).collect()
    }

    pub(super) fn input(&mut self, input: Input) -> Vec<Effect> {
        self.send(Msg::Input(input))
    }

    pub(super) fn pastes(&mut self, text: &str) -> Vec<Effect> {
        self.input(Input::Paste(text.to_owned()))
    }

    pub(super) fn tell(&mut self, notice: Notice) -> Vec<Effect> {
        self.send(Msg::Notice(notice))
    }

    pub(super) fn tell_all(&mut self, notices: impl IntoIterator<Item = Notice>) -> Vec<Effect> {
        notices.into_iter().flat_map(|notice| self.tell(notice)).collect()
    }

    /// Lets time pass; the deadlines on the way are kept, as the shell keeps them.
    pub(super) fn wait(&mut self, ms: u64) -> Vec<Effect> {
        let until = self.now + Duration::from_millis(ms);
        let mut effects = Vec::new();
        for _ in 0..1_000 {
            let next = self.state.next_deadline().filter(|due| *due <= until);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            let tick = Msg::Tick(self.at());
            effects.extend(update(&mut self.state, &self.layout, tick));
            effects.extend(self.draw());
        }
        self.now = until;
        let tick = Msg::Tick(self.at());
        effects.extend(update(&mut self.state, &self.layout, tick));
        effects.extend(self.draw());
        effects
    }

    /// What the composer holds.
    pub(super) fn text(&self) -> String {
        self.state.composer.editor.text()
    }

    /// What the newest toast says.
    pub(super) fn toast(&self) -> &str {
        self.state.status.toasts.back().map_or("", |toast| toast.text.as_str())
    }

    /// The parts of the items in sight, and the row of each.
    pub(super) fn rows(&self) -> Vec<String> {
        let area = self.layout.timeline.as_ref().expect("drawn");
        area.items.iter().map(|shown| format!("{:?}@{}", shown.item.part, shown.row)).collect()
    }

    fn at(&self) -> Now {
        let ms = i64::try_from(self.now.as_millis()).expect("short");
        Now { elapsed: self.now, wall: Timestamp::from_ms(ms) }
    }
}

/// The commands among effects.
pub(super) fn commands(effects: Vec<Effect>) -> Vec<Command> {
    let commands = effects.into_iter().filter_map(|effect| match effect {
        Effect::App(command) => Some(command),
        _ => None,
    });
    commands.collect()
}

/// A layout of the plainest kind: one column of rows. A prompt fits into ten rows.
fn layout(state: &State) -> Layout {
    let has_room = state.size.height >= 10;
    let overlay = state.overlay.as_ref().map(|_| OverlayArea {
        rect: Rect::new(10, 10, 60, 10),
        rows_in_sight: 5,
        rows: 20,
        waiting: state.list.waiting().iter().cloned().collect(),
    });
    let prompt = state.prompts.first().map(|first| PromptArea {
        rect: Rect::new(30, TIMELINE_ROWS, 90, 5),
        call: state.prompts.open().unwrap_or(first).call.clone(),
        is_open: state.prompts.stage != Stage::Docked && has_room,
        room: if has_room { Room::Enough } else { Room::TooLittle },
        text_cols: 40,
    });
    Layout {
        list: Some(list(state)),
        timeline: Some(timeline(state)),
        prompt,
        composer: Some(TextAreaBox { rect: Rect::new(30, 20, 90, 5), cols: 40 }),
        overlay,
        has_spinner: state.running_turn().is_some(),
        ..Layout::default()
    }
}

fn list(state: &State) -> ListArea {
    let list = &state.list;
    let height = usize::from(LIST_ROWS);
    let after = |row: &Row| list.after(&row.session);
    let fits = std::iter::successors(list.first(), after).nth(height).is_none();
    let back = std::iter::successors(list.cursor(), |row| list.before(&row.session));
    let top =
        if fits { list.first() } else { back.take(usize::from(list.selected_row) + 1).last() };
    let rows = std::iter::successors(top, after).take(height).zip(0..);
    let rows = rows.map(|(row, at)| ListRow { row: at, session: row.session }).collect();
    ListArea { rect: Rect::new(0, 0, 30, LIST_ROWS), rows }
}

fn timeline(state: &State) -> TimelineArea {
    let items = state.items();
    let all: Vec<_> = std::iter::successors(items.first(), |item| items.after(&item.id)).collect();
    let heights: Vec<usize> = all
        .iter()
        .map(|item| match (&item.body, state.conversation.folds.of(item)) {
            (Body::Text { text, .. }, _) => text.lines().count().max(1),
            (Body::Call(_), Fold::Open) => OPEN_ROWS,
            _ => 1,
        })
        .collect();
    let height = usize::from(TIMELINE_ROWS);
    let total: usize = heights.iter().sum();
    let last_top = total.saturating_sub(height);
    let start_of = |at: usize| heights[..at].iter().sum::<usize>();
    let top = match &state.conversation.reading {
        Reading::Follow => last_top,
        Reading::Pinned(place) => {
            let id = items.resolve(&place.item).map(|item| item.id);
            let at = all.iter().position(|item| Some(&item.id) == id.as_ref()).unwrap_or(0);
            let row = match place.at {
                At::Row(row) => row,
                At::Source(source) => i64::try_from(source).expect("small"),
            };
            let row = i64::try_from(start_of(at)).expect("small") + row;
            usize::try_from(row.max(0)).expect("not negative").min(last_top)
        }
    };
    let mut shown = Vec::new();
    let mut first = None;
    for (at, item) in all.iter().enumerate() {
        let (from, to) = (start_of(at), start_of(at) + heights[at]);
        let (seen_from, seen_to) = (from.max(top), to.min(top + height));
        if seen_from >= seen_to {
            continue;
        }
        let row = seen_from - from;
        first.get_or_insert(Top { item: item.id.clone(), row, source: row });
        shown.push(ItemArea {
            item: item.id.clone(),
            row: u16::try_from(seen_from - top).expect("small"),
            rows: u16::try_from(seen_to - seen_from).expect("small"),
            rows_above: seen_from - from,
            rows_below: to - seen_to,
        });
    }
    let chosen = state.conversation.focus.clone();
    let seen = chosen.filter(|id| shown.iter().any(|area| area.item == *id));
    let nearest = match state.conversation.reading {
        Reading::Follow => shown.last(),
        Reading::Pinned(_) => shown.first(),
    };
    TimelineArea {
        rect: Rect::new(30, 0, 90, TIMELINE_ROWS),
        reading: state.conversation.reading.clone(),
        focus: seen.or_else(|| nearest.map(|area| area.item.clone())),
        items: shown,
        top: first,
        is_at_bottom: top == last_top,
    }
}
