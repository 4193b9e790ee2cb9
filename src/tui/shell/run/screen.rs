//! The screen while it is shown: it waits, hands over what happened, and draws.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::mpsc;

use crate::app::command::Command;
use crate::app::notice::Notice;
use crate::app::{App, StartError};
use crate::base::clock::Clock;
use crate::tui::cache::Cache;
use crate::tui::effect::{Effect, Note};
use crate::tui::input::{Input, Reply};
use crate::tui::layout::{Layout, layout};
use crate::tui::msg::Msg;
use crate::tui::rich::code::Highlighter;
use crate::tui::shell::attention::Attention;
use crate::tui::shell::input::Reader;
use crate::tui::shell::run::pace::{Pace, Wanted};
use crate::tui::shell::run::{Begin, Left, Options, ScreenError, Starting};
use crate::tui::shell::signal::{Signal, Signals};
use crate::tui::shell::terminal::Terminal;
use crate::tui::shell::tty::Gone;
use crate::tui::state::{Now, State};
use crate::tui::theme::colour::Depth;
use crate::tui::theme::{Ground, Theme};
use crate::tui::update::{end, go_on, start, update};
use crate::tui::view::view;

/// How many notices are taken in before a frame may be drawn.
const NOTICES_AT_A_TIME: usize = 256;
/// How many notices of the desktop are under way at a time.
const NOTES_WAITING_MAX: usize = 16;

/// Where messages come from.
pub(super) struct Sources {
    pub(super) signals: Signals,
    pub(super) reader: Reader,
    pub(super) starting: Option<Starting>,
    pub(super) notices: Option<mpsc::Receiver<Notice>>,
}

/// How long leaving waits for a program that does not stand yet, to keep what was typed.
const START_AWAITED_MAX: Duration = Duration::from_secs(5);

/// What one wait ended with.
enum Happened {
    Signal(Signal),
    Input(Result<Vec<Input>, Gone>),
    Started(Result<(App, mpsc::Receiver<Notice>), StartError>),
    Notice(Option<Notice>),
    Unnoticed(Note),
    Due,
}

pub(super) struct Screen {
    pub(super) state: State,
    pub(super) layout: Layout,
    pub(super) cache: Cache,
    pub(super) theme: Theme,
    pub(super) buffer: Buffer,
    pub(super) terminal: Terminal,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) app: Option<App>,
    /// Commands from before the program stood.
    pub(super) early: VecDeque<Command>,
    pub(super) begin: Begin,
    pub(super) ground: Option<Ground>,
    pub(super) depth: Depth,
    pub(super) attention: Attention,
    pub(super) unnoticed: (mpsc::Sender<Note>, mpsc::Receiver<Note>),
    pub(super) pace: Pace,
    pub(super) left: Option<Left>,
}

impl Screen {
    pub(super) fn new(
        terminal: Terminal,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, ScreenError> {
        let now = Now { elapsed: clock.elapsed(), wall: clock.now() };
        let size = terminal.size();
        let mut state = State::new(options.settings, size, now);
        let session = match &options.begin {
            Begin::Session(session) => Some(session.clone()),
            Begin::EmptyPage | Begin::Latest => None,
        };
        let effects = start(&mut state, session);
        let theme = Theme::built_in(options.ground.unwrap_or_default(), options.depth)?;
        let mut screen = Self {
            state,
            layout: Layout::default(),
            cache: Cache::new(Arc::new(Highlighter::new())),
            theme,
            buffer: Buffer::empty(Rect::ZERO),
            terminal,
            clock,
            app: None,
            early: VecDeque::new(),
            begin: options.begin,
            ground: options.ground,
            depth: options.depth,
            attention: options.attention,
            unnoticed: mpsc::channel(NOTES_WAITING_MAX),
            pace: Pace::new(),
            left: None,
        };
        screen.perform_all(effects)?;
        Ok(screen)
    }

    /// Shows the screen until it is left. Whatever ends it, what was typed is kept.
    pub(super) async fn show(mut self, mut sources: Sources) -> Left {
        let mut trouble = self.until_left(&mut sources).await.err();
        if trouble.is_some() {
            self.keep_what_was_typed();
        }
        if let Some(starting) = sources.starting.take().filter(|_| self.has_early_text()) {
            match tokio::time::timeout(START_AWAITED_MAX, starting).await {
                Ok(Ok((app, _))) => self.started(app),
                Ok(Err(error)) => trouble = Some(trouble.unwrap_or(error.into())),
                Err(_) => tracing::warn!("what was typed before the start is not kept"),
            }
        }
        let session = self.state.session().cloned();
        let left = self.left.take().unwrap_or(Left { session, ..Left::default() });
        Left { app: self.app.take(), trouble, ..left }
    }

    async fn until_left(&mut self, sources: &mut Sources) -> Result<(), ScreenError> {
        while self.left.is_none() {
            let happened = self.wait(sources).await;
            self.tick()?;
            self.handle(happened, sources)?;
            self.frame()?;
        }
        Ok(())
    }

    fn started(&mut self, app: App) {
        self.early.drain(..).for_each(|command| app.perform(command));
        self.app = Some(app);
    }

    /// Whether something was typed that only a program that stands can keep.
    fn has_early_text(&self) -> bool {
        use Command::{AppendDraft, Remember, SaveDraft};
        let mut early = self.early.iter();
        early.any(|it| matches!(it, SaveDraft { .. } | AppendDraft { .. } | Remember(_)))
    }

    /// The terminal may be gone: only the program is told.
    fn keep_what_was_typed(&mut self) {
        for effect in end(&mut self.state) {
            if let Effect::App(command) = effect {
                self.command(command);
            }
        }
    }

    async fn wait(&mut self, sources: &mut Sources) -> Happened {
        let due = self.due_in();
        let timer = async {
            match due {
                Some(due) => tokio::time::sleep(due).await,
                None => std::future::pending().await,
            }
        };
        let starting = async {
            match &mut sources.starting {
                Some(starting) => starting.await,
                None => std::future::pending().await,
            }
        };
        let notice = async {
            match &mut sources.notices {
                Some(notices) => notices.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // All are safe to drop: signals, input, notices and notes stay where they wait until
            // they are taken, the start is polled on, and the timer is made anew.
            signal = sources.signals.next() => Happened::Signal(signal),
            input = sources.reader.next() => Happened::Input(input),
            started = starting => Happened::Started(started),
            notice = notice => Happened::Notice(notice),
            Some(note) = self.unnoticed.1.recv() => Happened::Unnoticed(note),
            () = timer => Happened::Due,
        }
    }

    fn handle(&mut self, happened: Happened, sources: &mut Sources) -> Result<(), ScreenError> {
        match happened {
            Happened::Signal(signal) => self.signalled(signal),
            Happened::Input(Ok(inputs)) => {
                for input in inputs {
                    self.take_input(input)?;
                }
                Ok(())
            }
            // The terminal has gone: what was typed is kept, and the program ends.
            Happened::Input(Err(_)) => self.signalled(Signal::HangUp),
            Happened::Started(started) => {
                sources.starting = None;
                let (app, notices) = started?;
                sources.notices = Some(notices);
                app.begin();
                self.started(app);
                Ok(())
            }
            Happened::Notice(None) => {
                sources.notices = None;
                Ok(())
            }
            Happened::Notice(Some(notice)) => {
                self.noticed(notice)?;
                let Some(notices) = &mut sources.notices else { return Ok(()) };
                let mut waiting = Vec::new();
                while waiting.len() < NOTICES_AT_A_TIME
                    && let Ok(notice) = notices.try_recv()
                {
                    waiting.push(notice);
                }
                waiting.into_iter().try_for_each(|notice| self.noticed(notice))
            }
            Happened::Unnoticed(note) => {
                let sequence = self.attention.in_terminal(&note);
                Ok(self.terminal.send(&sequence)?)
            }
            Happened::Due => Ok(()),
        }
    }

    fn take_input(&mut self, input: Input) -> Result<(), ScreenError> {
        self.pace.want(Wanted::Now);
        if let Input::Reply(reply) = input {
            self.terminal.answered(reply)?;
            self.tell(Msg::Input(input))?;
            if let (None, Reply::Background(background)) = (self.ground, reply) {
                self.theme = Theme::built_in(Ground::of(background), self.depth)?;
            }
            return Ok(());
        }
        self.tell(Msg::Input(input))
    }

    fn noticed(&mut self, notice: Notice) -> Result<(), ScreenError> {
        self.pace.want(Wanted::Soon);
        let scanned = match &notice {
            Notice::ScanEnded { error, .. } => Some(error.is_none()),
            _ => None,
        };
        self.tell(Msg::Notice(notice))?;
        match scanned {
            // Without a list nothing is known; that it cannot be had has been told.
            Some(is_listed) if std::mem::take(&mut self.begin) == Begin::Latest && is_listed => {
                self.go_on_with_latest()
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Opens the latest session, unless the person has opened one meanwhile.
    fn go_on_with_latest(&mut self) -> Result<(), ScreenError> {
        let Some(app) = self.app.as_ref().filter(|_| self.state.session().is_none()) else {
            return Ok(());
        };
        match app.latest_session() {
            Ok(latest) => {
                let effects = go_on(&mut self.state, &latest);
                self.perform_all(effects)
            }
            Err(why) => {
                let why = format!("Nothing can be gone on with: {why}; this is an empty page");
                self.tell(Msg::Trouble(why))
            }
        }
    }

    fn signalled(&mut self, signal: Signal) -> Result<(), ScreenError> {
        match signal {
            Signal::Resize => {
                self.pace.want(Wanted::Now);
                let size = self.terminal.size();
                self.tell(Msg::Resize(size))
            }
            Signal::Suspend => self.suspend(),
            Signal::Continue => {
                self.terminal.continued()?;
                self.pace.want(Wanted::Now);
                let size = self.terminal.size();
                self.tell(Msg::Resize(size))
            }
            Signal::HangUp | Signal::Terminate | Signal::Interrupt => {
                let effects = end(&mut self.state);
                self.perform_all(effects)?;
                let session = self.state.session().cloned();
                self.left = Some(Left { session, ended_by: Some(signal), ..Left::default() });
                Ok(())
            }
        }
    }

    pub(super) fn tell(&mut self, msg: Msg) -> Result<(), ScreenError> {
        let effects = update(&mut self.state, &self.layout, msg);
        self.perform_all(effects)
    }

    /// Time comes before everything that happens at it.
    fn tick(&mut self) -> Result<(), ScreenError> {
        let due = self.state.next_deadline();
        let now = Now { elapsed: self.clock.elapsed(), wall: self.clock.now() };
        if due.is_some_and(|due| due <= now.elapsed) {
            self.pace.want(Wanted::Soon);
        }
        self.tell(Msg::Tick(now))
    }

    /// How long until something has to happen by itself; `None` if nothing has to.
    fn due_in(&self) -> Option<Duration> {
        let now = self.clock.elapsed();
        let due = [self.pace.due(), self.state.next_deadline()].into_iter().flatten().min()?;
        Some(due.saturating_sub(now))
    }

    /// Draws a frame, if one is wanted and it is time.
    pub(super) fn frame(&mut self) -> Result<(), ScreenError> {
        if !self.pace.take(self.clock.elapsed()) {
            return Ok(());
        }
        self.layout = layout(&self.state, self.state.size, &mut self.cache);
        let size = self.state.size;
        self.buffer.resize(Rect::new(0, 0, size.width, size.height));
        let caret = view(&self.state, &self.layout, &self.theme, &mut self.buffer);
        self.terminal.draw(&self.buffer, caret)?;
        self.tell(Msg::Drawn)
    }
}
