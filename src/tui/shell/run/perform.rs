//! Effects: what an update wants done, done.

use crate::app::command::Command;
use crate::tui::effect::{Effect, Note};
use crate::tui::msg::{Copied, Msg};
use crate::tui::shell::attention;
use crate::tui::shell::run::pace::Wanted;
use crate::tui::shell::run::screen::Screen;
use crate::tui::shell::run::{Left, ScreenError};
use crate::tui::shell::terminal::TerminalError;

/// How many commands wait while the program is being built; a person types no faster.
const COMMANDS_WAITING_MAX: usize = 64;

impl Screen {
    pub(super) fn perform_all(&mut self, effects: Vec<Effect>) -> Result<(), ScreenError> {
        effects.into_iter().try_for_each(|effect| self.perform(effect))
    }

    fn perform(&mut self, effect: Effect) -> Result<(), ScreenError> {
        match effect {
            Effect::App(command) => self.command(command),
            Effect::Copy { text } => {
                self.terminal.send(&attention::copy(&text, self.attention.multiplexer))?;
                return self.tell(Msg::Copied(Copied::Terminal));
            }
            Effect::Notify(note) => self.notify(note)?,
            Effect::Draw => self.pace.want(Wanted::Soon),
            Effect::Redraw => {
                self.terminal.redraw();
                self.pace.want(Wanted::Now);
            }
            Effect::Suspend => self.suspend()?,
            Effect::Quit { session } => {
                self.left = Some(Left { session, ..Left::default() });
            }
        }
        Ok(())
    }

    /// Stops the program until the shell brings it back. Where nothing could, the person is told and
    /// it goes on.
    pub(super) fn suspend(&mut self) -> Result<(), ScreenError> {
        match self.terminal.suspend() {
            Ok(()) => Ok(()),
            Err(error @ (TerminalError::NoShell | TerminalError::Stop(_))) => {
                self.pace.want(Wanted::Now);
                self.tell(Msg::Trouble(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn command(&mut self, command: Command) {
        match &self.app {
            Some(app) => app.perform(command),
            None if self.early.len() < COMMANDS_WAITING_MAX => self.early.push_back(command),
            None => tracing::warn!("more was asked for before the start than is kept"),
        }
    }

    /// Tells the person on the desktop; where there is none, by the terminal.
    fn notify(&mut self, note: Note) -> Result<(), ScreenError> {
        let desktop = self.attention.desktop;
        let Some(app) = self.app.as_ref().filter(|_| desktop) else {
            let sequence = self.attention.in_terminal(&note);
            return Ok(self.terminal.send(&sequence)?);
        };
        let unnoticed = self.unnoticed.0.clone();
        drop(app.graph().tasks.spawn("notify", async move {
            let (summary, body) = attention::words(&note);
            if crate::app::notify::on_desktop(&summary, &body).await.is_err() {
                // A full queue means that notes enough are under way.
                unnoticed.try_send(note).ok();
            }
        }));
        Ok(())
    }
}
