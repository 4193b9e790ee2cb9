//! `turnstile storage` with the built program.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use turnstile::store::disk::RealDisk;
use turnstile::store::lock::{GuestPass, NoGuests};
use turnstile::store::work_dir::WorkDir;
use turnstile::testing::folder::{files, tree};
use turnstile::testing::log::{PREVIOUS_TURN, SESSION, TURN};

use crate::cli_sessions::with_two_turns;
use crate::cli_world::{Cli, shown};

const FORMS: [&str; 3] = ["jsonl", "jsonl-zst", "sqlite"];

fn configure(cli: &Cli, form: &str) {
    cli.configure(&format!("[storage]\nformat = \"{form}\"\n"));
}

/// A session of two turns, and a deleted one.
fn with_logs() -> Cli {
    let cli = Cli::new();
    with_two_turns(&cli);
    let forked = cli.run(&["sessions", "fork", SESSION]);
    forked.check_done();
    cli.run(&["sessions", "rm", forked.out.trim()]).check_done();
    cli
}

/// Everything stored there, into this form.
fn convert(cli: &Cli, form: &str) {
    let ran = cli.run(&["storage", "convert", "--to", form]);
    ran.check_done();
    configure(cli, form);
}

/// As if the conversion had been killed before the new form was in use.
fn break_off(cli: &Cli, from: &str, to: &str) {
    let storage = cli.work_dir().join("storage");
    let note = format!("{{\"from\":\"{from}\",\"to\":\"{to}\",\"stage\":\"copying\"}}");
    fs::write(storage.join("conversion"), note).expect("not finished");
    fs::write(storage.join("format"), format!("{from}\n")).expect("not switched yet");
    configure(cli, from);
}

fn turn_file(cli: &Cli, turn: &str, suffix: &str) -> PathBuf {
    let mut files = files(&cli.work_dir().join("storage/turns")).into_iter();
    let named = |file: &PathBuf| file.to_string_lossy().ends_with(&format!("{turn}{suffix}"));
    files.find(named).expect("it is there")
}

/// The files of all logs of lines, the removed ones too.
fn lines(work_dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = tree(work_dir);
    all.retain(|path, _| path.extension().is_some_and(|end| end == "jsonl"));
    all
}

fn verified(cli: &Cli) -> Vec<serde_json::Value> {
    cli.run(&["storage", "verify", "--json"]).json_lines()
}

#[test]
fn what_is_well_is_said_to_be_and_nothing_is_changed() {
    for form in FORMS {
        let cli = with_logs();
        convert(&cli, form);
        let before = tree(&cli.work_dir());
        let ran = cli.run(&["storage", "verify"]);
        ran.check_done();
        assert!(ran.out.contains("1 session, 2 turns, 1 deleted"), "{form}: {}", ran.out);
        assert!(ran.out.ends_with("all is well\n"), "{form}: {}", ran.out);
        let [sum] = &verified(&cli)[..] else { panic!("no fault") };
        assert_eq!(
            (&sum["sessions"], &sum["turns"], &sum["faults"]),
            (&1.into(), &2.into(), &0.into())
        );
        let stats = cli.run(&["storage", "stats", "--json"]).json_lines();
        assert_eq!(stats[0]["format"], form);
        assert_eq!((&stats[0]["sessions"]["logs"], &stats[0]["removed"]), (&1.into(), &1.into()));
        assert!(stats[0]["turns"]["bytes"].as_u64() > Some(100), "{}", stats[0]);
        let ran = cli.run(&["storage", "stats"]);
        ran.check_done();
        assert!(ran.out.contains(TURN) && ran.out.contains(form), "{}", ran.out);
        assert!(tree(&cli.work_dir()) == before, "{form}: something was changed");
    }
}

#[test]
fn from_form_to_form_and_back_everything_is_the_same() {
    let cli = with_logs();
    let before = lines(&cli.work_dir());
    let shown_before = cli.run(&["sessions", "show", SESSION, "--json"]).out;
    let mut from = "jsonl";
    for to in ["sqlite", "jsonl-zst", "sqlite", "jsonl"] {
        let ran = cli.run(&["storage", "convert", "--to", to]);
        ran.check_done();
        for said in ["1 session, 2 turns and 1 deleted", "storage.format", from, "--confirm"] {
            assert!(ran.out.contains(said), "{said:?} is not said: {}", ran.out);
        }
        // The old form is refused now, and says what to do.
        let why = format!("set storage.format = \"{to}\"");
        cli.run(&["sessions", "list"]).check_refused(2, &[&why, "storage convert --to"]);
        configure(&cli, to);
        assert_eq!(cli.run(&["sessions", "show", SESSION, "--json"]).out, shown_before);
        let doctor = cli.run(&["doctor"]).out;
        assert!(doctor.contains("storage convert --confirm"), "{doctor}");
        // Nobody converts what may still be needed.
        let another = FORMS.into_iter().find(|form| *form != to).expect("there are three");
        let ran = cli.run(&["storage", "convert", "--to", another]);
        ran.check_refused(1, &["still kept", "--confirm"]);
        cli.run(&["storage", "convert", "--confirm"]).check_done();
        let ran = cli.run(&["storage", "convert", "--confirm"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "no old form is kept\n"));
        from = to;
    }
    assert_eq!(lines(&cli.work_dir()), before);
    let deleted = cli.run(&["sessions", "list", "--deleted", "--json"]).json_lines();
    let id = deleted[0]["sessionId"].as_str().expect("an id").to_owned();
    cli.run(&["sessions", "restore", &id]).check_done();
    assert!(!cli.work_dir().join("storage/turnstile.db").exists());
    assert_eq!(verified(&cli)[0]["sessions"], 2);
}

#[test]
fn a_conversion_that_was_broken_off_leaves_the_old_form_in_use_and_goes_on() {
    let cli = with_logs();
    convert(&cli, "jsonl-zst");
    // As if it had been killed after some copies.
    break_off(&cli, "jsonl", "jsonl-zst");
    let copied = turn_file(&cli, PREVIOUS_TURN, ".jsonl.zst");
    let half = fs::read(&copied).expect("copied");
    fs::write(&copied, &half[..half.len() - 5]).expect("torn");
    fs::remove_file(turn_file(&cli, TURN, ".jsonl.zst")).expect("not copied yet");
    cli.run(&["sessions", "show", SESSION]).check_done();
    let ran = cli.run(&["storage", "convert", "--confirm"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("is not finished") && ran.out.contains("--to jsonl-zst"),
        "{}",
        ran.out
    );
    let doctor = cli.run(&["doctor"]).out;
    assert!(doctor.contains("not finished"), "{doctor}");
    convert(&cli, "jsonl-zst");
    assert_eq!(verified(&cli)[0]["faults"], 0);

    // Or it is dropped.
    break_off(&cli, "jsonl", "jsonl-zst");
    let ran = cli.run(&["storage", "convert", "--to", "jsonl"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "what was copied as jsonl-zst is gone again\n"));
    let left =
        files(&cli.work_dir()).into_iter().filter(|it| it.extension() == Some("zst".as_ref()));
    // What was torn is kept, whoever tore it.
    assert_eq!(left.count(), 0);
    assert_eq!(verified(&cli)[0]["faults"], 0);
}

#[test]
fn what_is_damaged_is_left_only_when_that_is_said_and_then_never_destroyed() {
    let cli = with_logs();
    let damaged = turn_file(&cli, PREVIOUS_TURN, ".jsonl");
    let mut text = fs::read(&damaged).expect("there");
    text.splice(0..1, *b"x");
    fs::write(&damaged, &text).expect("damaged");
    let ran = cli.run(&["storage", "convert", "--to", "sqlite"]);
    ran.check_refused(
        1,
        &["damaged, and not", PREVIOUS_TURN, "line 1", "salvage", "--leave-damaged"],
    );
    assert_eq!(fs::read(cli.work_dir().join("storage/format")).expect("said"), b"jsonl\n");
    cli.run(&["sessions", "list"]).check_done();
    let ran = cli.run(&["storage", "convert", "--to", "sqlite", "--leave-damaged"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert!(
        ran.out.contains("stay as jsonl only") && ran.out.contains(PREVIOUS_TURN),
        "{}",
        ran.out
    );
    // There and back it is still known what is nowhere else.
    for _ in 0..2 {
        cli.run(&["storage", "convert", "--undo"]).check_done();
    }
    configure(&cli, "sqlite");
    let faults = verified(&cli);
    // The session holds it, and the next turn goes on from it.
    assert_eq!(faults.iter().filter(|fault| fault["to"] == PREVIOUS_TURN).count(), 3, "{faults:?}");
    cli.run(&["storage", "convert", "--confirm"]).check_done();
    assert_eq!(fs::read(&damaged).expect("kept"), text);
    assert_eq!(lines(&cli.work_dir()).len(), 1);
}

#[test]
fn old_logs_go_only_if_all_of_them_are_in_the_new_form() {
    let cli = with_logs();
    convert(&cli, "sqlite");
    let before = lines(&cli.work_dir());
    let storage = cli.work_dir().join("storage");
    fs::rename(storage.join("turnstile.db"), cli.path("away")).expect("moved");
    let ran = cli.run(&["storage", "convert", "--confirm"]);
    let said = ["new one: 4", SESSION, TURN, "--destroy-missing", "--undo"];
    ran.check_refused(1, &said);
    assert!(lines(&cli.work_dir()) == before, "nothing was changed");
    // Without the new form the old one is used again.
    let ran = cli.run(&["storage", "convert", "--undo"]);
    ran.check_done();
    assert!(ran.out.contains("storage.format = \"jsonl\""), "{}", ran.out);
    configure(&cli, "jsonl");
    assert_eq!(verified(&cli)[0]["faults"], 0);
    cli.run(&["sessions", "show", SESSION]).check_done();

    // With it, what was destroyed since may go when that is said.
    fs::rename(cli.path("away"), storage.join("turnstile.db")).expect("moved back");
    cli.run(&["storage", "convert", "--undo"]).check_done();
    configure(&cli, "sqlite");
    cli.configure("[storage]\nformat = \"sqlite\"\n[delete]\nkeep_days = 0\n");
    cli.run(&["sessions", "rm", SESSION]).check_done();
    cli.run(&["storage", "convert", "--confirm"]).check_refused(1, &["new one: 1", SESSION]);
    cli.run(&["storage", "convert", "--confirm", "--destroy-missing"]).check_done();
    assert!(lines(&cli.work_dir()).is_empty());
}

#[test]
fn nobody_goes_back_to_a_form_of_which_a_part_is_gone() {
    let cli = with_logs();
    convert(&cli, "sqlite");
    let note = cli.work_dir().join("storage/conversion");
    let text = fs::read_to_string(&note).expect("both are kept");
    fs::write(&note, text.replace("\"kept\"", "\"going\"")).expect("as a kill leaves it");
    fs::remove_file(turn_file(&cli, TURN, ".jsonl")).expect("gone");
    let before = tree(&cli.work_dir().join("storage"));
    let ran = cli.run(&["storage", "convert", "--undo"]);
    assert!(ran.code == 1 && ran.out.contains("let go already"), "{}{}", ran.out, ran.err);
    assert!(cli.run(&["doctor"]).out.contains("has been let go"), "the doctor says so");
    assert!(tree(&cli.work_dir().join("storage")) == before, "something was changed");
    cli.run(&["storage", "convert", "--confirm"]).check_done();
    assert!(lines(&cli.work_dir()).is_empty());
    cli.run(&["storage", "verify"]).check_done();
}

#[test]
fn a_crash_between_the_two_forms_takes_neither_for_copies() {
    for said in FORMS.into_iter().take(2) {
        let cli = with_logs();
        convert(&cli, "jsonl-zst");
        // Going back had begun, and perhaps been told to everybody who looks.
        cli.run(&["storage", "convert", "--undo"]).check_done();
        fs::write(cli.work_dir().join("storage/format"), format!("{said}\n")).expect("said");
        configure(&cli, said);
        let before = tree(&cli.work_dir());
        for to in FORMS {
            let ran = cli.run(&["storage", "convert", "--to", to]);
            assert_eq!(ran.code, i32::from(to != said), "{said}: {}{}", ran.out, ran.err);
        }
        let kept = |tree: &BTreeMap<PathBuf, Option<Vec<u8>>>| {
            let logs = tree.keys().filter(|path| path.to_string_lossy().contains(".jsonl"));
            logs.cloned().collect::<Vec<_>>()
        };
        assert_eq!(kept(&tree(&cli.work_dir())), kept(&before));
        assert_eq!(verified(&cli)[0]["faults"], 0);
    }
}

#[test]
fn nothing_is_converted_over_logs_that_stand_there_already() {
    let cli = with_logs();
    let damaged = turn_file(&cli, PREVIOUS_TURN, ".jsonl");
    fs::write(&damaged, "nothing\n").expect("damaged");
    assert_eq!(cli.run(&["storage", "convert", "--to", "sqlite", "--leave-damaged"]).code, 1);
    configure(&cli, "sqlite");
    cli.run(&["storage", "convert", "--confirm"]).check_done();
    // Broken off on the way to a third form, then back to the first, in which something was left.
    convert(&cli, "jsonl-zst");
    break_off(&cli, "sqlite", "jsonl-zst");
    let ran = cli.run(&["storage", "convert", "--to", "jsonl"]);
    ran.check_refused(1, &["kept as jsonl already", &shown(&damaged), "salvage"]);
    assert_eq!(fs::read(&damaged).expect("kept"), b"nothing\n");
    assert_eq!(verified(&cli).last().expect("a sum")["turns"], 1);
}

#[test]
fn a_deleted_session_that_was_left_behind_is_not_taken_for_what_a_crash_left() {
    let cli = with_logs();
    let is_removed = |file: &PathBuf| file.extension().is_some_and(|end| end == "jsonl");
    let deleted = files(&cli.work_dir().join("var/deleted"));
    let deleted = deleted.into_iter().find(is_removed).expect("there is one");
    fs::write(&deleted, "nothing\n").expect("damaged");
    let ran = cli.run(&["storage", "convert", "--to", "jsonl-zst", "--leave-damaged"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    configure(&cli, "jsonl-zst");
    cli.run(&["sessions", "gc", "--yes"]).check_done();
    cli.run(&["storage", "convert", "--confirm"]).check_done();
    cli.run(&["sessions", "rm", SESSION]).check_done();
    cli.run(&["sessions", "gc", "--yes"]).check_done();
    assert_eq!(fs::read(&deleted).expect("kept"), b"nothing\n");
}

#[test]
fn what_was_restored_since_leaves_nothing_of_the_old_form() {
    let cli = with_logs();
    convert(&cli, "jsonl-zst");
    let deleted = cli.run(&["sessions", "list", "--deleted", "--json"]).json_lines();
    let id = deleted[0]["sessionId"].as_str().expect("an id").to_owned();
    cli.run(&["sessions", "restore", &id]).check_done();
    cli.run(&["storage", "convert", "--confirm"]).check_done();
    assert!(lines(&cli.work_dir()).is_empty());
    convert(&cli, "jsonl");
    assert_eq!(verified(&cli)[0]["sessions"], 2);
}

#[test]
fn what_was_streamed_goes_with_the_files_that_a_database_replaces() {
    let cli = with_logs();
    let streamed = turn_file(&cli, TURN, ".jsonl").with_extension("live");
    fs::write(&streamed, "").expect("as a crash leaves it");
    convert(&cli, "jsonl-zst");
    cli.run(&["storage", "convert", "--confirm"]).check_done();
    assert!(streamed.exists(), "it is beside the log in either encoding");
    convert(&cli, "sqlite");
    assert!(streamed.exists(), "the old form is kept");
    cli.run(&["storage", "convert", "--confirm"]).check_done();
    assert_eq!(files(&cli.work_dir().join("storage/turns")), Vec::<PathBuf>::new());
}

#[test]
fn nobody_writes_turns_of_its_own_while_logs_are_converted_or_the_other_way_round() {
    let cli = with_logs();
    let work_dir = WorkDir::new(cli.work_dir()).expect("absolute");
    let guest = GuestPass::take(&RealDisk, &work_dir).expect("nobody converts");
    let ran = cli.run(&["storage", "convert", "--to", "sqlite"]);
    ran.check_refused(3, &["`turnstile run` is writing", "try again"]);
    assert!(!cli.work_dir().join("storage/turnstile.db").exists());
    drop(guest);
    let alone = NoGuests::keep(&RealDisk, &work_dir).expect("nobody writes");
    cli.run(&["run", "hello"]).check_refused(3, &["being brought into another form"]);
    drop(alone);
    cli.run(&["run", "hello"]).check_done();
    convert(&cli, "sqlite");
    assert_eq!(verified(&cli)[0]["turns"], 3);
}

#[test]
fn faults_are_named_each_with_its_log_and_the_exit_code_says_that_there_are_some() {
    let cli = with_logs();
    fs::remove_file(turn_file(&cli, PREVIOUS_TURN, ".jsonl")).expect("there");
    let ran = cli.run(&["storage", "verify"]);
    assert_eq!(ran.code, 1);
    for said in [
        format!("session {SESSION} holds turn {PREVIOUS_TURN}, and that is not there"),
        format!("turn {TURN} goes on from turn {PREVIOUS_TURN}, and that is not there"),
    ] {
        assert!(ran.out.contains(&said), "{said:?} is not said: {}", ran.out);
    }
    let turn = turn_file(&cli, TURN, ".jsonl");
    let text = fs::read_to_string(&turn).expect("there");
    fs::write(&turn, text.replacen("\"ts\":", "\"xx\":", 2)).expect("damaged");
    let faults = verified(&cli);
    let corrupt: Vec<_> = faults.iter().filter(|fault| fault["fault"] == "corrupt").collect();
    let [corrupt] = corrupt[..] else { panic!("{faults:?}") };
    assert_eq!((&corrupt["id"], &corrupt["line"]), (&TURN.into(), &1.into()));
    let elsewhere = cli.work_dir().join(format!("storage/turns/{TURN}.jsonl"));
    fs::rename(&turn, &elsewhere).expect("moved");
    let ran = cli.run(&["storage", "verify"]);
    assert!(ran.out.contains(&shown(&elsewhere)) && ran.code == 1, "{}", ran.out);
}

#[test]
fn what_a_damage_left_is_saved_in_new_files_and_the_old_ones_stay() {
    for form in FORMS {
        let cli = with_logs();
        convert(&cli, form);
        damage(&cli, form);
        let before = tree(&cli.work_dir());
        let ran = cli.run(&["storage", "salvage", "--to", ".."]);
        assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{form}: {}", ran.out);
        let saved = cli.path(&format!("turn-{TURN}.jsonl"));
        assert!(ran.out.contains("lost: ") && ran.out.contains("events saved"), "{}", ran.out);
        let text = fs::read_to_string(&saved).expect("saved");
        let whole = with_logs();
        let whole = fs::read_to_string(turn_file(&whole, TURN, ".jsonl")).expect("there");
        let lines: Vec<_> = text.lines().collect();
        assert!(!lines.is_empty() && lines.len() < whole.lines().count(), "{form}: {text}");
        assert!(lines.iter().all(|line| whole.lines().any(|it| it == *line)), "{form}: {text}");
        if form != "jsonl-zst" {
            assert_eq!(lines.last(), whole.lines().last().as_ref(), "{form}: what is behind it");
        }
        assert!(tree(&cli.work_dir()) == before, "{form}: something was changed");
        // Nothing is replaced.
        cli.run(&["storage", "salvage", TURN, "--to", ".."]).check_refused(3, &["exists"]);
        assert_eq!(fs::read_to_string(&saved).expect("kept"), text);
        // What is whole is saved whole.
        let ran = cli.run(&["storage", "salvage", SESSION]);
        ran.check_done();
        assert!(cli.path(&format!("project/session-{SESSION}.jsonl")).exists());
        cli.run(&["storage", "salvage", "nothing"]).check_refused(1, &["no session and no turn"]);
    }
}

#[test]
fn a_log_of_which_nothing_is_left_is_told_and_the_next_one_saved() {
    let cli = with_logs();
    for turn in [PREVIOUS_TURN, TURN] {
        fs::write(turn_file(&cli, turn, ".jsonl"), "").expect("emptied");
    }
    let saved = cli.path("new/folder");
    fs::create_dir_all(&saved).expect("a folder");
    fs::write(saved.join(format!("turn-{PREVIOUS_TURN}.jsonl")), "somebody's").expect("written");
    let ran = cli.run(&["storage", "salvage", "--to", &shown(&saved)]);
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert!(ran.err.contains(PREVIOUS_TURN) && ran.err.contains("exists"), "{}", ran.err);
    let said = format!("turn {TURN}: 0 events saved in ");
    assert!(ran.out.contains(&said) && ran.out.contains("lost: line 1"), "{}", ran.out);
    let ran = cli.run(&["storage", "salvage", TURN, "--to", &shown(&cli.path("made/now"))]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
    let made = fs::metadata(cli.path("made")).expect("made").permissions().mode();
    assert_eq!(made & 0o777, 0o700);
}

#[test]
fn damaged_logs_are_saved_also_where_no_new_database_can_be_made() {
    let cli = with_logs();
    convert(&cli, "sqlite");
    damage(&cli, "sqlite");
    let database = cli.work_dir().join("storage/turnstile.db");
    let by_hand = rusqlite::Connection::open(&database).expect("the database");
    by_hand.execute("UPDATE logs SET first = '{}' WHERE rowid = 1", []).expect("damaged");
    drop(by_hand);
    fs::write(cli.path("project/turnstile.db"), "somebody's").expect("written");
    let ran = cli.run(&["storage", "salvage"]);
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert!(ran.err.contains("turnstile.db") && ran.err.contains("exists"), "{}", ran.err);
    assert!(cli.path(&format!("project/turn-{TURN}.jsonl")).exists(), "{}", ran.out);
}

#[test]
fn what_a_deleted_session_has_left_is_saved_too() {
    for form in FORMS {
        let cli = with_logs();
        convert(&cli, form);
        let deleted = cli.run(&["sessions", "list", "--deleted", "--json"]).json_lines();
        let id = deleted[0]["sessionId"].as_str().expect("an id").to_owned();
        damage_deleted(&cli, form);
        let ran = cli.run(&["storage", "verify"]);
        assert_eq!(ran.code, 1, "{form}: {}", ran.out);
        let said = format!("! deleted: session {id}");
        assert!(ran.out.contains(&said) && ran.out.contains("salvage"), "{form}: {}", ran.out);
        let fault = &verified(&cli)[0];
        assert_eq!((&fault["fault"], &fault["id"]), (&"removed".into(), &id.clone().into()));
        let before = tree(&cli.work_dir());
        for salvage in [&["storage", "salvage"][..], &["storage", "salvage", &id, "--to", ".."]] {
            let ran = cli.run(salvage);
            assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{form}: {}", ran.out);
            let said = format!("deleted session {id}: ");
            assert!(ran.out.starts_with(&said) && ran.out.contains("lost: "), "{}", ran.out);
        }
        for folder in ["project", "."] {
            let saved = files(&cli.path(folder)).into_iter().find(|file| {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                file.parent() == Some(&cli.path(folder)) && name.contains(&id)
            });
            let text = fs::read_to_string(saved.expect("saved")).expect("readable");
            assert!(text.starts_with("{\"type\":\"session_created\""), "{form}: {text}");
        }
        assert!(tree(&cli.work_dir()) == before, "{form}: something was changed");
    }
}

/// Damages the end of the session that was deleted.
fn damage_deleted(cli: &Cli, form: &str) {
    if form == "sqlite" {
        let database = rusqlite::Connection::open(cli.work_dir().join("storage/turnstile.db"));
        let database = database.expect("the database");
        let last = "UPDATE removed_records SET data = '{}'
                    WHERE seq = (SELECT max(seq) FROM removed_records)";
        assert_eq!(database.execute(last, []).expect("damaged"), 1);
        return;
    }
    let suffix = if form == "jsonl" { ".jsonl" } else { ".jsonl.zst" };
    let of_form = |file: &PathBuf| file.to_string_lossy().ends_with(suffix);
    let deleted = files(&cli.work_dir().join("var/deleted")).into_iter().find(of_form);
    let deleted = deleted.expect("it is there");
    let mut bytes = fs::read(&deleted).expect("there");
    let at = bytes.len() - 3;
    bytes[at] ^= 0x55;
    fs::write(&deleted, &bytes).expect("damaged");
}

#[test]
fn of_a_frame_without_a_sound_checksum_all_is_saved_and_said_to_be_unproven() {
    let cli = with_logs();
    let whole = fs::read_to_string(turn_file(&cli, TURN, ".jsonl")).expect("there");
    convert(&cli, "jsonl-zst");
    let file = turn_file(&cli, TURN, ".jsonl.zst");
    let mut bytes = fs::read(&file).expect("there");
    *bytes.last_mut().expect("more than nothing") ^= 0x55;
    fs::write(&file, &bytes).expect("damaged");
    let ran = cli.run(&["storage", "salvage", TURN]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("nothing proves") && ran.out.contains("lost: "), "{}", ran.out);
    let saved = fs::read_to_string(cli.path(&format!("project/turn-{TURN}.jsonl")));
    assert_eq!(saved.expect("saved"), whole);
}

#[test]
fn a_deletion_whose_note_is_lost_is_told_and_can_be_restored() {
    let cli = with_logs();
    let is_note = |file: &PathBuf| file.ends_with("removed.json");
    let notes: Vec<_> =
        files(&cli.work_dir().join("var/deleted")).into_iter().filter(is_note).collect();
    for (number, note) in notes.iter().enumerate() {
        if number == 0 {
            fs::write(note, "\0\0").expect("damaged");
        } else {
            fs::remove_file(note).expect("lost");
        }
    }
    let ran = cli.run(&["storage", "verify"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    for note in &notes {
        assert!(ran.out.contains(&shown(note)), "{} is not named: {}", note.display(), ran.out);
    }
    let deleted = cli.run(&["sessions", "list", "--deleted", "--json"]).json_lines();
    let id = deleted[0]["sessionId"].as_str().expect("it is listed").to_owned();
    cli.run(&["sessions", "gc", "--yes"]).check_done();
    cli.run(&["sessions", "restore", &id]).check_done();
    cli.run(&["storage", "verify"]).check_done();
    assert_eq!(verified(&cli)[0]["sessions"], 2);
}

#[test]
fn of_a_database_that_cannot_even_be_listed_a_new_one_is_made_that_can_be_used() {
    for damaged in [0..4096, 100..4096, 3 * 4096..4 * 4096] {
        let cli = with_logs();
        let whole = lines(&cli.work_dir());
        convert(&cli, "sqlite");
        cli.run(&["storage", "convert", "--confirm"]).check_done();
        let database = cli.work_dir().join("storage/turnstile.db");
        let mut bytes = fs::read(&database).expect("there");
        bytes[damaged.clone()].fill(0x5a);
        fs::write(&database, &bytes).expect("damaged");
        let ran = cli.run(&["storage", "verify"]);
        let said = [ran.out, ran.err].concat();
        assert!(ran.code != 0 && said.contains("storage salvage"), "{damaged:?}: {said}");
        let before = tree(&cli.work_dir());
        let ran = cli.run(&["storage", "salvage"]);
        assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{damaged:?}: {}", ran.out);
        let saved = cli.path("project/turnstile.db");
        let said = "1 session, 2 turns, 1 deleted, 14 records saved in ./turnstile.db\n";
        assert!(ran.out.contains(said), "{damaged:?}: {}", ran.out);
        assert!(tree(&cli.work_dir()) == before, "{damaged:?}: something was changed");
        fs::rename(&saved, &database).expect("put in its place");
        cli.run(&["storage", "verify"]).check_done();
        convert(&cli, "jsonl");
        assert_eq!(lines(&cli.work_dir()), whole, "{damaged:?}");
    }
}

/// A person whose database has been written since its last checkpoint, by a program that was killed.
fn with_a_journal() -> Cli {
    let cli = with_logs();
    convert(&cli, "sqlite");
    cli.run(&["storage", "convert", "--confirm"]).check_done();
    let killed = Cli::new();
    {
        // Who still reads an older state keeps the journal from being moved into the database.
        let reader = rusqlite::Connection::open(cli.work_dir().join("storage/turnstile.db"));
        let reader = reader.expect("the database");
        let read = "BEGIN; SELECT count(*) FROM logs";
        reader.execute_batch(read).expect("it can be read");
        cli.run(&["run", "hello"]).check_done();
        for (path, bytes) in tree(&cli.work_dir()) {
            let below = path.strip_prefix(cli.work_dir()).expect("it is below");
            let copy = killed.work_dir().join(below);
            match bytes {
                None => fs::create_dir_all(copy).expect("a folder"),
                // It is shared memory, and goes with the computer.
                Some(_) if path.extension().is_some_and(|end| end == "db-shm") => {}
                Some(bytes) => {
                    fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
                    fs::write(copy, bytes).expect("copied");
                }
            }
        }
    }
    configure(&killed, "sqlite");
    killed
}

fn turns(cli: &Cli) -> u64 {
    let sum = verified(cli).pop().expect("a sum");
    assert_eq!(sum["faults"], 0, "{sum}");
    sum["turns"].as_u64().expect("a number")
}

#[test]
fn without_its_journal_a_database_is_as_it_was_at_the_last_checkpoint() {
    assert_eq!(turns(&with_a_journal()), 3, "what is in the journal counts");
    let cli = with_a_journal();
    let journal = cli.work_dir().join("storage/turnstile.db-wal");
    fs::remove_file(&journal).expect("there is one");
    assert_eq!(turns(&cli), 2);
    cli.run(&["storage", "verify"]).check_done();
    cli.run(&["run", "hello"]).check_done();
    assert_eq!(turns(&cli), 3, "it is gone on with");
    // What leads nowhere is named in every form.
    let database = rusqlite::Connection::open(cli.work_dir().join("storage/turnstile.db"));
    let database = database.expect("the database");
    for table in ["logs", "records"] {
        let delete = format!("DELETE FROM {table} WHERE log_id = ?");
        database.execute(&delete, [PREVIOUS_TURN]).expect("deleted");
    }
    drop(database);
    let ran = cli.run(&["storage", "verify"]);
    let said = format!("session {SESSION} holds turn {PREVIOUS_TURN}, and that is not there");
    assert!(ran.code == 1 && ran.out.contains(&said), "{}", ran.out);
}

#[test]
fn a_journal_without_its_database_is_left_alone_until_it_is_dealt_with() {
    let cli = with_a_journal();
    let database = cli.work_dir().join("storage/turnstile.db");
    fs::rename(&database, cli.path("aside.db")).expect("taken away");
    let before = tree(&cli.work_dir().join("storage"));
    for command in [&["storage", "verify"][..], &["run", "hello"], &["sessions", "list"]] {
        cli.run(command).check_refused(3, &["turnstile.db-wal", "put the database back"]);
        assert!(tree(&cli.work_dir().join("storage")) == before, "{command:?} changed something");
    }
    fs::rename(cli.path("aside.db"), &database).expect("put back");
    assert_eq!(turns(&cli), 3, "nothing is lost");
}

/// Damages the latest turn in the middle, as a device does.
fn damage(cli: &Cli, form: &str) {
    if form == "sqlite" {
        let database = cli.work_dir().join("storage/turnstile.db");
        let mut bytes = fs::read(&database).expect("there");
        let answer = format!("model_call_completed\",\"turnId\":\"{TURN}\"");
        let found = (0..bytes.len()).find(|at| bytes[*at..].starts_with(answer.as_bytes()));
        bytes[found.expect("it is in the database")..][..3].copy_from_slice(b"\0\0\0");
        fs::write(&database, &bytes).expect("damaged");
        return;
    }
    let suffix = if form == "jsonl" { ".jsonl" } else { ".jsonl.zst" };
    let file = turn_file(cli, TURN, suffix);
    let mut bytes = fs::read(&file).expect("there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&file, &bytes).expect("damaged");
}

#[test]
fn without_anything_stored_there_is_nothing_to_look_after() {
    let cli = Cli::new();
    for command in ["verify", "stats", "salvage"] {
        cli.run(&["storage", command]).check_refused(0, &["there is no folder"]);
    }
    cli.run(&["storage", "convert"]).check_usage("--to");
    cli.run(&["storage", "convert", "--to", "tablets"]).check_usage("tablets");
    cli.run(&["storage", "convert", "--to", "sqlite", "--confirm"]).check_usage("--confirm");
}
