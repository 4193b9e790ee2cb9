//! The form in which sessions are kept, from the configuration to the files, and what happens where
//! another one is there already.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnstile::app::command::DraftOf;
use turnstile::base::clock::Clock as _;
use turnstile::base::tasks::Tasks;
use turnstile::store::disk::RealDisk;
use turnstile::store::lock::InstanceLock;
use turnstile::store::parts::Parts;
use turnstile::store::seam::{Durability, LogStore as _};
use turnstile::store::sqlite;
use turnstile::store::work_dir::WorkDir;
use turnstile::testing::folder::{files, tree};
use turnstile::testing::rights::within_permissions;
use turnstile::testing::store::{CountingEntropy, StillClock, records, turn};

use crate::app_world::{GUIDE, Person, process};
use crate::cli_world::{Cli, Ran};

/// The logs below the folder of a work directory stand in this form, and in no other.
fn check_form(storage: &Path, form: &str) {
    let logs = [files(&storage.join("sessions")), files(&storage.join("turns"))].concat();
    let database = storage.join("turnstile.db");
    assert_eq!((logs.is_empty(), database.exists()), (form == "sqlite", form == "sqlite"));
    let suffix = format!(".{}", form.replace('-', "."));
    for log in logs {
        assert!(log.to_string_lossy().ends_with(&suffix), "{}", log.display());
    }
}

#[test]
fn sessions_in_frames_are_gone_on_with_deleted_and_restored_like_any_other() {
    check_gone_on_with("jsonl-zst");
}

#[test]
fn sessions_in_a_database_are_gone_on_with_deleted_and_restored_like_any_other() {
    check_gone_on_with("sqlite");
}

fn check_gone_on_with(form: &str) {
    let person = Person::new(GUIDE);
    person.configure_storage(GUIDE, &format!("format = \"{form}\""));
    let (mut session, mut turns) = (None, 0);
    for _ in 0..3 {
        process(async {
            let mut running = person.start();
            running.listed().await;
            let of = session.clone().map_or(DraftOf::NewSession, DraftOf::Session);
            let (ran, turn) = running.run(of, "Tell me about keys").await;
            turns += 1;
            let sessions = running.app.graph().sessions.clone();
            let entry = sessions.index().get(&ran).expect("listed");
            assert_eq!((entry.turn_count, &entry.error), (turns, &None));
            let state = sessions.get_turn(&turn).await.expect("readable").state;
            assert!(state.terminal.is_some());
            sessions.delete_session(&ran).await.expect("deleted");
            sessions.restore_session(&ran).await.expect("restored");
            session = Some(ran);
            running.leave().await;
        });
    }
    check_form(&person.work_dir().join("storage"), form);
}

#[test]
fn every_command_refuses_another_form_than_the_sessions_have_and_changes_nothing() {
    let cli = Cli::new();
    for (kept, asked) in [
        ("jsonl", "jsonl-zst"),
        ("jsonl-zst", "jsonl"),
        ("jsonl", "sqlite"),
        ("sqlite", "jsonl"),
        ("sqlite", "jsonl-zst"),
    ] {
        fs::remove_dir_all(cli.work_dir()).ok();
        cli.configure(&format!("[storage]\nformat = \"{kept}\"\n"));
        assert_eq!(cli.run(&["run", "hello"]).code, 0);
        cli.configure(&format!("[storage]\nformat = \"{asked}\"\n"));
        let before = tree(&cli.work_dir());
        let said = [
            format!("are kept as \"{kept}\""),
            format!("storage.format asks for \"{asked}\""),
            format!("set storage.format = \"{kept}\" in the configuration"),
        ];
        let said = said.each_ref().map(String::as_str);
        for arguments in
            [&["run", "hello"][..], &["sessions", "list"], &["sessions", "list", "--deleted"]]
        {
            cli.run(arguments).check_refused(2, &said);
        }
        let doctor = cli.run(&["doctor"]);
        assert_eq!(doctor.code, 1);
        let refused = doctor.out.lines().find(|line| line.starts_with("! storage")).expect("told");
        assert!(said.iter().all(|said| refused.contains(said)), "{refused}");
        // The rest is looked at all the same, and as it is.
        let counted = doctor.out.lines().any(|line| line.trim() == "sessions       0");
        assert!(counted && doctor.out.contains("\nModels\n"), "{}", doctor.out);
        assert_eq!(tree(&cli.work_dir()), before);
        cli.configure(&format!("[storage]\nformat = \"{kept}\"\n"));
        assert_eq!(cli.run(&["run", "hello"]).code, 0);
        check_form(&cli.work_dir().join("storage"), kept);
    }
}

/// A work directory with two sessions in a database, and how they are listed.
struct Kept {
    cli: Cli,
    person: Person,
    listed: String,
}

impl Kept {
    fn new() -> Self {
        let (cli, person) = (Cli::new(), Person::new(GUIDE));
        cli.configure("[storage]\nformat = \"sqlite\"\n");
        person.configure_storage(GUIDE, "format = \"sqlite\"");
        process(async {
            let mut running = person.start();
            running.listed().await;
            for text in ["Tell me about keys", "Tell me of doors"] {
                running.run(DraftOf::NewSession, text).await;
            }
            running.leave().await;
        });
        let mut kept = Self { cli, person, listed: String::new() };
        let listed = kept.run(&["sessions", "list"]);
        listed.check_done();
        assert!(["keys", "doors"].iter().all(|text| listed.out.contains(text)), "{}", listed.out);
        kept.listed = listed.out;
        kept
    }

    fn work_dir(&self) -> PathBuf {
        self.person.work_dir()
    }

    fn storage(&self) -> PathBuf {
        self.work_dir().join("storage")
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.cli.command(arguments);
        command.arg("--work-dir").arg(self.work_dir());
        Ran::of(&command.output().expect("the program starts"))
    }

    /// Every command that looks does so, and changes nothing.
    fn check_looked_at(&self) {
        let before = tree(&self.work_dir());
        for _ in 0..2 {
            let again = self.run(&["sessions", "list"]);
            assert_eq!((again.code, &again.out), (0, &self.listed), "{}", again.err);
            let doctor = self.run(&["doctor"]);
            let counted = doctor.out.lines().any(|line| line.trim() == "sessions       2");
            assert!(counted, "{}", doctor.out);
        }
        assert_eq!(tree(&self.work_dir()), before);
    }
}

#[test]
fn looking_at_a_database_changes_nothing() {
    Kept::new().check_looked_at();
}

#[test]
fn a_database_is_looked_at_where_nothing_can_be_written() {
    let kept = Kept::new();
    let storage = kept.storage();
    let allow = |folder: u32, file: u32| {
        for (path, mode) in [(storage.join("turnstile.db"), file), (storage.clone(), folder)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("changed");
        }
    };
    allow(0o500, 0o400);
    within_permissions(|| {
        fs::write(storage.join("proof"), "").expect_err("nothing can be written");
        kept.check_looked_at();
        let refused = kept.run(&["run", "hello"]);
        assert!(refused.code != 0 && refused.err.contains("turnstile.db"), "{}", refused.err);
    });
    allow(0o700, 0o600);
}

#[test]
fn a_database_is_looked_at_by_one_process_while_another_writes_it() {
    let kept = Kept::new();
    let work_dir = WorkDir::new(kept.work_dir()).expect("absolute");
    process(async {
        let lock = InstanceLock::acquire(Arc::new(RealDisk), &work_dir, 7, StillClock.now());
        let parts = Parts {
            disk: Arc::new(RealDisk),
            clock: Arc::new(StillClock),
            entropy: Arc::new(CountingEntropy::default()),
            tasks: Tasks::new(),
            lock: Some(Arc::new(lock.expect("free"))),
        };
        let store = sqlite::Store::new(work_dir, parts, sqlite::Options::default());
        let mut writer = store.create(&turn(0), &records(0..1)).await.expect("created");
        for number in 1..4 {
            let batch = records(number..number + 1);
            writer.append(&batch, Durability::Written).await.expect("appended");
            kept.check_looked_at();
        }
        writer.close().await.expect("closed");
    });
    kept.check_looked_at();
    let left = ["turnstile.db-wal", "turnstile.db-shm"].map(|name| kept.storage().join(name));
    assert!(!left.iter().any(|path| path.exists()), "whoever looked keeps nobody from leaving");
}

#[test]
fn where_the_configuration_cannot_be_read_nothing_is_said_of_what_it_would_ask_for() {
    let cli = Cli::new();
    cli.configure("[storage]\nformat = \"jsonl-zst\"\n");
    assert_eq!(cli.run(&["run", "hello"]).code, 0);
    cli.configure("[storage]\nformat = \"tablets\"\n");
    let doctor = cli.run(&["doctor"]);
    assert!(doctor.out.contains("storage.format: unknown variant `tablets`"), "{}", doctor.out);
    assert!(!doctor.out.contains("asks for"), "{}", doctor.out);
}
