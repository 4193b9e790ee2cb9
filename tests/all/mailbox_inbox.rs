//! What keeps the messages that wait: the same promises in memory and in files, and in files whatever
//! the disk does.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use turnstile::base::clock::Timestamp;
use turnstile::base::id::{EventId, SessionId};
use turnstile::domain::message::UserMessage;
use turnstile::sessions::waiting::memory::Memory;
use turnstile::sessions::waiting::{Item, Source, Undelivered, Waiting, WaitingError};
use turnstile::store::jsonl::Options;
use turnstile::store::log::{LogId, LogKind};
use turnstile::store::seam::LogStore as _;
use turnstile::testing::disk::{Call, EIO, Fault, Plan};
use turnstile::testing::sessions::config;
use turnstile::testing::store::{Home, records};

const SESSION: &str = "2025-11-11T04-36-29Z-0001234-000";

fn session() -> SessionId {
    SessionId::from(SESSION)
}

fn id(number: usize) -> EventId {
    EventId::from(format!("019a7133-74c8-7000-8000-{number:012}"))
}

fn item(number: usize, text: &str) -> Item {
    Item {
        id: id(number),
        source: Source::Terminal,
        created_at: Timestamp::from_ms(1_762_835_789_000),
        message: Arc::new(UserMessage::text(text)),
        config: Some(config()),
    }
}

fn forms() -> Vec<(Arc<dyn Waiting>, Option<Home>)> {
    let home = Home::new();
    vec![(Arc::<Memory>::default(), None), (Arc::new(home.inbox()), Some(home))]
}

/// What is undelivered: a claimed message in brackets.
fn shown(undelivered: &Undelivered) -> Vec<String> {
    let text = |item: &Item| item.message.plain_text();
    let claimed = undelivered.claimed.iter().map(|item| format!("[{}]", text(item)));
    claimed.chain(undelivered.waiting.iter().map(text)).collect()
}

async fn kept(waiting: &dyn Waiting) -> Vec<String> {
    shown(&waiting.look(&session()).await.expect("readable"))
}

/// Where the files of the session are.
fn folder(home: &Home) -> PathBuf {
    let folders = fs::read_dir(home.work_dir().runtime_state()).expect("there");
    let mut paths = folders.map(|entry| entry.expect("readable").path());
    let only = paths.next().expect("a folder");
    assert_eq!(paths.next(), None);
    only
}

#[tokio::test]
async fn messages_are_kept_in_the_order_of_their_ids_until_they_are_delivered() {
    for (waiting, _home) in forms() {
        let (waiting, session) = (&*waiting, session());
        for (number, text) in [(2, "b"), (1, "a"), (3, "c")] {
            waiting.put(&session, &item(number, text)).await.expect("put");
        }
        assert_eq!(kept(waiting).await, ["a", "b", "c"]);
        waiting.edit(&session, &id(2), "B").await.expect("edited");
        waiting.claim(&session, &[id(1), id(2)]).await.expect("claimed");
        assert_eq!(kept(waiting).await, ["[a]", "[B]", "c"]);
        waiting.confirm(&session, &[id(1)]).await.expect("confirmed");
        waiting.give_back(&session, &[id(2)]).await.expect("given back");
        assert_eq!(kept(waiting).await, ["B", "c"]);
        let taken = waiting.take_back(&session, &id(3)).await.expect("taken back");
        assert_eq!(taken, item(3, "c"));
        assert_eq!(kept(waiting).await, ["B"]);
        let others = [session.clone(), SessionId::from("another")];
        assert_eq!(waiting.among(&others).await.expect("listed"), [session]);
    }
}

#[tokio::test]
async fn what_is_claimed_or_gone_cannot_be_changed() {
    for (waiting, _home) in forms() {
        let session = session();
        waiting.put(&session, &item(1, "a")).await.expect("put");
        waiting.claim(&session, &[id(1)]).await.expect("claimed");
        for refused in [
            waiting.take_back(&session, &id(1)).await.map(drop),
            waiting.edit(&session, &id(1), "b").await,
            waiting.claim(&session, &[id(1)]).await,
        ] {
            assert!(
                matches!(&refused, Err(WaitingError::Claimed(it)) if *it == id(1)),
                "{refused:?}"
            );
        }
        for gone in [id(2), EventId::from("../../../etc/passwd")] {
            for refused in [
                waiting.take_back(&session, &gone).await.map(drop),
                waiting.edit(&session, &gone, "b").await,
                waiting.claim(&session, std::slice::from_ref(&gone)).await,
            ] {
                assert!(matches!(&refused, Err(WaitingError::Gone(_))), "{refused:?}");
            }
        }
        assert_eq!(kept(&*waiting).await, ["[a]"]);
    }
}

/// What a process has been told before it died.
#[derive(Default)]
struct Told {
    puts: Vec<usize>,
    edited: bool,
    /// The calls after which a message is nowhere: begun, and done.
    leaving: Vec<usize>,
    left: Vec<usize>,
}

/// A process that does all that can be done with two messages, and dies of the first failure.
async fn live(waiting: &dyn Waiting, told: &mut Told) -> Result<(), WaitingError> {
    let session = session();
    for number in [1, 2] {
        waiting.put(&session, &item(number, "old")).await?;
        told.puts.push(number);
    }
    waiting.edit(&session, &id(2), "new").await?;
    told.edited = true;
    waiting.claim(&session, &[id(1), id(2)]).await?;
    told.leaving.push(1);
    waiting.confirm(&session, &[id(1)]).await?;
    told.left.push(1);
    waiting.give_back(&session, &[id(2)]).await?;
    told.leaving.push(2);
    waiting.take_back(&session, &id(2)).await?;
    told.left.push(2);
    Ok(())
}

fn check(undelivered: &Undelivered, told: &Told, call: u64) {
    let all = undelivered.waiting.iter().chain(&undelivered.claimed);
    for number in [1, 2] {
        let found: Vec<_> = all.clone().filter(|item| item.id == id(number)).collect();
        assert!(found.len() <= 1, "call {call}: message {number} twice");
        let may_be_gone = !told.puts.contains(&number) || told.leaving.contains(&number);
        assert!(may_be_gone || found.len() == 1, "call {call}: message {number} is lost");
        assert!(!told.left.contains(&number) || found.is_empty(), "call {call}: {number} is back");
        for item in found {
            let text = item.message.plain_text();
            assert!(text == "old" || text == "new", "call {call}: {text:?}");
            assert!(number == 1 || !told.edited || text == "new", "call {call}: the edit is lost");
        }
    }
}

#[tokio::test]
async fn whichever_call_of_the_disk_is_the_last_nothing_is_lost_or_twice() {
    for fault in [Fault::Error(EIO), Fault::HalfThenError(EIO)] {
        for call in 0.. {
            let (home, mut told) = (Home::new(), Told::default());
            home.disk.fail(Plan { only: None, from: call, times: u64::MAX, fault });
            let died = live(&home.inbox(), &mut told).await;
            home.disk.heal();
            let next = home.inbox();
            check(&next.look(&session()).await.expect("readable"), &told, call);
            next.tidy(&session()).await.expect("tidied");
            let claimed = next.look(&session()).await.expect("readable").claimed;
            let ids: Vec<_> = claimed.into_iter().map(|item| item.id).collect();
            next.give_back(&session(), &ids).await.expect("given back");
            let after = next.look(&session()).await.expect("readable");
            assert_eq!(after.claimed, []);
            check(&after, &told, call);
            if died.is_ok() {
                assert!(call > 50, "all of it takes more than {call} calls");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_fails_leaves_the_messages_and_can_be_made_again() {
    for call in 0.. {
        let (home, mut told) = (Home::new(), Told::default());
        home.disk.fail(Plan { only: None, from: call, times: 1, fault: Fault::Error(EIO) });
        let inbox = home.inbox();
        let failed = live(&inbox, &mut told).await;
        let made = home.disk.calls().len() as u64;
        home.disk.heal();
        let undelivered = inbox.look(&session()).await.expect("readable");
        check(&undelivered, &told, call);
        let expected = match (told.puts.len(), told.leaving.len(), failed.is_err()) {
            (2, 0, _) | (_, 2, false) => told.puts.len() - told.left.len(),
            (2, 1, _) => undelivered.count(),
            (2, 2, true) => 1,
            (puts, ..) => puts,
        };
        assert_eq!(undelivered.count(), expected, "call {call}: {:?}", shown(&undelivered));
        let ids: Vec<_> = undelivered.claimed.into_iter().map(|item| item.id).collect();
        inbox.give_back(&session(), &ids).await.expect("given back");
        live(&inbox, &mut Told::default()).await.expect("nothing is in the way");
        assert_eq!(kept(&inbox).await, [""; 0]);
        if call >= made {
            break;
        }
    }
}

#[tokio::test]
async fn what_is_kept_is_for_its_owner_alone() {
    let home = Home::new();
    let inbox = home.inbox();
    assert_eq!(kept(&inbox).await, [""; 0]);
    assert!(!home.work_dir().runtime_state().exists(), "reading makes nothing");
    inbox.put(&session(), &item(1, "a")).await.expect("put");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let folder = folder(&home);
    assert_eq!(mode(&folder), 0o700);
    let file = folder.join("inbox").join(format!("{}.pending", id(1)));
    assert_eq!(mode(&file), 0o600);
    inbox.claim(&session(), &[id(1)]).await.expect("claimed");
    assert!(!file.exists());
    let claim = folder.join("mailbox/pending").join(format!("{}.item.json", id(1)));
    let text = fs::read_to_string(&claim).expect("there");
    assert!(text.starts_with(r#"{"events":[{"event_id":"#), "{text}");
    inbox.confirm(&session(), &[id(1)]).await.expect("confirmed");
    assert!(!claim.exists());
}

#[tokio::test]
async fn a_message_that_is_too_long_to_wait_is_refused_and_leaves_nothing() {
    let home = Home::new();
    let inbox = home.inbox();
    let long = "x".repeat(1024 * 1024);
    let refused = inbox.put(&session(), &item(1, &long)).await;
    assert!(matches!(refused, Err(WaitingError::TooLong { .. })), "{refused:?}");
    inbox.put(&session(), &item(2, "short")).await.expect("put");
    let refused = inbox.edit(&session(), &id(2), &long).await;
    assert!(matches!(refused, Err(WaitingError::TooLong { .. })), "{refused:?}");
    assert_eq!(kept(&inbox).await, ["short"]);
}

#[tokio::test]
async fn what_is_no_item_is_rejected_with_its_reason_and_holds_up_nothing() {
    let home = Home::new();
    let inbox = home.inbox();
    inbox.put(&session(), &item(3, "good")).await.expect("put");
    let folder = folder(&home).join("inbox");
    let pending = |number: usize| folder.join(format!("{}.pending", id(number)));
    fs::write(pending(1), "{\"kind\":").expect("written");
    fs::write(pending(2), r#"{"kind":"stop","turn_id":"x"}"#).expect("written");
    fs::create_dir(pending(4)).expect("made");
    fs::write(folder.join("notes.txt"), "mine").expect("written");
    fs::write(folder.join("ZZZ.pending"), "mine").expect("written");
    assert_eq!(kept(&inbox).await, ["good"]);
    let told = inbox.tidy(&session()).await.expect("tidied");
    let rejected = folder.join("rejected");
    for (number, told) in [1, 4].into_iter().zip(&told) {
        assert!(!pending(number).exists());
        let kept = rejected.join(format!("{}.pending", id(number)));
        assert!(kept.exists());
        let reason = fs::read_to_string(rejected.join(format!("{}.reason", id(number))));
        assert_eq!((&reason.expect("there"), &kept), (&told.why, &told.path));
        assert!(!told.why.is_empty());
    }
    assert_eq!(told.len(), 2);
    assert!(pending(2).exists(), "another kind is somebody else's");
    assert!(folder.join("notes.txt").exists() && folder.join("ZZZ.pending").exists());
    assert_eq!(kept(&inbox).await, ["good"]);
}

#[tokio::test]
async fn a_link_is_no_item_and_no_claim_wherever_it_leads() {
    let home = Home::new();
    let inbox = home.inbox();
    for (number, text) in [(1, "a"), (2, "b"), (3, "c")] {
        inbox.put(&session(), &item(number, text)).await.expect("put");
    }
    inbox.claim(&session(), &[id(1)]).await.expect("claimed");
    let root = folder(&home);
    let claim = root.join("mailbox/pending").join(format!("{}.item.json", id(1)));
    let pending = root.join("inbox").join(format!("{}.pending", id(2)));
    for (path, aside) in [(&claim, root.join("claim")), (&pending, root.join("item"))] {
        fs::rename(path, &aside).expect("moved");
        symlink(&aside, path).expect("linked");
    }
    symlink(root.join("nowhere"), root.join("inbox").join(format!("{}.pending", id(4))))
        .expect("linked");
    assert_eq!(kept(&inbox).await, ["c"]);
    let told = inbox.tidy(&session()).await.expect("tidied");
    let reasons: Vec<_> = told.iter().map(|told| told.why.as_str()).collect();
    assert_eq!(reasons, ["it is a link"; 3]);
    assert!(told.iter().all(|told| told.path.is_symlink()), "{told:?}");
    assert!(root.join("claim").exists() && root.join("item").exists());
    assert_eq!(kept(&inbox).await, ["c"]);
}

#[tokio::test]
async fn a_file_of_another_user_is_no_item_and_no_claim() {
    let home = Home::new();
    let inbox = home.inbox();
    for (number, text) in [(1, "a"), (2, "b")] {
        inbox.put(&session(), &item(number, text)).await.expect("put");
    }
    inbox.claim(&session(), &[id(1)]).await.expect("claimed");
    home.disk.fail(Plan {
        only: Some(Call::Stat),
        from: 0,
        times: u64::MAX,
        fault: Fault::Foreign,
    });
    assert_eq!(kept(&inbox).await, [""; 0]);
    let told = inbox.tidy(&session()).await.expect("tidied");
    let reasons: Vec<_> = told.iter().map(|told| told.why.as_str()).collect();
    assert_eq!(reasons, ["it belongs to another user"; 2]);
    home.disk.heal();
    assert_eq!(kept(&inbox).await, [""; 0]);
}

#[tokio::test]
async fn what_the_disk_does_not_give_for_once_is_not_taken_for_bad() {
    let home = Home::new();
    let inbox = home.inbox();
    inbox.put(&session(), &item(1, "a")).await.expect("put");
    inbox.put(&session(), &item(2, "b")).await.expect("put");
    inbox.claim(&session(), &[id(1)]).await.expect("claimed");
    for only in [Call::Open, Call::Read, Call::Stat] {
        for from in 0..4 {
            home.disk.fail(Plan { only: Some(only), from, times: 1, fault: Fault::Error(EIO) });
            let tidied = inbox.tidy(&session()).await;
            assert!(tidied.as_ref().is_ok_and(Vec::is_empty) || tidied.is_err(), "{tidied:?}");
            home.disk.heal();
            assert_eq!(kept(&inbox).await, ["[a]", "b"], "{only:?} {from}");
        }
    }
}

#[tokio::test]
async fn the_longest_message_that_waits_can_be_claimed_and_given_back() {
    let home = Home::new();
    let inbox = home.inbox();
    inbox.put(&session(), &item(1, "")).await.expect("put");
    let file = folder(&home).join("inbox").join(format!("{}.pending", id(1)));
    let rest = 1024 * 1024 - fs::read(&file).expect("there").len();
    let long = "x".repeat(rest);
    inbox.edit(&session(), &id(1), &long).await.expect("it fits");
    inbox.claim(&session(), &[id(1)]).await.expect("claimed");
    assert_eq!(kept(&inbox).await, [format!("[{long}]")]);
    inbox.give_back(&session(), &[id(1)]).await.expect("given back");
    assert_eq!(kept(&inbox).await, [long]);
}

/// The texts of messages as a claim has them, each with its number.
fn claim_of(messages: &[(&str, usize)]) -> String {
    let events = messages.iter().map(|(text, number)| {
        let id = id(*number);
        format!(
            r#"{{"event_id":"{id}","kind":"message","source":"cron","created_at":"2025-11-11T04:36:29Z","text":"{text}"}}"#
        )
    });
    format!(r#"{{"events":[{}]}}"#, events.collect::<Vec<_>>().join(","))
}

#[tokio::test]
async fn of_a_claim_of_several_messages_each_is_settled_by_itself() {
    let home = Home::new();
    let inbox = home.inbox();
    inbox.put(&session(), &item(9, "later")).await.expect("put");
    let claims = folder(&home).join("mailbox/pending");
    fs::create_dir_all(&claims).expect("made");
    let long = "x".repeat(600 * 1024);
    let claim = claim_of(&[("a", 1), (&long, 2), (&long, 3)]);
    fs::write(claims.join(format!("{}.item.json", id(1))), claim).expect("written");
    assert_eq!(inbox.tidy(&session()).await.expect("tidied"), []);
    inbox.confirm(&session(), &[id(1)]).await.expect("confirmed");
    assert_eq!(inbox.tidy(&session()).await.expect("tidied"), []);
    inbox.give_back(&session(), &[id(3)]).await.expect("given back");
    assert_eq!(kept(&inbox).await, [format!("[{long}]"), long, "later".to_owned()]);
}

#[tokio::test]
async fn what_is_no_claim_is_set_aside_whole_and_told() {
    let home = Home::new();
    let inbox = home.inbox();
    inbox.put(&session(), &item(9, "good")).await.expect("put");
    let mailbox = folder(&home).join("mailbox");
    fs::create_dir_all(mailbox.join("pending")).expect("made");
    let elsewhere = r#"{"events":[{"event_id":"../../../gone","kind":"message","source":"cron","created_at":"2025-11-11T04:36:29Z","text":"x"}]}"#;
    let bad = [
        (1, claim_of(&[("a", 1)]).replace("cron\"", "")),
        (2, claim_of(&[("before its name", 1)])),
        (3, claim_of(&[("twice", 3), ("twice", 3)])),
        (4, elsewhere.to_owned()),
        (5, claim_of(&[("a", 5)]).replace("\"text\"", "\"txet\"")),
    ];
    for (number, text) in &bad {
        let name = format!("{}.item.json", id(*number));
        fs::write(mailbox.join("pending").join(name), text).expect("written");
    }
    assert_eq!(kept(&inbox).await, ["good"]);
    let told = inbox.tidy(&session()).await.expect("tidied");
    for ((number, text), told) in bad.iter().zip(&told) {
        let kept = mailbox.join("quarantine").join(format!("{}.item.json", id(*number)));
        assert_eq!(fs::read_to_string(&kept).expect("there"), *text);
        assert_eq!(told.path, kept);
    }
    assert_eq!(told.len(), bad.len());
    assert_eq!(inbox.tidy(&session()).await.expect("tidied"), []);
    assert_eq!(kept(&inbox).await, ["good"]);
}

#[tokio::test]
async fn what_is_set_aside_goes_when_its_removal_is_destroyed() {
    let home = Home::new();
    let (store, inbox) = (home.store(Options::default()), home.inbox());
    let log = LogId::new(LogKind::Session, SESSION).expect("valid");
    drop(store.create(&log, &records(0..1)).await.expect("created"));
    inbox.put(&session(), &item(1, "a")).await.expect("put");
    inbox.put(&session(), &item(2, "b")).await.expect("put");
    inbox.claim(&session(), &[id(1)]).await.expect("claimed");
    let removed = store.remove(&log).await.expect("removed");
    inbox.set_aside(&session(), &removed).await.expect("set aside");
    assert_eq!(kept(&inbox).await, [""; 0]);
    inbox.bring_back(&session(), &removed).await.expect("brought back");
    assert_eq!(kept(&inbox).await, ["[a]", "b"]);
    inbox.set_aside(&session(), &removed).await.expect("set aside");
    store.destroy(&removed).await.expect("destroyed");
    assert_eq!(fs::read_dir(home.work_dir().deleted()).expect("there").count(), 0);
    inbox.bring_back(&session(), &removed).await.expect("there is nothing");
    assert_eq!(kept(&inbox).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_another_program_holds_is_asked_for_again_before_a_change_is_refused() {
    let home = Home::new();
    let inbox = home.inbox();
    inbox.put(&session(), &item(1, "a")).await.expect("put");
    let path = folder(&home).join("lock");
    let lock = fs::File::open(&path).expect("there");
    lock.try_lock().expect("free");
    let began = tokio::time::Instant::now();
    let refused = inbox.take_back(&session(), &id(1)).await;
    assert!(matches!(&refused, Err(WaitingError::Locked(it)) if *it == path), "{refused:?}");
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    assert_eq!(kept(&inbox).await, ["a"], "who only looks waits for nobody");
    drop(lock);
    inbox.take_back(&session(), &id(1)).await.expect("taken back");
}
