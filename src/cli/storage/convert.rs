//! `turnstile storage convert`.

use std::fmt::Write as _;

use crate::app::Access;
use crate::app::convert::{
    Confirmed, ConvertError, Converted, Converter, Damaged, Missing, Undone,
};
use crate::base::sanitize;
use crate::cli::progress::Bar;
use crate::cli::report::{Exit, Problem, count, print};
use crate::cli::start::{Setting, threads};
use crate::store::conversion::Conversion;
use crate::store::convert::{CopyError, Left};
use crate::store::format::Format;

/// How many damaged logs are named; the rest are counted.
const NAMED_MAX: usize = 20;

/// What the forms are to be.
#[derive(Clone, Copy)]
pub(super) struct Forms {
    /// What is configured.
    pub(super) configured: Format,
    /// What everything is brought into.
    pub(super) to: Format,
}

/// Brings everything into another form.
pub(super) fn convert(setting: &Setting, forms: Forms, damaged: Damaged) -> Result<Exit, Problem> {
    let Forms { configured, to } = forms;
    let converter = converter(setting)?;
    let mut bar = Bar::new();
    let came =
        threads()?.block_on(converter.convert(to, damaged, &mut |progress| bar.show(progress)));
    drop(bar);
    let (text, exit) = match came {
        Ok(Converted::Done { from, copied }) => {
            let mut text = format!(
                "{}, {} and {} deleted are kept as {to} now, and are the same\n",
                count(copied.sessions, "session"),
                count(copied.turns, "turn"),
                copied.removed
            );
            name_left(&mut text, &copied.left, from);
            text.push_str(&next(from, to, configured));
            (text, if copied.left.is_empty() { Exit::Done } else { Exit::Failed })
        }
        Ok(Converted::Already { kept: None }) => {
            (format!("everything is kept as {to} already\n"), Exit::Done)
        }
        Ok(Converted::Already { kept: Some(from) }) => {
            let text =
                format!("everything is kept as {to} already\n{}", next(from, to, configured));
            (text, Exit::Done)
        }
        Ok(Converted::Abandoned(format)) => {
            (format!("what was copied as {format} is gone again\n"), Exit::Done)
        }
        Err(error) => return Err(refused(&error)),
    };
    print(&text)?;
    Ok(exit)
}

/// What is to be done now.
fn next(from: Format, to: Format, configured: Format) -> String {
    let mut text = String::new();
    if configured != to {
        writeln!(text, "set storage.format = \"{to}\" in the configuration").ok();
    }
    writeln!(
        text,
        "the old form ({from}) is kept; when all is well, `turnstile storage convert --confirm` lets \
         it go"
    )
    .ok();
    text
}

fn name_left(text: &mut String, left: &[Left], from: Format) {
    if left.is_empty() {
        return;
    }
    writeln!(text, "{} damaged ones stay as {from} only:", left.len()).ok();
    for left in left.iter().take(NAMED_MAX) {
        writeln!(text, "! {}", sanitize::for_line(&left.to_string())).ok();
    }
    if let Some(more @ 1..) = left.len().checked_sub(NAMED_MAX) {
        writeln!(text, "  and {more} more").ok();
    }
}

/// Lets the old form go.
pub(super) fn confirm(setting: &Setting, missing: Missing) -> Result<Exit, Problem> {
    let converter = converter(setting)?;
    let came = threads()?.block_on(converter.confirm(missing)).map_err(|error| refused(&error))?;
    let (text, exit) = match came {
        Confirmed::Gone(format) => (format!("the old form ({format}) is gone\n"), Exit::Done),
        Confirmed::Left(Format::Sqlite, left) => {
            let text = format!(
                "the old form (sqlite) stays whole, for {} in it that {} nowhere else; move \
                 storage/turnstile.db away when you need it no longer\n",
                count(left as u64, "damaged one"),
                if left == 1 { "is" } else { "are" }
            );
            (text, Exit::Done)
        }
        Confirmed::Left(format @ (Format::Jsonl | Format::JsonlZst), left) => {
            let text = format!("the old form ({format}) is gone, but for {left} damaged ones\n");
            (text, Exit::Done)
        }
        Confirmed::Nothing => ("no old form is kept\n".to_owned(), Exit::Done),
        Confirmed::Unfinished(note) => (unfinished(&note), Exit::Failed),
    };
    print(&text)?;
    Ok(exit)
}

/// Goes back to the old form.
pub(super) fn undo(setting: &Setting, configured: Format) -> Result<Exit, Problem> {
    let converter = converter(setting)?;
    let (text, exit) = match converter.undo().map_err(|error| refused(&error))? {
        Undone::Back { now, kept } => {
            let mut text = format!(
                "everything is as it was when it was brought into {kept}; what was made since is kept \
                 as {kept}\n"
            );
            text.push_str(&next(kept, now, configured));
            (text, Exit::Done)
        }
        Undone::Nothing => ("no old form is kept\n".to_owned(), Exit::Failed),
        Undone::Unfinished(note) => (unfinished(&note), Exit::Failed),
        Undone::Going(kept) => {
            let text = format!(
                "a part of the old form ({kept}) has been let go already, so it cannot be used again; \
                 `turnstile storage convert --confirm` lets the rest go\n"
            );
            (text, Exit::Failed)
        }
    };
    print(&text)?;
    Ok(exit)
}

fn unfinished(note: &Conversion) -> String {
    let Conversion { from, to, .. } = note;
    format!(
        "the conversion from {from} to {to} is not finished; `turnstile storage convert --to {to}` goes \
         on, `--to {from}` drops it\n"
    )
}

fn converter(setting: &Setting) -> Result<Converter, Problem> {
    let place = setting.take(Access::Full)?;
    Ok(Converter::new(place, setting.loaded.config.storage))
}

fn refused(error: &ConvertError) -> Problem {
    match error {
        ConvertError::Damaged(left) => {
            let mut text = error.to_string();
            for left in left.iter().take(NAMED_MAX) {
                write!(text, "\n! {left}").ok();
            }
            text.push_str(
                "\n`turnstile storage salvage` saves what can still be read of them; with \
                 --leave-damaged the others are brought into the new form, and these stay in the old",
            );
            Problem::new(Exit::Failed, text)
        }
        ConvertError::NotThere(logs) => {
            let mut text = error.to_string();
            for log in logs.iter().take(NAMED_MAX) {
                write!(text, "\n! {log}").ok();
            }
            text.push_str(
                "\nwhat was destroyed since the conversion may go with `--confirm --destroy-missing`; \
                 if they are lost, `--undo` uses the old form again",
            );
            Problem::new(Exit::Failed, text)
        }
        ConvertError::Beside { .. } | ConvertError::Unconfirmed(_) => {
            Problem::of(Exit::Failed, error)
        }
        ConvertError::Copy(CopyError::Store(_) | CopyError::Flush(_) | CopyError::LiveText(_)) => {
            let hint = "nothing was changed; the same command goes on from there";
            Problem::of(Exit::Disk, error).with_hint(hint)
        }
        ConvertError::Copy(_)
        | ConvertError::Guests(_)
        | ConvertError::Conversion(_)
        | ConvertError::Format(_)
        | ConvertError::Store(_)
        | ConvertError::Io(_) => Problem::of(Exit::Disk, error),
    }
}
