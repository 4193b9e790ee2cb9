//! A model behind HTTP: a scripted server, asked by the client that speaks to real ones.

use serde_json::json;
use tokio::runtime::Runtime;
use turnstile::testing::beside;
use turnstile::testing::folder::files;
use turnstile::testing::gate::Gate;
use turnstile::testing::model_server::{ModelServer, Reply};
use turnstile::testing::pty::{Home, Launch, Program};

use crate::person::{PROGRAM, go_to_prompt, quit, say, shows};

/// A server and the home of a person who is connected to it.
pub(crate) struct Lab {
    pub(crate) home: Home,
    pub(crate) server: ModelServer,
    /// Drives the server.
    _runtime: Runtime,
}

impl Lab {
    pub(crate) fn new(answers: impl IntoIterator<Item = Reply>) -> Self {
        let runtime = beside::runtime();
        let server = runtime.block_on(ModelServer::start(answers)).expect("a free port");
        let home = Home::new();
        configure(&home, &server.base_url());
        Self { home, server, _runtime: runtime }
    }

    pub(crate) fn start(&self) -> Program {
        start(&self.home)
    }
}

fn configure(home: &Home, base_url: &str) {
    home.configure(&format!(
        "[models]\ndefault = \"lab/tiny\"\n[providers.lab]\nkind = \"openai-compatible\"\n\
         base_url = \"{base_url}\"\nkey = {{ env = \"LAB_KEY\" }}\n"
    ));
}

pub(crate) fn launch(home: &Home) -> Launch {
    // Nothing but the file says which model answers.
    let launch = Launch::new(PROGRAM, home).variable("TURNSTILE_MODEL", "");
    launch.variable("LAB_KEY", "sk-very-secret")
}

fn start(home: &Home) -> Program {
    let program = launch(home).start();
    program.wait_for_text("lab/tiny");
    program
}

fn writes(path: &str) -> Reply {
    let arguments = json!({"path": path, "content": "by the model\n"});
    let reply = Reply::stream().text("I write it down.");
    reply.call(0, "call-1", "write-file", &arguments).finish("tool_calls").usage(20, 9).done()
}

pub(crate) fn answers(text: &str) -> Reply {
    Reply::stream().text(text).finish("stop").usage(30, 4).done()
}

/// An answer of which a part comes before the gate.
pub(crate) fn in_two(gate: &Gate) -> Reply {
    let reply = Reply::stream().text("The first half, ").gate(gate).text("the second half.");
    reply.finish("stop").usage(12, 6).done()
}

#[test]
fn an_answer_streams_a_tool_is_approved_and_all_is_there_after_a_restart() {
    let gate = Gate::new();
    let lab = Lab::new([in_two(&gate), writes("plan.md"), answers("It is written.")]);
    let mut program = lab.start();
    say(&mut program, "Why?");
    program.wait_for("text before the end of the turn", |screen| {
        shows(screen, "The first half,") && shows(screen, "1 session running")
    });
    assert!(!program.screen().contains("the second half"));
    gate.open();
    program.wait_for_text("The first half, the second half.");
    program.wait_for_text("✓ done");
    say(&mut program, "Write it down");
    go_to_prompt(&mut program, "Allow write-file?");
    program.wait_for_text("by the model");
    program.send("y");
    program.wait_for_text("It is written.");
    assert!(lab.home.project().join("plan.md").is_file());
    quit(program);

    let program = launch(&lab.home).argument("--continue").start();
    program.wait_for("both turns", |screen| {
        shows(screen, "the second half.") && shows(screen, "It is written.")
    });
    quit(program);
    check_no_secret(&lab);
}

#[test]
fn an_approval_survives_kill_9_and_the_model_hears_of_it() {
    let lab = Lab::new([writes("plan.md")]);
    let mut program = lab.start();
    say(&mut program, "Write it down");
    program.wait_for_text("Allow write-file?");
    program.wait_for_text("1 waiting");
    program.kill();
    assert!(!lab.home.project().join("plan.md").exists());

    lab.server.then(answers("It is written."));
    let mut program = launch(&lab.home).argument("--continue").start();
    go_to_prompt(&mut program, "Allow write-file?");
    program.send("y");
    program.wait_for_text("It is written.");
    program.wait_for_text("✓ done");
    quit(program);
    let requests = lab.server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].body.contains("\"tool_call_id\":\"call-1\""), "{}", requests[1].body);
    assert!(lab.home.project().join("plan.md").is_file());
}

#[test]
fn a_server_that_is_down_is_told_with_what_to_do() {
    let home = Home::new();
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    configure(&home, &format!("http://{address}/v1"));
    let mut program = start(&home);
    say(&mut program, "Anybody there?");
    program.wait_for_text("the server cannot be reached");
    program.wait_for_text("Anybody there?");
    program.kill();
}

#[test]
fn a_wrong_key_is_told_without_the_key() {
    let error = json!({"error": {"message": "Incorrect API key provided: sk-very-secret.",
        "type": "invalid_request_error", "code": "invalid_api_key"}});
    let lab = Lab::new([Reply::json(401, &error)]);
    let mut program = lab.start();
    say(&mut program, "Hello?");
    program.wait_for_text("(status 401)");
    program.wait_for_text("✗");
    program.wait_for_text("Hello?");
    quit(program);
    assert_eq!(lab.server.requests()[0].header("authorization"), Some("Bearer sk-very-secret"));
    check_no_secret(&lab);
}

/// The key is in no file.
fn check_no_secret(lab: &Lab) {
    for file in files(lab.home.folder()) {
        let bytes = std::fs::read(&file).expect("a file of the home");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("sk-very-secret"), "{} holds the key", file.display());
    }
}
