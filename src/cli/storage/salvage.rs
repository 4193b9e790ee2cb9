//! `turnstile storage salvage`.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::app::App;
use crate::base::sanitize;
use crate::cli::progress::Bar;
use crate::cli::report::{Exit, Problem, count, print, tell};
use crate::store::error::{IoFailure, StoreError};
use crate::store::remnant::Kept;
use crate::store::salvage::Salvaged;
use crate::store::sqlite::Rescued;

/// How many losses of one log are named; the rest are counted.
const NAMED_MAX: usize = 20;

/// Writes what can still be had of logs into new files in a folder.
pub(super) async fn salvage(app: &App, ids: &[String], to: &Path) -> Result<Exit, Problem> {
    let mut exit = Exit::Done;
    let mut logs = Vec::new();
    for id in ids {
        let found = app.logs_of(id).await.map_err(|error| Problem::of(Exit::Disk, &error))?;
        if found.is_empty() {
            tell(&Problem::new(Exit::Failed, format!("there is no session and no turn {id:?}")));
            exit = Exit::Failed;
        }
        logs.extend(found);
    }
    if ids.is_empty() {
        let mut bar = Bar::new();
        let damage = app.damage(&mut |progress| bar.show(progress)).await;
        drop(bar);
        let damage = damage.map_err(|error| Problem::of(Exit::Disk, &error))?;
        logs = damage.logs;
        match damage.of_all {
            Some(why) => exit = told(all(app, &why, to).await),
            None if logs.is_empty() && damage.closed.is_empty() => print("nothing is damaged\n")?,
            None => {}
        }
        for why in &damage.closed {
            exit = exit.or_worse(told(Err(Problem::of(Exit::Disk, why))));
        }
    }
    for log in &logs {
        exit = exit.or_worse(told(one(app, log, to).await));
    }
    Ok(exit)
}

/// What came of one of several things, each of which is done whatever becomes of the others.
fn told(done: Result<Exit, Problem>) -> Exit {
    done.unwrap_or_else(|problem| {
        tell(&problem);
        problem.exit()
    })
}

/// Writes what can still be had of a whole database into a new one in a folder.
async fn all(app: &App, why: &StoreError, to: &Path) -> Result<Exit, Problem> {
    make_folder(to)?;
    let rescued = app.rescue(to).await.map_err(|error| Problem::of(Exit::Disk, &error))?;
    let Some((rescued, path)) = rescued else { return Err(Problem::of(Exit::Disk, why)) };
    let Rescued { sessions, turns, removed, records, incomplete } = rescued;
    let (sessions, turns) = (count(sessions, "session"), count(turns, "turn"));
    let records = count(records, "record");
    let path = path.display().to_string();
    let path = sanitize::for_line(&path);
    let mut text = String::new();
    writeln!(text, "{}", sanitize::for_line(&why.to_string())).ok();
    writeln!(text, "{sessions}, {turns}, {removed} deleted, {records} saved in {path}").ok();
    if incomplete > 0 {
        let of = count(incomplete, "log");
        writeln!(text, "  {of} of them miss records, and are damaged there too").ok();
    }
    text.push_str(
        "  to use it, move storage/turnstile.db and what stands beside it under the same name away, and \
         put it in their place; `turnstile storage verify` says what is missing\n",
    );
    print(&text)?;
    Ok(Exit::Failed)
}

async fn one(app: &App, kept: &Kept, to: &Path) -> Result<Exit, Problem> {
    let salvaged = app.salvage(kept).await.map_err(|error| match &error {
        StoreError::NotFound(_) => Problem::of(Exit::Failed, &error),
        _ => Problem::of(Exit::Disk, &error),
    })?;
    make_folder(to)?;
    let path = to.join(name(kept));
    write(&path, &salvaged.text()).map_err(|error| Problem::of(Exit::Disk, &error))?;
    print(&report(kept, &path, &salvaged))?;
    let is_whole = salvaged.lost.is_empty() && salvaged.sound == salvaged.lines.len();
    Ok(if is_whole { Exit::Done } else { Exit::Failed })
}

/// How the new file of a log is called; logs of one id may have been removed more than once.
fn name(kept: &Kept) -> String {
    let (kind, id) = (kept.log().kind().as_str(), kept.log().id());
    match kept {
        Kept::There(_) => format!("{kind}-{id}.jsonl"),
        Kept::Removed(removed) => format!("deleted-{kind}-{id}-{}.jsonl", removed.at.ms()),
    }
}

/// Makes the folder for the owner alone, if it is not there.
fn make_folder(folder: &Path) -> Result<(), Problem> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let made = made.map_err(IoFailure::of("make the folder", folder));
    made.map_err(|error| Problem::of(Exit::Disk, &error))
}

/// Makes a file for the owner alone; one that is there already is somebody's.
fn write(path: &Path, text: &[u8]) -> Result<(), IoFailure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(IoFailure::of("create", path))?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    // A part of it would be taken for all, and stand in the way of the next attempt.
    written.inspect_err(|_| drop(fs::remove_file(path))).map_err(IoFailure::of("write", path))
}

fn report(kept: &Kept, path: &Path, salvaged: &Salvaged) -> String {
    let Salvaged { lines, lost, unproven, sound } = salvaged;
    let mut text = String::new();
    let (deleted, log) = match kept {
        Kept::There(log) => ("", log),
        Kept::Removed(removed) => ("deleted ", &removed.log),
    };
    let path = path.display().to_string();
    let path = sanitize::for_line(&path);
    writeln!(text, "{deleted}{log}: {} saved in {path}", count(lines.len() as u64, "event")).ok();
    if *sound < lines.len() {
        writeln!(text, "  the first {sound} of them make a whole log by themselves").ok();
    }
    if *unproven > 0 {
        writeln!(
            text,
            "  {unproven} of them are out of damaged parts, and nothing proves them right"
        )
        .ok();
    }
    for lost in lost.iter().take(NAMED_MAX) {
        writeln!(text, "  lost: {}", sanitize::for_line(&lost.to_string())).ok();
    }
    if let Some(more @ 1..) = lost.len().checked_sub(NAMED_MAX) {
        writeln!(text, "  and {more} more").ok();
    }
    text
}
