//! A bar on standard error for work that takes its time. Where that is no terminal, nothing is shown.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::store::progress::{Progress, Stage};

/// With a known end: how much of it is done, and how long it may still take.
const BAR: &str = "{msg} [{bar:30}] {human_pos} of {human_len} ({eta})";

/// The bar; gone when dropped.
pub(super) struct Bar {
    bar: ProgressBar,
    stage: Option<Stage>,
}

impl Bar {
    pub(super) fn new() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, stage: None }
    }

    /// Shows how far it is.
    pub(super) fn show(&mut self, progress: Progress) {
        if self.stage != Some(progress.stage) {
            self.stage = Some(progress.stage);
            self.bar.reset();
            self.bar.set_message(word(progress.stage));
            if progress.total > 0 {
                self.bar.set_length(progress.total);
            }
            let style = match progress.total {
                0 => ProgressStyle::with_template("{msg}"),
                _ => ProgressStyle::with_template(BAR),
            };
            if let Ok(style) = style {
                self.bar.set_style(style.progress_chars("=> "));
            }
        }
        self.bar.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::Reading => "reading",
        Stage::Checking => "checking",
        Stage::Copying => "copying",
        Stage::Comparing => "comparing",
    }
}
