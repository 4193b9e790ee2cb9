//! Files in the work directory that this program did not write, or that something has damaged: of
//! every kind one. Each makes an errored entry with its reason, harms no other, and stays as it is,
//! whatever is looked at (`cases/README.md`, durability).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnstile::app::Access;
use turnstile::app::command::Command;
use turnstile::app::notice::Notice;
use turnstile::base::id::{SessionId, TurnId};
use turnstile::base::tasks::Tasks;
use turnstile::domain::event::Event;
use turnstile::domain::session::event::{SessionCreated, SessionEvent};
use turnstile::domain::turn::event::{TurnCreated, TurnEvent, TurnFact};
use turnstile::store::disk::RealDisk;
use turnstile::store::jsonl;
use turnstile::store::live_text;
use turnstile::store::seam::LogStore as _;
use turnstile::store::work_dir::WorkDir;
use turnstile::testing::fact::{answer, complete, request, turn};
use turnstile::testing::log::Log;
use turnstile::testing::session_fact::{appended, header};
use turnstile::testing::store::{CountingEntropy, StillClock};
use turnstile::testing::tools::FakeTool;

use crate::app_world::{GUIDE, Person};
use crate::cli_world::{Cli, shown};
use crate::sessions_real_world::World;

const DAY: &str = "2026/03/04";

/// What became of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Torn,
    Empty,
    OnlyALineEnd,
    HalfALine,
    NotUtf8,
    Zeroes,
    NoObject,
    OfAnotherId,
    UnknownEvent,
    NewerSchema,
    TwoBeginnings,
    CutInTheMiddle,
    Folder,
    Pipe,
    Socket,
    LinkToNothing,
    LinkToAFolder,
    LinkToAPipe,
    LinkToItself,
}

const KINDS: [Kind; 20] = [
    Kind::Whole,
    Kind::Torn,
    Kind::Empty,
    Kind::OnlyALineEnd,
    Kind::HalfALine,
    Kind::NotUtf8,
    Kind::Zeroes,
    Kind::NoObject,
    Kind::OfAnotherId,
    Kind::UnknownEvent,
    Kind::NewerSchema,
    Kind::TwoBeginnings,
    Kind::CutInTheMiddle,
    Kind::Folder,
    Kind::Pipe,
    Kind::Socket,
    Kind::LinkToNothing,
    Kind::LinkToAFolder,
    Kind::LinkToAPipe,
    Kind::LinkToItself,
];

impl Kind {
    /// Whether it can be read: an end that a crash tore is as if it had never been begun.
    fn is_readable(self) -> bool {
        matches!(self, Self::Whole | Self::Torn)
    }

    /// Puts the log `text` there, as this kind.
    fn put(self, path: &Path, text: &str) {
        let (first, rest) = text.split_once('\n').expect("a log has lines");
        let (half, _) = first.split_at(first.len() / 2);
        let bytes: Vec<u8> = match self {
            Self::Whole => text.into(),
            Self::Torn => format!("{text}{half}").into(),
            Self::Empty => Vec::new(),
            Self::OnlyALineEnd => "\n".into(),
            Self::HalfALine => half.into(),
            Self::NotUtf8 => [text.as_bytes(), b"{\"type\":\"\xff\xfe\"}\n"].concat(),
            Self::Zeroes => vec![0; text.len()],
            Self::NoObject => format!("{text}[1]\n").into(),
            Self::OfAnotherId => text.replace("-0000042-", "-0000043-").into(),
            Self::UnknownEvent => {
                let (kind, rest) = first.split_once("_created").expect("how a log begins");
                format!("{text}{kind}_unheard_of{rest}\n").into()
            }
            Self::NewerSchema => {
                text.replacen("\"schemaVersion\":1", "\"schemaVersion\":3", 1).into()
            }
            Self::TwoBeginnings => format!("{first}\n{first}\n{rest}").into(),
            Self::CutInTheMiddle => format!("{half}\n{rest}").into(),
            Self::Folder => return fs::create_dir(path).expect("a folder"),
            Self::Pipe => return pipe(path),
            Self::Socket => return drop(UnixListener::bind(path).expect("a socket")),
            Self::LinkToNothing => return link(path, Path::new("/nowhere/at/all")),
            Self::LinkToAFolder => return link(path, Path::new("/")),
            Self::LinkToAPipe => {
                let to = path.with_extension("pipe");
                pipe(&to);
                return link(path, &to);
            }
            Self::LinkToItself => return link(path, path),
        };
        fs::write(path, bytes).expect("written");
    }
}

fn pipe(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).expect("a pipe");
}

fn link(path: &Path, to: &Path) {
    symlink(to, path).expect("a link");
}

fn session_id(number: usize) -> SessionId {
    SessionId::from(format!("2026-03-04T05-06-07Z-0000042-{number:03}"))
}

fn turn_id(number: usize) -> TurnId {
    TurnId::from(format!("2026-03-04T05-06-08Z-0000042-{number:03}"))
}

/// The logs of the `number`th session and of its one turn.
fn logs(number: usize) -> [String; 2] {
    let (session, turn_id) = (session_id(number), turn_id(number));
    let header = SessionCreated { title: Some(format!("Number {number}")), ..header() };
    let events = Log::session(header).then(appended(1, turn_id.as_str())).into_events();
    let of_session = |it| Event { id: session.clone(), ..it }.to_line() + "\n";
    let session_log = events.into_iter().map(|it: SessionEvent| of_session(it)).collect();
    let created = TurnCreated { session_id: Some(session.clone()), ..turn() };
    let events = Log::turn(TurnFact::Created(created.into()))
        .then(request(0, "input"))
        .then(answer(0, "It was the clock."))
        .then(complete())
        .into_events();
    let of_turn = |it| Event { id: turn_id.clone(), ..it }.to_line() + "\n";
    [session_log, events.into_iter().map(|it: TurnEvent| of_turn(it)).collect()]
}

/// A work directory with a session of each kind, then one whose turn is of each kind.
struct Scenery {
    cli: Cli,
    work_dir: PathBuf,
    kinds: Vec<Kind>,
}

impl Scenery {
    fn new() -> Self {
        let cli = Cli::new();
        let work_dir = cli.work_dir();
        Self::at(cli, work_dir)
    }

    fn at(cli: Cli, path: PathBuf) -> Self {
        let work_dir = WorkDir::new(path.clone()).expect("absolute");
        work_dir.prepare(&RealDisk).expect("prepared");
        let scenery = Self { cli, work_dir: path, kinds: [KINDS, KINDS].concat() };
        for kind in ["sessions", "turns"] {
            fs::create_dir_all(scenery.folder(kind)).expect("a folder");
        }
        for (number, kind) in scenery.kinds.iter().enumerate() {
            let [session, turn] = logs(number);
            let is_of_session = number < KINDS.len();
            let (session_kind, turn_kind) =
                if is_of_session { (*kind, Kind::Whole) } else { (Kind::Whole, *kind) };
            session_kind.put(&scenery.session_file(number), &session);
            turn_kind.put(&scenery.turn_file(number), &turn);
        }
        scenery
    }

    fn folder(&self, kind: &str) -> PathBuf {
        self.work_dir.join("storage").join(kind).join(DAY)
    }

    fn session_file(&self, number: usize) -> PathBuf {
        self.folder("sessions").join(format!("{}.jsonl", session_id(number)))
    }

    fn turn_file(&self, number: usize) -> PathBuf {
        self.folder("turns").join(format!("{}.jsonl", turn_id(number)))
    }

    /// Where the trouble of a session lies.
    fn damaged_file(&self, number: usize) -> PathBuf {
        if number < KINDS.len() { self.session_file(number) } else { self.turn_file(number) }
    }

    fn store(&self) -> jsonl::Store {
        let parts = jsonl::Parts {
            disk: Arc::new(RealDisk),
            clock: Arc::new(StillClock),
            entropy: Arc::new(CountingEntropy::default()),
            tasks: Tasks::new(),
            lock: None,
        };
        let work_dir = WorkDir::new(self.work_dir.clone()).expect("absolute");
        jsonl::Store::new(work_dir, parts, jsonl::Options::default())
    }

    fn world(&self) -> World {
        let work_dir = WorkDir::new(self.work_dir.clone()).expect("absolute");
        let live_text = live_text::Files::new(Arc::new(RealDisk), work_dir, Tasks::new());
        let writer = FakeTool::sync("write_file");
        World::of(writer, Arc::new(live_text), Arc::new(self.store()), 43)
    }
}

/// Everything below a folder: what it is, when it was changed, and what is in it.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let meta = path.symlink_metadata().expect("there");
            let content = if meta.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else if meta.is_file() {
                fs::read(&path).expect("a file")
            } else if meta.is_symlink() {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else {
                Vec::new()
            };
            found.insert(path, (meta.mode(), meta.mtime_nsec(), content));
        }
    }
    found
}

#[tokio::test]
async fn a_scan_makes_an_errored_entry_of_each_and_touches_nothing() {
    let scenery = Scenery::new();
    let before = tree(&scenery.cli.work_dir());
    let world = scenery.world();
    world.sessions.scan().await.expect("the sessions can be listed");
    assert_eq!(world.sessions.list_sessions().len(), scenery.kinds.len());
    for (number, kind) in scenery.kinds.iter().enumerate() {
        let entry = world.sessions.index().get(&session_id(number)).expect("listed");
        let file = shown(&scenery.damaged_file(number));
        let is_named = entry.error.as_ref().map(|error| error.contains(&file));
        let expected = if kind.is_readable() { None } else { Some(true) };
        assert_eq!(is_named, expected, "{kind:?}: {:?}", entry.error);
    }
    assert_eq!(tree(&scenery.cli.work_dir()), before);
}

#[tokio::test]
async fn opening_each_says_why_it_cannot_be_read_and_touches_nothing() {
    let scenery = Scenery::new();
    let before = tree(&scenery.cli.work_dir());
    let world = scenery.world();
    for (number, kind) in scenery.kinds.iter().enumerate() {
        let session = world.sessions.get_session(&session_id(number)).await.map(drop);
        let turn = world.sessions.get_turn(&turn_id(number)).await.map(drop);
        let (damaged, other) = if number < KINDS.len() { (session, turn) } else { (turn, session) };
        other.expect("the other log is whole");
        match damaged {
            Ok(()) => assert!(kind.is_readable(), "{kind:?} is read"),
            Err(error) => {
                let (error, file) = (error.to_string(), shown(&scenery.damaged_file(number)));
                assert!(!kind.is_readable() && error.contains(&file), "{kind:?}: {error}");
            }
        }
        // Nothing is built on what cannot be read, and nothing repairs it.
        if !kind.is_readable() {
            assert!(world.try_send(&session_id(number)).await.is_err(), "{kind:?}");
            assert!(world.sessions.set_title(&session_id(number), "x").await.is_err(), "{kind:?}");
            assert!(world.sessions.resume_turn(&session_id(number)).await.is_err(), "{kind:?}");
        }
    }
    assert_eq!(tree(&scenery.cli.work_dir()), before);
}

#[tokio::test]
async fn each_can_be_deleted_and_comes_back_as_it_was() {
    let scenery = Scenery::new();
    let before = tree(&scenery.folder("sessions"));
    let world = scenery.world();
    world.sessions.scan().await.expect("the sessions can be listed");
    for (number, kind) in scenery.kinds.iter().enumerate() {
        let (session, file) = (session_id(number), scenery.session_file(number));
        let removed = world.sessions.delete_session(&session).await;
        removed.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert!(file.symlink_metadata().is_err(), "{kind:?}");
        let restored = world.sessions.restore_session(&session).await;
        restored.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
    assert_eq!(tree(&scenery.folder("sessions")), before);
    assert_eq!(world.sessions.list_sessions().len(), scenery.kinds.len());
}

#[tokio::test]
async fn a_person_who_opens_every_session_is_told_why_not_and_changes_none() {
    let person = Person::new(GUIDE);
    let scenery = Scenery::at(Cli::new(), person.work_dir());
    // The first start writes down in which form the logs are kept.
    drop(person.take(Access::Full).expect("it is free"));
    let before = tree(&scenery.work_dir.join("storage"));
    let mut running = person.start();
    running.until(|notice| matches!(notice, Notice::ScanEnded { .. }).then_some(())).await;
    for (number, kind) in scenery.kinds.iter().enumerate() {
        let id = session_id(number);
        running.perform(Command::Open(id.clone()));
        let opened = |notice: &Notice| match notice {
            Notice::SessionOpened { session, state } if *session == id => Some(state.clone()),
            _ => None,
        };
        let state = running.until(opened).await;
        let is_readable = number >= KINDS.len() || kind.is_readable();
        assert_eq!(state.is_ok(), is_readable, "{kind:?}: {state:?}");
        if let Err(why) = state {
            assert!(why.contains(&shown(&scenery.session_file(number))), "{kind:?}: {why}");
            continue;
        }
        let loaded = |notice: &Notice| match notice {
            Notice::TurnsLoaded { session, turns, left: 0 } if *session == id => {
                turns.first().cloned()
            }
            _ => None,
        };
        let turn = running.until(loaded).await.content;
        assert_eq!(turn.is_ok(), number < KINDS.len() || kind.is_readable(), "{kind:?}");
        if let Err(why) = turn {
            assert!(why.contains(&shown(&scenery.turn_file(number))), "{kind:?}: {why}");
        }
    }
    running.perform(Command::Close);
    running.app.shut_down().await.expect("it ends");
    assert_eq!(tree(&scenery.work_dir.join("storage")), before);
}

#[test]
fn the_commands_that_look_say_why_and_touch_nothing() {
    let scenery = Scenery::new();
    let before = tree(&scenery.cli.work_dir());
    let listed = scenery.cli.run(&["sessions", "list", "--json"]);
    listed.check_done();
    let entries = listed.json_lines();
    assert_eq!(entries.len(), scenery.kinds.len());
    for (number, kind) in scenery.kinds.iter().enumerate() {
        let session = session_id(number);
        let entry = entries.iter().find(|entry| entry["sessionId"] == session.as_str());
        let error = entry.expect("listed").get("error");
        assert_eq!(error.is_none(), kind.is_readable(), "{kind:?}: {error:?}");
        for arguments in [
            &["sessions", "show", session.as_str()][..],
            &["sessions", "show", session.as_str(), "--json"],
        ] {
            let ran = scenery.cli.run(arguments);
            if kind.is_readable() {
                ran.check_done();
            } else {
                let (said, file) =
                    (format!("{}{}", ran.out, ran.err), shown(&scenery.damaged_file(number)));
                assert!(ran.code != 0 && said.contains(&file), "{kind:?}: {said}");
            }
        }
    }
    let doctor = scenery.cli.run(&["doctor"]);
    let damaged = scenery.kinds.iter().filter(|kind| !kind.is_readable()).count();
    assert_eq!(doctor.code, 1, "{}", doctor.out);
    assert!(doctor.out.contains(&format!("! damaged        {damaged}")), "{}", doctor.out);
    assert_eq!(tree(&scenery.cli.work_dir()), before);
}

/// Puts something at a path.
type Put = Box<dyn Fn(&Path)>;

/// Turns whose answer was streaming, each with another thing in the place of its crash buffer.
#[tokio::test]
async fn a_crash_buffer_that_is_none_changes_nothing() {
    let cli = Cli::new();
    let (work_dir, kinds) = (cli.work_dir(), Vec::new());
    let scenery = Scenery { cli, work_dir, kinds };
    for kind in ["sessions", "turns"] {
        fs::create_dir_all(scenery.folder(kind)).expect("a folder");
    }
    let piece = |turn: &TurnId, call: u64| {
        format!(
            r#"{{"turnId":"{turn}","modelCallIndex":{call},"block":0,"kind":"text","text":"Once"}}"#
        )
    };
    let written =
        |text: String| -> Put { Box::new(move |path| fs::write(path, &text).expect("written")) };
    let buffers: Vec<Put> = vec![
        written(String::new()),
        written(piece(&turn_id(99), 0) + "\n"),
        written(piece(&turn_id(2), 7) + "\n"),
        written(piece(&turn_id(3), 0).replace('}', "")),
        written("no json\n".to_owned()),
        Box::new(|path| fs::write(path, [0xff; 64]).expect("written")),
        Box::new(|path| fs::create_dir(path).expect("a folder")),
        Box::new(pipe),
        Box::new(|path| link(path, Path::new("/nowhere"))),
    ];
    for (number, put) in buffers.iter().enumerate() {
        let [session, turn] = logs(number);
        let open: String = turn.split_inclusive('\n').take(2).collect();
        fs::write(scenery.session_file(number), session).expect("written");
        fs::write(scenery.turn_file(number), open).expect("written");
        put(&scenery.turn_file(number).with_extension("live"));
    }
    let before = tree(&scenery.cli.work_dir());
    let world = scenery.world();
    world.sessions.scan().await.expect("the sessions can be listed");
    for number in 0..buffers.len() {
        let entry = world.sessions.index().get(&session_id(number)).expect("listed");
        assert_eq!(entry.error, None, "the {number}th");
        let turn = world.sessions.get_turn(&turn_id(number)).await.expect("readable");
        assert_eq!((turn.interrupted, turn.events.len()), (None, 2), "the {number}th");
    }
    assert_eq!(tree(&scenery.cli.work_dir()), before);
}

#[tokio::test]
async fn a_removal_without_its_note_or_its_log_is_left_alone() {
    let cli = Cli::new();
    let (work_dir, kinds) = (cli.work_dir(), Vec::new());
    let scenery = Scenery { cli, work_dir, kinds };
    let deleted = scenery.cli.work_dir().join("var/deleted");
    let note = |of: &str| {
        format!(r#"{{"kind":"session","id":"{of}","removedAt":"2020-01-01T00:00:00.000Z"}}"#)
    };
    let session = session_id(0);
    let log = format!("{session}.jsonl");
    for (number, (note, log)) in [
        (None, Some(log.as_str())),
        (Some(String::new()), Some(&log)),
        (Some("{}".to_owned()), Some(&log)),
        (Some("\u{0}\u{0}".to_owned()), Some(&log)),
        (Some(note("../../etc")), Some(&log)),
        (Some(note(session.as_str())), None),
        (Some("x".repeat(10_000)), Some(&log)),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = deleted.join(format!("of-somebody-{number}"));
        fs::create_dir_all(&folder).expect("a folder");
        if let Some(note) = note {
            fs::write(folder.join("removed.json"), note).expect("written");
        }
        if let Some(log) = log {
            fs::write(folder.join(log), &logs(0)[0]).expect("written");
        }
    }
    fs::write(deleted.join("no-folder"), "x").expect("written");
    let before = tree(&scenery.cli.work_dir());
    let store = scenery.store();
    let removed = store.removed().await.expect("listed");
    assert_eq!(removed, [], "so nothing of it is ever destroyed");
    let world = scenery.world();
    assert!(world.sessions.restore_session(&session).await.is_err());
    assert_eq!(tree(&scenery.cli.work_dir()), before);
}
