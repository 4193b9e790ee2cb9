//! What the keeper does when the disk does not.

use std::fs;
use std::future::Future;
use std::sync::Arc;

use super::*;
use crate::base::id::{SessionId, ToolCallId};
use crate::base::tasks::Tasks;
use crate::store::seam::SyncMode;
use crate::store::work_dir::WorkDir;
use crate::testing::disk::{Call, ENOSPC, EPERM, Fault, FaultyDisk, Plan};

/// A keeper on a disk that can be made to fail.
struct Desk {
    folder: tempfile::TempDir,
    disk: FaultyDisk,
    asked: mpsc::Sender<Keep>,
    notices: mpsc::Receiver<Notice>,
}

fn desk(before: impl FnOnce(&Desk)) -> (Desk, impl Future<Output = ()>) {
    let (folder, faulty) = (tempfile::tempdir().expect("a folder"), FaultyDisk::new());
    let work_dir = WorkDir::new(folder.path().to_path_buf()).expect("absolute");
    work_dir.prepare(&faulty).expect("prepared");
    let scratch = Scratch::new(Arc::new(faulty.clone()), &work_dir, Tasks::new(), SyncMode::Never);
    let (tell, notices) = mpsc::channel(64);
    let (asked, asks) = mpsc::channel(64);
    let keeper = Keeper::new(scratch, Access::Full, tell);
    let desk = Desk { folder, disk: faulty, asked, notices };
    before(&desk);
    (desk, keeper.run(asks))
}

impl Desk {
    fn fail(&self, only: Call, error: i32) {
        let fault = Fault::Error(error);
        self.disk.fail(Plan { only: Some(only), from: 0, times: u64::MAX, fault });
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("var/composer").join(name), text).expect("written");
    }

    /// The files that are kept, with what is in them; what tells one from another of its name is
    /// left out.
    fn files(&self) -> Vec<(String, String)> {
        let entries = fs::read_dir(self.folder.path().join("var/composer")).expect("there");
        let mut files: Vec<_> = entries
            .map(|entry| {
                let path = entry.expect("an entry").path();
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                let name = match name.split_once(".unreadable-") {
                    Some((name, print)) if print.len() == 16 => format!("{name}.unreadable"),
                    _ => name,
                };
                (name, fs::read_to_string(path).expect("a text"))
            })
            .collect();
        files.sort();
        files
    }

    async fn ask(&self, keep: Keep) {
        self.asked.send(keep).await.expect("the keeper runs");
    }

    async fn save(&self, text: &str) {
        self.ask(Keep::Save { of: DraftOf::NewSession, draft: draft(text) }).await;
    }

    /// Waits until all that was asked is done; gives how many drafts are not saved then.
    async fn done(&self) -> usize {
        let (done, is_done) = oneshot::channel();
        self.ask(Keep::Done(done)).await;
        is_done.await.expect("said")
    }

    async fn loaded(&mut self) -> Draft {
        self.ask(Keep::Load(DraftOf::NewSession)).await;
        loop {
            if let Notice::Draft { draft, .. } = self.notices.recv().await.expect("told") {
                return draft;
            }
        }
    }

    async fn refused(&mut self) -> String {
        loop {
            let told = self.notices.recv().await.expect("told");
            if let Notice::Refused { what: Refused::Keep, why } = told {
                return why;
            }
        }
    }
}

fn draft(text: &str) -> Draft {
    Draft { text: text.to_owned(), caret: text.len(), pastes: Vec::new() }
}

fn file(name: &str, text: &str) -> (String, String) {
    (name.to_owned(), text.to_owned())
}

fn saved(text: &str) -> (String, String) {
    file("draft-new.json", &json(&draft(text)).expect("plain"))
}

/// Runs a desk's keeper beside what is done at it.
async fn at<T>(keeper: impl Future<Output = ()>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        // Nothing goes on after the work.
        worked = work => worked,
        () = keeper => unreachable!("somebody may still ask"),
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_moved_away_before_something_takes_its_place() {
    let (mut desk, keeper) = desk(|desk| {
        desk.write("history.json", "{\"texts\":[\"one\"");
        desk.write("draft-new.json", "{\"text\":\"half a thou");
    });
    let aside =
        [("draft-new.json", "{\"text\":\"half a thou"), ("history.json", "{\"texts\":[\"one\"")]
            .map(|(name, text)| file(&format!("{name}.unreadable"), text));
    let [old_draft, old_history] = aside;
    at(keeper, async {
        let why = desk.refused().await;
        assert!(why.starts_with("history.json is damaged: "), "{why}");
        assert!(why.contains("it was moved to history.json.unreadable-"), "{why}");
        assert_eq!(desk.loaded().await, Draft::default());
        desk.ask(Keep::Remember("two".to_owned())).await;
        desk.save("more").await;
        desk.done().await;
        let history = file("history.json", "{\"texts\":[\"two\"]}");
        assert_eq!(desk.files(), [saved("more"), old_draft, history, old_history]);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_read_nor_moved_is_not_written_over() {
    let (mut desk, keeper) = desk(|desk| {
        desk.write("draft-new.json", "[");
        desk.write("history.json", "[");
        desk.fail(Call::Rename, EPERM);
    });
    at(keeper, async {
        assert!(desk.refused().await.contains("nothing is written over it"));
        assert_eq!(desk.loaded().await, Draft::default());
        desk.ask(Keep::Remember("two".to_owned())).await;
        desk.save("more").await;
        desk.ask(Keep::Append { of: DraftOf::NewSession, typed: draft("and more") }).await;
        desk.done().await;
        assert_eq!(desk.files(), [file("draft-new.json", "["), file("history.json", "[")]);
        desk.disk.heal();
        desk.done().await;
        let aside = file("draft-new.json.unreadable", "[");
        let both = json(&draft("more").followed_by(&draft("and more"))).expect("plain");
        let both = file("draft-new.json", &both);
        assert_eq!(desk.files(), [both, aside, file("history.json", "[")]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_draft_that_the_disk_did_not_take_is_saved_once_it_does() {
    let (mut desk, keeper) = desk(|desk| desk.fail(Call::Write, ENOSPC));
    at(keeper, async {
        for text in ["half", "half a thought"] {
            desk.save(text).await;
            assert!(desk.refused().await.contains("No space left"));
        }
        assert_eq!(desk.files(), []);
        assert_eq!(desk.loaded().await, draft("half a thought"), "it is still known");
        desk.disk.heal();
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        // What is asked now comes after the try that the time brought.
        assert_eq!(desk.loaded().await, draft("half a thought"));
        assert_eq!(desk.files(), [saved("half a thought")]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_draft_that_the_disk_did_not_take_is_gone_once_it_was_sent() {
    let (mut desk, keeper) = desk(|desk| desk.fail(Call::Write, ENOSPC));
    at(keeper, async {
        desk.save("a thought").await;
        desk.refused().await;
        assert_eq!(desk.done().await, 1, "whoever leaves is told");
        desk.ask(Keep::Sending(DraftOf::NewSession)).await;
        desk.ask(Keep::Sent(DraftOf::NewSession)).await;
        desk.disk.heal();
        assert_eq!(desk.done().await, 0);
        assert_eq!(desk.files(), []);
        assert_eq!(desk.loaded().await, Draft::default());
    })
    .await;
}

#[test]
fn every_composer_has_a_file_of_its_own() {
    let names = [
        draft_name(&DraftOf::NewSession),
        draft_name(&DraftOf::Session(SessionId::from("a/../b"))),
        draft_name(&DraftOf::Prompt(ToolCallId::from("a/../b"))),
    ];
    for name in &names {
        assert!(name.parse::<ScratchName>().is_ok(), "{name}");
    }
    assert_ne!(names[1], names[2]);
}
