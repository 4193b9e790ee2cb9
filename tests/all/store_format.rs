//! The form in which sessions are kept, from the configuration to the files, and what happens where
//! another one is there already.

use std::path::Path;

use turnstile::app::command::DraftOf;
use turnstile::testing::folder::{files, tree};

use crate::app_world::{GUIDE, Person, process};
use crate::cli_world::Cli;

const FRAMES: &str = "format = \"jsonl-zst\"";

/// How the names of all logs below a folder end.
fn check_suffix(folder: &Path, suffix: &str) {
    let logs = [files(&folder.join("sessions")), files(&folder.join("turns"))].concat();
    assert!(!logs.is_empty());
    for log in logs {
        assert!(log.to_string_lossy().ends_with(suffix), "{}", log.display());
    }
}

#[test]
fn sessions_in_frames_are_gone_on_with_deleted_and_restored_like_any_other() {
    let person = Person::new(GUIDE);
    person.configure_storage(GUIDE, FRAMES);
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
    check_suffix(&person.work_dir().join("storage"), ".jsonl.zst");
}

#[test]
fn every_command_refuses_another_form_than_the_sessions_have_and_changes_nothing() {
    let cli = Cli::new();
    for (kept, asked) in [("jsonl", "jsonl-zst"), ("jsonl-zst", "jsonl")] {
        std::fs::remove_dir_all(cli.work_dir()).ok();
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
        check_suffix(&cli.work_dir().join("storage"), &format!(".{}", kept.replace('-', ".")));
    }
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
