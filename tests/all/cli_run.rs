//! `turnstile run`, configuration errors and exit codes, with the built program.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use turnstile::domain::turn::apply::reduce_turn;
use turnstile::domain::turn::event::TurnEvent;
use turnstile::domain::turn::status::TurnStatus;
use turnstile::testing::beside;
use turnstile::testing::model_server::{ModelServer, Reply};

use crate::app_world::with_model;
use crate::cli_world::{Cli, Ran, shown};

#[test]
fn a_prompt_is_answered_on_standard_output_alone() {
    let cli = Cli::new();
    let ran = cli.run(&["run", "Hello."]);
    ran.check_done();
    assert!(ran.out.contains("how to connect a real model"), "{}", ran.out);
    let listed = cli.run(&["sessions", "list"]);
    listed.check_done();
    assert_eq!(listed.out, "", "a prompt of one's own is no session");
}

#[test]
fn a_prompt_comes_from_standard_input_when_that_is_asked() {
    let cli = Cli::new();
    let ran = cli.run_with(&["run", "-", "--json"], "Hallo,\nWelt \u{1f600}\n".as_bytes());
    ran.check_done();
    let input = &ran.json_lines()[0]["input"]["content"];
    assert_eq!(input, "Hallo,\nWelt \u{1f600}\n");
    cli.run_with(&["run", "-"], b"\xff\xfe").check_refused(2, &["standard input is not UTF-8"]);
}

#[test]
fn a_prompt_that_no_model_takes_is_refused() {
    let cli = Cli::new();
    let long = vec![b'x'; 16 * 1024 * 1024 + 1];
    cli.run_with(&["run", "-"], &long).check_refused(2, &["standard input holds more than"]);
    assert!(!cli.work_dir().exists(), "nothing was begun");
}

#[test]
fn every_line_of_json_is_an_event_and_all_are_the_turn_s_log() {
    let cli = Cli::new();
    let ran = cli.run(&["run", "Hello.", "--json", "--max-model-calls", "7"]);
    ran.check_done();
    let parse = |line: &str| TurnEvent::parse_line(line.as_bytes()).expect("an event");
    let events: Vec<TurnEvent> = ran.out.lines().map(parse).collect();
    let state = reduce_turn(&events).expect("a whole turn");
    assert_eq!(state.status(), TurnStatus::Completed);
    let definition = &state.definition;
    assert_eq!(definition.session_id, None);
    let config = &definition.config;
    assert!(config.auto_permission && !config.human_available && config.max_model_calls == 7);
    let id = state.id.as_str();
    let date = id.get(..10).expect("an id begins with a date").replace('-', "/");
    let log = cli.work_dir().join(format!("storage/turns/{date}/{id}.jsonl"));
    assert_eq!(fs::read_to_string(log).expect("there"), ran.out, "byte for byte");
}

#[test]
fn a_turn_that_fails_ends_with_one() {
    let cli = Cli::new();
    let ran = cli.run(&["run", "Hello.", "--max-model-calls", "1"]);
    ran.check_refused(1, &["1 model call"]);
}

#[test]
fn an_answer_that_is_not_whole_is_printed_and_says_why() {
    let tokio = beside::runtime();
    let half = || Reply::stream().text("Once upon");
    let check = |reply: Reply, arguments: &[&str], code: i32, why: &str| {
        let server = tokio.block_on(ModelServer::start([reply])).expect("a port");
        let cli = Cli::new();
        cli.configure(&with_model(&server));
        let ran = cli.run(&[&["run", "Tell.", "--model", "lab/tiny"], arguments].concat());
        assert_eq!(ran.code, code, "{}", ran.err);
        assert!(ran.err.starts_with("turnstile: ") && ran.err.contains(why), "{}", ran.err);
        ran.out
    };
    let cut = "the answer was cut off";
    assert_eq!(check(half().finish("length").done(), &[], 4, cut), "Once upon\n");
    let filtered = half().finish("content_filter").done();
    assert_eq!(check(filtered, &[], 4, "content filter"), "Once upon\n");
    assert_eq!(check(half().chunked().cut(), &[], 1, "lab"), "Once upon\n");
    let events = check(half().finish("length").done(), &["--json"], 4, cut);
    assert_eq!(events.lines().last().map(kind).as_deref(), Some("turn_completed"));
}

#[test]
fn tools_run_in_the_folder_that_is_named() {
    let cli = Cli::new();
    fs::create_dir_all(cli.path("elsewhere")).expect("a folder");
    fs::write(cli.path("elsewhere/welcome.md"), "Words of our own.\n").expect("a file");
    let elsewhere = shown(&cli.path("elsewhere"));
    let ran = cli.run(&["run", "Hello.", "--json", "--cwd", &elsewhere]);
    ran.check_done();
    assert!(ran.out.contains("Words of our own."), "{}", ran.out);
    let ran = cli.run(&["run", "Hello.", "--json"]);
    assert!(!ran.out.contains("Words of our own."), "{}", ran.out);
}

#[test]
fn an_interrupt_stops_the_turn_and_keeps_it() {
    let cli = Cli::new();
    let mut command = cli.command(&["run", "Hello.", "--json"]);
    command.env("TURNSTILE_GUIDE_PACE_MS", "60000");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "model_call_requested") {
        kinds.push(kind(&lines.next().expect("it goes on").expect("text")));
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("it runs");
    kinds.extend(lines.map(|line| kind(&line.expect("text"))));
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(kinds.last().map(String::as_str), Some("turn_cancelled"), "{kinds:?}");
}

fn kind(line: &str) -> String {
    let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
    event["type"].as_str().expect("an event has a type").to_owned()
}

#[test]
fn wrong_arguments_end_with_two() {
    let cli = Cli::new();
    for arguments in [
        &["run"][..],
        &["run", "x", "--max-model-calls", "0"],
        &["run", ""],
        &["run", "  "],
        &["--read-only", "run", "hi"],
        &["-c", "sessions", "list"],
        &["sessions", "rm"],
        &["--no-such-flag"],
        &["no-such-command"],
    ] {
        let ran = cli.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.is_empty(), "{arguments:?}");
    }
    let help = cli.run(&["run", "--help"]);
    help.check_done();
    assert!(help.out.contains("130 interrupted"), "exit codes are documented: {}", help.out);
    cli.run(&["--version"]).check_done();
    assert!(!cli.work_dir().exists());
}

#[test]
fn a_wrong_configuration_ends_with_two_and_names_the_place() {
    let cli = Cli::new();
    let file = cli.configure("[models]\ndefault = \"guide/guide\"\n[ui\n");
    let at = |line: usize, column: usize| format!("{}:{line}:{column}", shown(&file));
    for arguments in [&["run", "Hello."][..], &["sessions", "list"]] {
        cli.run(arguments).check_refused(2, &[&shown(&file), ":3:"]);
    }
    cli.configure("[models]\ndefualt = \"guide/guide\"\n");
    cli.run(&["run", "Hello."])
        .check_refused(2, &[&at(2, 1), "unknown key \"defualt\" in [models]", "default"]);
    cli.configure("[delete]\nkeep_days = -1\n");
    cli.run(&["run", "Hello."]).check_refused(2, &[&at(2, 13), "delete.keep_days"]);
    cli.configure("[agents]\nmax_model_calls = 3\n  default = \"nobody\"\n");
    cli.run(&["run", "Hello."])
        .check_refused(2, &[&at(3, 3), "agents.default", "\"nobody\"", "assistant"]);
    cli.configure("[models]\ndefault = \"nowhere/at-all\"\n");
    let mut unset = cli.command(&["run", "Hello."]);
    unset.env_remove("TURNSTILE_MODEL");
    Ran::of(&unset.output().expect("the program starts"))
        .check_refused(2, &[&at(2, 1), "models.default", "nowhere"]);
    let pipe = cli.path("pipe.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).expect("a pipe");
    cli.run(&["run", "Hello.", "--config", &shown(&pipe)])
        .check_refused(2, &[&shown(&pipe), "there must be a file in its place"]);
    let missing = shown(&cli.path("nowhere.toml"));
    cli.run(&["run", "Hello.", "--config", &missing]).check_refused(2, &[&missing]);
    cli.configure("");
    cli.run(&["run", "Hello.", "--model", "nowhere/at-all"])
        .check_refused(2, &["--model: ", "nowhere"]);
    assert_eq!(cli.logs("turns"), 0, "no turn was made");
    cli.run(&["run", "Hello."]).check_done();
    assert_eq!(cli.logs("turns"), 1);
}

#[test]
fn a_work_directory_that_cannot_be_used_ends_with_three() {
    let cli = Cli::new();
    fs::create_dir_all(cli.path("data")).expect("a folder");
    fs::write(cli.work_dir(), "in the way").expect("a file");
    let path = shown(&cli.work_dir());
    for arguments in [&["run", "Hello."][..], &["sessions", "rm", "x"]] {
        cli.run(arguments).check_refused(3, &[&path, "--work-dir", "--read-only"]);
    }
    let elsewhere = shown(&cli.path("elsewhere"));
    cli.run(&["run", "Hello.", "--work-dir", &elsewhere]).check_done();
    assert!(cli.path("elsewhere/storage/turns").is_dir());
}

#[test]
fn the_doctor_says_where_everything_is() {
    let cli = Cli::new();
    let ran = cli.run(&["doctor"]);
    ran.check_done();
    for said in [
        shown(&cli.work_dir()),
        shown(&cli.path("config/turnstile/config.toml")),
        "not there yet".to_owned(),
        "guide/guide".to_owned(),
        "no terminal".to_owned(),
    ] {
        assert!(ran.out.contains(&said), "{said:?} is not said: {}", ran.out);
    }
    assert!(!cli.work_dir().exists(), "looking makes nothing");
    cli.run(&["run", "Hello."]).check_done();
    let file = cli.configure("[delete]\nkeep_days = 3\n");
    let ran = cli.run(&["doctor"]);
    ran.check_done();
    for said in ["nobody holds it", "delete.keep_days", &shown(&file)] {
        assert!(ran.out.contains(said), "{said:?} is not said: {}", ran.out);
    }
}

#[test]
fn the_doctor_says_what_is_wrong_and_goes_on() {
    let cli = Cli::new();
    let check = |said: &[&str]| {
        let ran = cli.run(&["doctor"]);
        assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
        for said in [said, &["Terminal", "no terminal", "Models"]].concat() {
            assert!(ran.out.contains(said), "{said:?} is not said: {}", ran.out);
        }
    };
    let file = shown(&cli.configure("[ui]\ntheme = 1\n"));
    let nothing = "answers        nothing, until the configuration is put right";
    check(&["! ", &format!("{file}:2:9: ui.theme"), nothing]);
    cli.configure("[keys.global]\nf1 = \"no-such-action\"\n");
    check(&["! ", "no-such-action"]);
    cli.configure("[agents]\ndefault = \"nobody\"\n");
    check(&["! answers", "nobody"]);
    cli.configure("");
    fs::create_dir_all(cli.path("data")).expect("a folder");
    fs::write(cli.work_dir(), "in the way").expect("a file");
    check(&["! ", "there is no folder but something else", "--work-dir"]);
}

#[test]
fn the_doctor_promises_no_defaults_where_the_configuration_cannot_be_used() {
    let cli = Cli::new();
    let missing = shown(&cli.path("nowhere.toml"));
    let ran = cli.run(&["doctor", "--config", &missing]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    let why = format!("! cannot be used there is no configuration file {missing}");
    assert!(ran.out.contains(&why), "{}", ran.out);
    for unsaid in ["defaults", "connect a model"] {
        assert!(!ran.out.contains(unsaid), "{unsaid:?} is said: {}", ran.out);
    }
    let ran = cli.run(&["doctor"]);
    assert!(ran.out.contains("not there, the defaults hold"), "{}", ran.out);
}

#[test]
fn the_doctor_says_of_a_server_that_is_down_what_is_wrong_and_once_whose_it_is() {
    let cli = Cli::new();
    // Nothing listens at port 1.
    cli.configure(
        "[providers.lab]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:1/v1\"\n",
    );
    let ran = cli.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    let row = ran.out.lines().find(|line| line.contains("cannot be reached"));
    let row = row.unwrap_or_else(|| panic!("{}", ran.out));
    assert!(row.starts_with("! lab            the server cannot be reached"), "{row}");
    assert!(!row.contains("doctor"), "{row}");
}

#[test]
fn the_doctor_finds_what_is_damaged_misplaced_or_was_torn() {
    let cli = Cli::new();
    let id = |number: u8| format!("2026-01-02T03-04-05Z-0000042-00{number}");
    let sessions = cli.work_dir().join("storage/sessions/2026/01/02");
    let turns = cli.work_dir().join("storage/turns/2026");
    for folder in [&sessions, &turns] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let torn = sessions.join(format!("{}.jsonl.torn-0123456789abcdef", id(0)));
    fs::write(&torn, "{").expect("a file");
    let ran = cli.run(&["doctor"]);
    ran.check_done();
    let said = format!("1 torn by a crash and set aside, at last {}", shown(&torn));
    assert!(ran.out.contains(&said), "{}", ran.out);

    fs::write(sessions.join(format!("{}.jsonl", id(1))), "{}\n").expect("a file");
    let pipe = sessions.join(format!("{}.jsonl", id(2)));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).expect("a pipe");
    let moved = turns.join(format!("{}.jsonl", id(3)));
    fs::write(&moved, "{}\n").expect("a file");
    let ran = cli.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    let remedy = format!("lies in {}; move it to ", shown(&moved));
    for said in ["! damaged        2", &id(1), "corrupt at line 1", &shown(&pipe), &remedy] {
        assert!(ran.out.contains(said), "{said:?} is not said: {}", ran.out);
    }
}
