//! `turnstile sessions` and the lock on the work directory, with the built program.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use turnstile::base::clock::{Clock as _, System};
use turnstile::base::id::TurnId;
use turnstile::base::tasks::Tasks;
use turnstile::domain::session::event::{SessionCreated, SessionEvent};
use turnstile::domain::turn::event::{ContextRef, TurnContext, TurnCreated, TurnEvent, TurnFact};
use turnstile::store::cache::CacheBounds;
use turnstile::store::disk::RealDisk;
use turnstile::store::jsonl;
use turnstile::store::lock::InstanceLock;
use turnstile::store::session_repo::SessionRepo;
use turnstile::store::turn_repo::TurnRepo;
use turnstile::store::work_dir::WorkDir;
use turnstile::testing::fact::{answer, complete, request, request_in, turn};
use turnstile::testing::log::{Log, PREVIOUS_TURN, SESSION, TURN};
use turnstile::testing::session_fact::{appended, header};
use turnstile::testing::store::CountingEntropy;

use crate::cli_world::{Cli, shown};

/// A session whose log is damaged.
const DAMAGED: &str = "2026-03-04T05-00-00Z-0000042-001";
/// A session that is not there.
const MISSING: &str = "2026-03-04T04-59-59Z-0000042-999";

/// A session with one answered turn, as its events.
fn one_session() -> (Vec<SessionEvent>, Vec<TurnEvent>) {
    let header = SessionCreated { title: Some("The \u{1b}[31mwatcher".to_owned()), ..header() };
    let session = Log::session(header).then(appended(1, TURN));
    let created = TurnCreated { session_id: Some(SESSION.into()), ..turn() };
    let turn = Log::turn(TurnFact::Created(created.into()))
        .then(request(0, "input"))
        .then(answer(0, "It was\u{7} the clock."))
        .then(complete());
    (session.into_events(), turn.into_events())
}

/// Writes that session, and one whose log is damaged.
fn with_sessions(cli: &Cli) -> PathBuf {
    let (session, turn) = one_session();
    let folder = write(cli, &session, &[(TURN, turn)]);
    fs::write(folder.join(format!("{DAMAGED}.jsonl")), "{\"type\":\"nothing\"}\n")
        .expect("written");
    folder
}

/// Writes a session of two answered turns.
pub(crate) fn with_two_turns(cli: &Cli) {
    let session = Log::session(header()).then(appended(1, PREVIOUS_TURN)).then(appended(2, TURN));
    let answered = |id: &str, context: TurnContext| {
        let asks = request_in(&context, 0, "input");
        let created = TurnCreated { session_id: Some(SESSION.into()), context, ..turn() };
        let log = Log::empty(TurnId::from(id)).then(TurnFact::Created(created.into()));
        log.then(asks).then(answer(0, "It was the clock.")).then(complete()).into_events()
    };
    let before = ContextRef { previous_turn_id: PREVIOUS_TURN.into() };
    let turns = [
        (PREVIOUS_TURN, answered(PREVIOUS_TURN, TurnContext::Inline(Vec::new()))),
        (TURN, answered(TURN, TurnContext::Previous(before))),
    ];
    write(cli, &session.into_events(), &turns);
}

/// Writes the log of a session and those of its turns; gives the folder of the first.
fn write(cli: &Cli, session: &[SessionEvent], turns: &[(&str, Vec<TurnEvent>)]) -> PathBuf {
    let work_dir = WorkDir::new(cli.work_dir()).expect("absolute");
    work_dir.prepare(&RealDisk).expect("prepared");
    let parts = jsonl::Parts {
        disk: Arc::new(RealDisk),
        clock: Arc::new(System::new()),
        entropy: Arc::new(CountingEntropy::default()),
        tasks: Tasks::new(),
        lock: None,
    };
    let store = Arc::new(jsonl::Store::new(work_dir, parts, jsonl::Options::default()));
    let folder = cli.work_dir().join("storage/sessions/2026/03/04");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (tasks, bounds) = (Tasks::new(), CacheBounds::default());
        let sessions = SessionRepo::new(Arc::<jsonl::Store>::clone(&store), tasks.clone(), bounds);
        drop(sessions.create(&SESSION.into(), session).await.expect("created"));
        let repo = TurnRepo::new(store, tasks, bounds);
        for (turn, events) in turns {
            drop(repo.create(&TurnId::from(*turn), events).await.expect("created"));
        }
    });
    folder
}

#[test]
fn sessions_are_listed_the_latest_first_the_damaged_ones_too() {
    let cli = Cli::new();
    let folder = with_sessions(&cli);
    let ran = cli.run(&["sessions", "list"]);
    ran.check_done();
    let lines: Vec<_> = ran.out.lines().collect();
    let [first, second] = lines[..] else { panic!("{}", ran.out) };
    assert!(first.starts_with(SESSION) && first.contains("completed"), "{first}");
    assert!(first.contains("watcher") && !first.contains('\u{1b}'), "{first}");
    assert!(second.starts_with("2026-03-04T05-00-00Z") && second.contains("damaged"), "{second}");

    let ran = cli.run(&["sessions", "list", "--json"]);
    ran.check_done();
    let entries = ran.json_lines();
    assert_eq!(entries[0]["sessionId"], SESSION);
    assert_eq!(entries[0]["latestTurnStatus"], "completed");
    assert_eq!(entries[0]["turnCount"], 1);
    assert!(entries[0].get("error").is_none());
    let error = entries[1]["error"].as_str().expect("it is damaged");
    assert!(error.contains("is corrupt at line 1") && error.contains(&shown(&folder)), "{error}");
}

#[test]
fn a_session_is_shown_as_text_and_as_its_events() {
    let cli = Cli::new();
    with_sessions(&cli);
    let ran = cli.run(&["sessions", "show", SESSION]);
    ran.check_done();
    for said in ["watcher", "Look at the watcher.", "It was", "the clock.", "completed"] {
        assert!(ran.out.contains(said), "{said:?} is not shown: {}", ran.out);
    }
    assert!(!ran.out.contains(['\u{1b}', '\u{7}']), "what is not ours is made harmless");
    let ran = cli.run(&["sessions", "show", SESSION, "--json"]);
    ran.check_done();
    let (session, turn) = one_session();
    let session = session.iter().map(SessionEvent::to_line);
    let lines: Vec<_> = session.chain(turn.iter().map(TurnEvent::to_line)).collect();
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn what_cannot_be_shown_says_why() {
    let cli = Cli::new();
    with_sessions(&cli);
    cli.run(&["sessions", "show", MISSING]).check_refused(1, &["there is no session", MISSING]);
    cli.run(&["sessions", "show", "../etc"]).check_refused(2, &["not a valid id"]);
    cli.run(&["sessions", "rm", "../../x"]).check_refused(2, &["not a valid id"]);
    cli.run(&["sessions", "show", DAMAGED]).check_refused(3, &["is corrupt at line 1"]);

    let turn = cli.work_dir().join(format!("storage/turns/2026/03/04/{TURN}.jsonl"));
    let check = |why: &str| {
        for arguments in
            [&["sessions", "show", SESSION][..], &["sessions", "show", SESSION, "--json"]]
        {
            let ran = cli.run(arguments);
            assert_eq!(ran.code, 3, "{}", ran.out);
            assert!(ran.out.contains("watcher"), "what can be read is shown: {}", ran.out);
            let said = format!("{}{}", ran.out, ran.err);
            assert!(said.contains(why), "{said}");
        }
    };
    fs::write(&turn, "{}\n").expect("written");
    check("is corrupt at line 1");
    fs::remove_file(&turn).expect("there");
    check(TURN);
}

#[test]
fn sessions_are_removed_and_set_aside() {
    let cli = Cli::new();
    let folder = with_sessions(&cli);
    let ran = cli.run(&["sessions", "rm", SESSION, "--json"]);
    ran.check_done();
    assert_eq!(ran.json_lines(), [serde_json::json!({"removed": SESSION})]);
    assert_eq!(fs::read_dir(&folder).expect("there").count(), 1);
    assert_eq!(fs::read_dir(cli.work_dir().join("var/deleted")).expect("there").count(), 1);
    let turn = cli.work_dir().join(format!("storage/turns/2026/03/04/{TURN}.jsonl"));
    assert!(turn.exists(), "turns stay");

    // Of several, what is there goes, and the others are named.
    let ran = cli.run(&["sessions", "rm", SESSION, DAMAGED]);
    assert_eq!((ran.code, ran.out.as_str()), (1, &*format!("removed {DAMAGED}\n")));
    assert!(ran.err.contains("there is no session") && ran.err.contains(SESSION), "{}", ran.err);
    let listed = cli.run(&["sessions", "list"]);
    listed.check_done();
    assert_eq!(listed.out, "");
}

#[test]
fn a_removed_session_is_listed_as_such_and_restored() {
    let cli = Cli::new();
    with_sessions(&cli);
    cli.run(&["sessions", "rm", SESSION]).check_done();
    let listed = cli.run(&["sessions", "list", "--deleted"]);
    listed.check_done();
    assert!(listed.out.starts_with(&format!("{SESSION}  removed ")), "{}", listed.out);
    let listed = cli.run(&["sessions", "list", "--deleted", "--json"]);
    assert_eq!(listed.json_lines()[0]["sessionId"], SESSION);
    let ran = cli.run(&["sessions", "restore", SESSION]);
    ran.check_done();
    assert_eq!(ran.out, format!("restored {SESSION}\n"));
    cli.run(&["sessions", "show", SESSION]).check_done();
    assert_eq!(cli.run(&["sessions", "list", "--deleted"]).out, "");
    cli.run(&["sessions", "restore", SESSION]).check_refused(1, &["not among the deleted"]);
}

#[test]
fn a_work_directory_that_is_not_there_is_named() {
    let cli = Cli::new();
    let ran = cli.run(&["sessions", "list"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.err.contains(&shown(&cli.work_dir())), "{}", ran.err);
    assert!(!cli.work_dir().exists());
}

#[test]
fn with_no_days_to_restore_a_removed_session_is_destroyed() {
    let cli = Cli::new();
    with_sessions(&cli);
    cli.configure("[delete]\nkeep_days = 0\n");
    cli.run(&["sessions", "rm", SESSION]).check_done();
    assert_eq!(fs::read_dir(cli.work_dir().join("var/deleted")).expect("there").count(), 0);
}

#[test]
fn a_command_that_is_no_bad_end_keeps_the_mark_of_one() {
    let cli = Cli::new();
    with_sessions(&cli);
    let mark = cli.work_dir().join("var/composer/running.json");
    fs::write(&mark, "{}").expect("written");
    cli.run(&["sessions", "rm", SESSION]).check_done();
    cli.run(&["run", "Hello."]).check_done();
    cli.run(&["sessions", "list"]).check_done();
    assert!(mark.exists(), "only a terminal that says so takes it away");
}

#[test]
fn whoever_holds_the_folder_is_named_to_whoever_wants_to_change_something() {
    let cli = Cli::new();
    with_sessions(&cli);
    let work_dir = WorkDir::new(cli.work_dir()).expect("absolute");
    let (disk, process) = (Arc::new(RealDisk), std::process::id());
    let held = InstanceLock::acquire(disk, &work_dir, process, System::new().now());
    let held = held.expect("nobody holds it");
    let holder = format!("process {process}");
    cli.run(&["sessions", "rm", SESSION])
        .check_refused(3, &[&shown(&cli.work_dir()), &holder, "--read-only"]);
    // To look, and to answer a prompt of one's own, needs no lock.
    cli.run(&["sessions", "list"]).check_done();
    cli.run(&["sessions", "show", SESSION]).check_done();
    cli.run(&["run", "Hello."]).check_done();
    let doctor = cli.run(&["doctor"]);
    assert!(doctor.out.contains(&format!("in use by {holder}")), "{}", doctor.out);
    drop(held);
    cli.run(&["sessions", "rm", SESSION]).check_done();
}

/// Names the folder that the test below holds in a process of its own.
const HOLD: &str = "TURNSTILE_TEST_HOLD";

/// Is run by the tests that follow, as another process; by itself it does nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is how the other process is told what to hold")]
#[expect(clippy::print_stdout, reason = "it is how the other process says that it holds it")]
fn another_process_holds_the_folder() {
    let Some(folder) = std::env::var_os(HOLD) else { return };
    let work_dir = WorkDir::new(folder.into()).expect("absolute");
    let (disk, now) = (Arc::new(RealDisk), System::new().now());
    let held = InstanceLock::acquire(disk, &work_dir, std::process::id(), now);
    println!("\n{}", if held.is_ok() { "held" } else { "refused" });
    // Until it is killed, or whoever started it is gone.
    std::io::stdin().read_to_end(&mut Vec::new()).ok();
}

/// Another process that holds the folder, or was refused.
struct Other {
    process: std::process::Child,
    said: String,
}

impl Other {
    fn start(cli: &Cli) -> Self {
        let this = std::env::current_exe().expect("this test has a program");
        let mut process = Command::new(this)
            .args(["--exact", "cli_sessions::another_process_holds_the_folder", "--nocapture"])
            .env(HOLD, cli.work_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let mut lines = lines.map(|line| line.expect("text"));
        let said =
            lines.find(|line| line == "held" || line == "refused").expect("it says how it is");
        Self { process, said }
    }

    fn kill(mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }
}

#[test]
fn a_second_process_is_refused_and_gets_in_once_the_first_is_killed() {
    for form in ["jsonl", "jsonl-zst", "sqlite"] {
        let cli = Cli::new();
        with_sessions(&cli);
        let converted = cli.run(&["storage", "convert", "--to", form, "--leave-damaged"]);
        assert!(converted.code < 2, "{form}: {}", converted.err);
        cli.configure(&format!("[storage]\nformat = \"{form}\"\n"));
        let first = Other::start(&cli);
        assert_eq!(first.said, "held");
        let holder = format!("process {}", first.process.id());
        cli.run(&["sessions", "rm", SESSION]).check_refused(3, &[&holder]);
        cli.run(&["sessions", "show", SESSION]).check_done();
        first.kill();
        cli.run(&["sessions", "rm", SESSION]).check_done();
    }
}

#[test]
fn a_deleted_lock_file_does_not_make_two_holders() {
    let cli = Cli::new();
    with_sessions(&cli);
    let first = Other::start(&cli);
    fs::remove_file(cli.work_dir().join("turnstile.lock")).expect("deleted");
    let second = Other::start(&cli);
    assert_eq!((first.said.as_str(), second.said.as_str()), ("held", "refused"));
    cli.run(&["sessions", "rm", SESSION]).check_refused(3, &["--read-only"]);
    second.kill();
    first.kill();
    cli.run(&["sessions", "rm", SESSION]).check_done();
}

#[test]
fn a_session_is_named_put_away_and_taken_out() {
    let cli = Cli::new();
    with_sessions(&cli);
    let ran = cli.run(&["sessions", "rename", SESSION, "  The clock \n"]);
    ran.check_done();
    assert_eq!(ran.out, format!("renamed {SESSION}\n"));
    for blank in ["", " \t\n"] {
        let refused = cli.run(&["sessions", "rename", SESSION, blank]);
        refused.check_refused(2, &["the title is blank"]);
    }
    let listed = |arguments: &[&str]| {
        let ran = cli.run(arguments);
        ran.check_done();
        ran.out.lines().filter(|line| line.contains("The clock")).count()
    };
    assert_eq!(listed(&["sessions", "list"]), 1);
    let shown = cli.run(&["sessions", "show", SESSION]);
    assert!(shown.out.starts_with("# The clock\n\n"), "{}", shown.out);
    let ran = cli.run(&["sessions", "archive", SESSION]);
    ran.check_done();
    assert_eq!(ran.out, format!("archived {SESSION}\n"));
    assert_eq!(listed(&["sessions", "list"]), 0);
    assert_eq!(listed(&["sessions", "list", "--all"]), 1);
    let ran = cli.run(&["sessions", "archive", MISSING, SESSION, "--undo"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, &*format!("unarchived {SESSION}\n")));
    assert!(ran.err.contains("there is no session") && ran.err.contains(MISSING), "{}", ran.err);
    assert_eq!(listed(&["sessions", "list"]), 1);
}

#[test]
fn a_session_is_forked_at_its_latest_turn_or_at_another() {
    let cli = Cli::new();
    with_two_turns(&cli);
    let check = |arguments: &[&str], turns: &[&str]| {
        let ran = cli.run(arguments);
        ran.check_done();
        let shown = cli.run(&["sessions", "show", ran.out.trim_end(), "--json"]);
        shown.check_done();
        let lines = shown.json_lines();
        let fields = ["parentSession", "seedLength"].map(|field| lines[0][field].clone());
        assert_eq!(fields, [serde_json::json!(SESSION), serde_json::json!(turns.len())]);
        let appended = lines.iter().filter(|line| line["type"] == "turn_appended");
        let appended: Vec<_> = appended.map(|line| line["turnId"].clone()).collect();
        assert_eq!(appended, turns);
    };
    check(&["sessions", "fork", SESSION], &[PREVIOUS_TURN, TURN]);
    check(&["sessions", "fork", SESSION, "--at", TURN], &[PREVIOUS_TURN, TURN]);
    check(&["sessions", "fork", SESSION, "--at", PREVIOUS_TURN], &[PREVIOUS_TURN]);
    let missing = "2026-03-04T05-06-07Z-0000042-999";
    let ran = cli.run(&["sessions", "fork", SESSION, "--at", missing]);
    ran.check_refused(1, &[missing, "is not in session"]);
}

#[test]
fn of_several_sessions_each_is_tried_and_the_highest_code_is_that_of_all() {
    let cli = Cli::new();
    with_sessions(&cli);
    for ids in [["../x", MISSING], [MISSING, "../x"]] {
        let ran = cli.run(&["sessions", "archive", ids[0], SESSION, ids[1]]);
        assert_eq!((ran.code, ran.out.as_str()), (2, &*format!("archived {SESSION}\n")));
        for named in ids {
            assert!(ran.err.contains(named), "{named} is not named: {}", ran.err);
        }
    }
    let ran = cli.run(&["sessions", "archive", DAMAGED, MISSING]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
}

#[test]
fn a_list_is_of_what_is_there_or_of_what_was_deleted() {
    Cli::new().run(&["sessions", "list", "--deleted", "--all"]).check_usage("--all");
}

#[test]
fn garbage_is_named_and_destroyed_once_that_is_said() {
    let cli = Cli::new();
    let folder = with_sessions(&cli);
    let ran = cli.run(&["sessions", "gc"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "nothing to destroy\n"));
    assert!(ran.err.contains("it cannot be told which turns are needed"), "{}", ran.err);
    assert!(ran.err.contains(&shown(&folder)) && ran.err.contains(DAMAGED), "{}", ran.err);
    cli.configure("[delete]\nkeep_days = 0\n");
    cli.run(&["sessions", "rm", DAMAGED]).check_done();
    let ran = cli.run(&["sessions", "gc"]);
    ran.check_done();
    assert_eq!(ran.out, "nothing to destroy\n");

    cli.run(&["sessions", "rm", SESSION]).check_done();
    let turn = turn_file(&cli);
    let ran = cli.run(&["sessions", "gc"]);
    ran.check_done();
    let hint = "nothing was destroyed yet; --yes does it";
    assert_eq!(ran.out, format!("would destroy turn {TURN}\n{hint}\n"));
    assert!(turn.exists());
    let ran = cli.run(&["sessions", "gc", "--yes", "--json"]);
    ran.check_done();
    assert_eq!(ran.json_lines(), [serde_json::json!({"turn": TURN, "destroyed": true})]);
    assert!(!turn.exists());
}

/// The log of the turn of [`one_session`].
fn turn_file(cli: &Cli) -> PathBuf {
    cli.work_dir().join(format!("storage/turns/2026/03/04/{TURN}.jsonl"))
}

#[test]
fn what_was_deleted_longer_ago_than_it_is_kept_is_garbage_with_its_turns() {
    let cli = Cli::new();
    let (session, turn) = one_session();
    write(&cli, &session, &[(TURN, turn)]);
    cli.run(&["sessions", "rm", SESSION]).check_done();
    let ran = cli.run(&["sessions", "gc"]);
    ran.check_done();
    assert_eq!(ran.out, "nothing to destroy\n");

    cli.configure("[delete]\nkeep_days = 0\n");
    let ran = cli.run(&["sessions", "gc"]);
    ran.check_done();
    let hint = "nothing was destroyed yet; --yes does it";
    let named = format!("would destroy deleted session {SESSION}\nwould destroy turn {TURN}");
    assert_eq!(ran.out, format!("{named}\n{hint}\n"));
    let lines = |destroyed: bool| {
        let session = serde_json::json!({"session": SESSION, "destroyed": destroyed});
        [session, serde_json::json!({"turn": TURN, "destroyed": destroyed})]
    };
    let ran = cli.run(&["sessions", "gc", "--json"]);
    ran.check_done();
    assert_eq!(ran.json_lines(), lines(false));
    assert!(turn_file(&cli).exists() && cli.deleted() > 0);

    let ran = cli.run(&["sessions", "gc", "--yes", "--json"]);
    ran.check_done();
    assert_eq!(ran.json_lines(), lines(true));
    assert!(!turn_file(&cli).exists() && cli.deleted() == 0);
    let ran = cli.run(&["sessions", "gc", "--yes"]);
    ran.check_done();
    assert_eq!(ran.out, "nothing to destroy\n");
}

#[test]
fn prompts_without_a_session_run_at_once_and_beside_whoever_holds_the_folder() {
    let cli = Cli::new();
    with_sessions(&cli);
    let holder = Other::start(&cli);
    assert_eq!(holder.said, "held");
    let prompts = ["one", "two", "three"].map(|prompt| {
        let mut command = cli.command(&["run", prompt]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    });
    for prompt in prompts {
        let ended = prompt.wait_with_output().expect("it ends");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        assert!(!ended.stdout.is_empty(), "it answered");
    }
    holder.kill();
}
