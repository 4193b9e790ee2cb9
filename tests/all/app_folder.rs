//! What lies in the work directory: logs, what waits and what is half typed, and nothing that is made
//! of them and could be wrong.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use turnstile::app::command::{Command, DraftOf};
use turnstile::app::notice::Notice;
use turnstile::base::id::SessionId;
use turnstile::testing::folder::files;

use crate::app_world::{GUIDE, Person, Running, draft, process, send};

/// The files below a folder, without what is different each time: `<id>`, `<event>`, `<hash>`, and `0`
/// for every other number.
fn shapes(folder: &Path) -> BTreeSet<String> {
    let replaced = |pattern: &str| regex::Regex::new(pattern).expect("a pattern");
    let steps = [
        (replaced(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}Z-\d+-\d+"), "<id>"),
        (replaced(r"[^/]+\.pending"), "<event>.pending"),
        (replaced("[0-9a-f]{16,}"), "<hash>"),
        (replaced(r"\d+"), "0"),
    ];
    let shape = |file: &Path| {
        let path = file.strip_prefix(folder).expect("below the folder").display().to_string();
        steps.iter().fold(path, |path, (from, to)| from.replace_all(&path, *to).into_owned())
    };
    files(folder).iter().map(|file| shape(file)).collect()
}

/// A session of the guide's that waits for a decision, with a message that waits behind it and
/// something half typed.
async fn busy(running: &mut Running) -> SessionId {
    let (session, _) = running.run(DraftOf::NewSession, "Hello.").await;
    let of = DraftOf::Session(session.clone());
    running.perform(send(of.clone(), "And then?"));
    running
        .until(|notice| matches!(notice, Notice::Queued { from, .. } if *from == of).then_some(()))
        .await;
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("half a thought") });
    assert_eq!(running.draft(of).await, draft("half a thought"));
    session
}

#[test]
fn a_filled_work_directory_holds_what_is_known_and_nothing_else() {
    let person = Person::new(GUIDE);
    process(async {
        let mut running = person.start();
        running.listed().await;
        let sessions = running.app.graph().sessions.clone();
        busy(&mut running).await;
        let deleted = busy(&mut running).await;
        running.perform(Command::Delete(vec![deleted]));
        running.until(|notice| matches!(notice, Notice::Deleted(_)).then_some(())).await;
        let (ended, turn) = running.run(DraftOf::NewSession, "Tell me about keys").await;
        sessions.set_title(&ended, "Keys").await.expect("named");
        let fork = sessions.fork_session(&ended, Some(&turn)).await.expect("forked");
        sessions.set_archived(&fork, true).await.expect("put away");
        running.leave().await;
    });
    let expected = [
        "storage/format",
        "storage/sessions/0/0/0/<id>.jsonl",
        "storage/turns/0/0/0/<id>.jsonl",
        "turnstile.lock",
        "var/composer/draft-session-<hash>.json",
        "var/deleted/session-<id>-<hash>/<id>.jsonl",
        "var/deleted/session-<id>-<hash>/composer-draft-session-<hash>.json",
        "var/deleted/session-<id>-<hash>/removed.json",
        "var/deleted/session-<id>-<hash>/runtime-state/inbox/<event>.pending",
        "var/deleted/session-<id>-<hash>/runtime-state/lock",
        "var/sessions/<hash>/inbox/<event>.pending",
        "var/sessions/<hash>/lock",
    ];
    let found = shapes(&person.work_dir());
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

/// What watches files: crates that do, and what systems call it.
const WATCHERS: [&str; 8] = [
    "fanotify",
    "fsevent",
    "hotwatch",
    "inotify",
    "kqueue",
    "notify-debouncer",
    "readdirectorychanges",
    "watchexec",
];

#[test]
fn nothing_watches_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| fs::read_to_string(path).expect("a text").to_lowercase();
    let lock = read(&root.join("Cargo.lock"));
    assert!(!lock.contains("name = \"notify\""), "the crate that watches files is linked");
    for file in files(&root.join("src")).iter().chain([&root.join("Cargo.lock")]) {
        let text = read(file);
        let named: Vec<_> = WATCHERS.iter().filter(|name| text.contains(**name)).collect();
        assert!(named.is_empty(), "{} names {named:?}", file.display());
    }
}
