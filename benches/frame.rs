//! A frame after a key: update, layout, view and the bytes for the terminal, with 10 and with 100,000
//! items in the timeline, at the end of it and in the middle. `cargo bench --bench frame`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use turnstile::base::clock::Timestamp;
use turnstile::testing::fixture::{Shape, opened};
use turnstile::testing::measure::{Goal, Measure, Report, Sample, repeat};
use turnstile::tui::cache::Cache;
use turnstile::tui::input::Input;
use turnstile::tui::key::{Key, KeyCode};
use turnstile::tui::keymap::Keymap;
use turnstile::tui::layout::{Layout, layout};
use turnstile::tui::msg::Msg;
use turnstile::tui::rich::code::Highlighter;
use turnstile::tui::shell::paint::Painter;
use turnstile::tui::state::settings::{Access, Deleted, Motion, NotifyWhen, Settings};
use turnstile::tui::state::{Now, State};
use turnstile::tui::theme::colour::Depth;
use turnstile::tui::theme::{Ground, Theme};
use turnstile::tui::update::{start, update};
use turnstile::tui::view::view;

const SIZE: Size = Size { width: 120, height: 40 };
const TIMES: usize = 200;
const FEW: Shape = Shape { turns: 1, calls: 7, answer_bytes: 1_300 };
const MANY: Shape = Shape { turns: 2_000, calls: 47, answer_bytes: 1_300 };
/// What is left of noise between two measurements of the same thing.
const NO_DEARER: f64 = 1.25;

fn main() {
    let mut report = Report::new("frame");
    let (few, many) = (Screen::with(FEW), Screen::with(MANY));
    report.note("items, few", Measure::Count(FEW.items() as u64));
    report.note("items, many", Measure::Count(MANY.items() as u64));
    compare(&mut report, "at the end", few, many, "");
    let (few, many) = (Screen::with(FEW), Screen::with(MANY));
    compare(&mut report, "while scrolling", few, many, "kj");
    report.print();
}

/// Compares frames after keys: those of `keys` in the timeline in turn, else letters in the composer.
fn compare(report: &mut Report, what: &str, mut few: Screen, mut many: Screen, keys: &str) {
    let times = [&mut few, &mut many].map(|screen| screen.frames(keys).median());
    let [few, many] = times;
    report.note(&format!("{what}, few"), Measure::Time(few));
    report.note(&format!("{what}, many"), Measure::Time(many));
    let goal = Goal::AtMost(Measure::Times(NO_DEARER));
    report.promise(&format!("{what}, many against few"), Measure::ratio(many, few), goal);
}

/// The pure half of the terminal, and what paints it.
struct Screen {
    state: State,
    layout: Layout,
    cache: Cache,
    theme: Theme,
    buffer: Buffer,
    painter: Painter,
}

impl Screen {
    fn with(shape: Shape) -> Self {
        let settings = Settings {
            keymap: Arc::new(Keymap::new(None).expect("the default keys are right")),
            access: Access::Full,
            deleted: Deleted::Kept,
            motion: Motion::Full,
            notify: NotifyWhen::Never,
            zone: TimeZone::UTC,
        };
        let now =
            Now { elapsed: Duration::from_secs(9), wall: Timestamp::from_ms(1_800_000_000_000) };
        let notices = opened(shape);
        let mut state = State::new(settings, SIZE, now);
        let session = notices.iter().find_map(|notice| match notice {
            turnstile::app::notice::Notice::SessionOpened { session, .. } => Some(session.clone()),
            _ => None,
        });
        start(&mut state, session);
        let mut screen = Self {
            state,
            layout: Layout::default(),
            cache: Cache::new(Arc::new(Highlighter::default())),
            theme: Theme::built_in(Ground::Dark, Depth::Full).expect("a built-in theme is right"),
            buffer: Buffer::empty(Rect::from((ratatui::layout::Position::ORIGIN, SIZE))),
            painter: Painter::new(),
        };
        for notice in notices {
            screen.take(Msg::Notice(notice));
        }
        screen.draw();
        screen
    }

    fn take(&mut self, msg: Msg) {
        update(&mut self.state, &self.layout, msg);
    }

    fn press(&mut self, code: KeyCode) {
        self.take(Msg::Input(Input::Key(Key::plain(code))));
    }

    fn draw(&mut self) {
        self.layout = layout(&self.state, SIZE, &mut self.cache);
        let caret = view(&self.state, &self.layout, &self.theme, &mut self.buffer);
        self.painter.paint(&self.buffer, caret, &mut io::sink()).expect("a sink takes all");
        self.take(Msg::Drawn);
    }

    fn frames(&mut self, keys: &str) -> Sample {
        if !keys.is_empty() {
            self.press(KeyCode::Esc);
            self.draw();
        }
        let keys: Vec<char> = if keys.is_empty() { vec!['a', 'b'] } else { keys.chars().collect() };
        let mut keys = keys.into_iter().cycle();
        repeat(TIMES, || {
            if let Some(key) = keys.next() {
                self.press(KeyCode::Char(key));
            }
            self.draw();
        })
    }
}
