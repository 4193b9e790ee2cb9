//! The chat completions client against a server that does everything servers do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use turnstile::base::clock::{Clock, Entropy, Timestamp};
use turnstile::base::secret::Secret;
use turnstile::domain::json::Json;
use turnstile::domain::message::{Message, UserMessage};
use turnstile::models::delta::{AnswerPart, ModelDelta};
use turnstile::models::error::{Failure, ModelError, Phase};
use turnstile::models::http::{KeyProvider, Manners, NoKey, Patience, Reach, Timeouts};
use turnstile::models::model::Model as _;
use turnstile::models::openai_compatible::Server;
use turnstile::models::request::ModelRequest;
use turnstile::testing::gate::Gate;
use turnstile::testing::model_server::{ModelServer, Reply};
use turnstile::testing::stream_rules::check_stream;

type Items = Vec<Result<ModelDelta, ModelError>>;

const KEY: &str = "sk-very-secret-0123456789";
/// Long enough for loopback, short enough to wait for.
const SHORT: Duration = Duration::from_millis(40);

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(1_000_000)
    }
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

impl Entropy for Still {
    fn bits(&self) -> u64 {
        0
    }
}

fn manners() -> Manners {
    Manners {
        timeouts: Timeouts::default(),
        patience: Patience {
            retries_max: 2,
            first_wait: Duration::from_millis(4),
            ..Patience::default()
        },
        clock: Arc::new(Still),
        entropy: Arc::new(Still),
    }
}

#[derive(Debug)]
struct Known;

#[async_trait::async_trait]
impl KeyProvider for Known {
    async fn key(&self) -> Result<Secret, NoKey> {
        Ok(Secret::new(KEY))
    }
}

fn reach(base_url: &str) -> Reach {
    let key: Option<Arc<dyn KeyProvider>> = Some(Arc::new(Known));
    Reach { key, ..Reach::at(base_url.parse().expect("a base URL")) }
}

fn request() -> ModelRequest {
    ModelRequest {
        system_prompt: "".into(),
        tools: Arc::from([]),
        messages: vec![Message::User(Arc::new(UserMessage::text("hi")))],
        parameters: Json::parse("{}").expect("json"),
    }
}

async fn ask_with(base_url: &str, manners: Manners) -> Items {
    let model = Server::new("lab", reach(base_url), manners).model("qwen3");
    let items: Items = model.stream(request(), CancellationToken::new()).collect().await;
    assert_eq!(check_stream(&items), Ok(()));
    items
}

async fn ask(answers: impl IntoIterator<Item = Reply>) -> Items {
    let server = ModelServer::start(answers).await.expect("a port");
    ask_with(&server.base_url(), manners()).await
}

/// The text that was told, and the failure, if it failed.
fn outcome(items: &Items) -> (String, Option<Failure>) {
    let text = items.iter().filter_map(|item| match item {
        Ok(ModelDelta::Text(text)) => Some(text.as_ref()),
        _ => None,
    });
    let failure = items.last().and_then(|item| item.as_ref().err());
    (text.collect(), failure.map(|error| error.failure.clone()))
}

fn waits(items: &Items) -> Vec<(i64, &str)> {
    let waits = items.iter().filter_map(|item| match item {
        Ok(ModelDelta::Waiting { until, why }) => Some((until.since(Still.now()), why.as_str())),
        _ => None,
    });
    waits.map(|(wait, why)| (i64::try_from(wait.as_millis()).expect("short"), why)).collect()
}

async fn check_outcome(answer: Reply, text: &str, failure: Option<Failure>) {
    let shown = format!("{answer:?}").chars().take(300).collect::<String>();
    assert_eq!(outcome(&ask([answer]).await), (text.to_owned(), failure), "{shown}");
}

/// A failed answer must say this.
async fn check_sentence(answer: Reply, sentence: &str) {
    let items = ask([answer]).await;
    let error = items.last().and_then(|item| item.as_ref().err()).expect("an error");
    assert_eq!(error.to_string(), sentence);
}

fn hello() -> Reply {
    Reply::stream().text("Hel").text("lo").finish("stop").usage(5, 2).done()
}

#[tokio::test]
async fn an_answer_comes_whole_and_the_request_has_key_and_body() {
    let server = ModelServer::start([hello()]).await.expect("a port");
    let items = ask_with(&server.base_url(), manners()).await;
    assert_eq!(outcome(&items), ("Hello".to_owned(), None));
    let Some(Ok(ModelDelta::Finish(answer))) = items.last() else { panic!("no answer: {items:?}") };
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (Some(5), Some(2)));
    let [request] = server.requests().try_into().expect("one request");
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(
        request.body,
        r#"{"model":"qwen3","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}"#
    );
}

#[tokio::test]
async fn bytes_may_come_in_any_pieces() {
    for size in [1, 3, 7, 64] {
        check_outcome(hello().in_pieces(size), "Hello", None).await;
        check_outcome(hello().in_pieces(size).chunked(), "Hello", None).await;
    }
}

#[tokio::test]
async fn text_is_told_as_it_comes() {
    let gate = Gate::new();
    let answer = Reply::stream().text("first").gate(&gate).text("second").finish("stop").done();
    let server = ModelServer::start([answer]).await.expect("a port");
    let model = Server::new("lab", reach(&server.base_url()), manners()).model("m");
    let mut stream = model.stream(request(), CancellationToken::new());
    assert_eq!(stream.next().await, Some(Ok(ModelDelta::TextStart)));
    assert_eq!(stream.next().await, Some(Ok(ModelDelta::Text("first".into()))));
    gate.open();
    assert_eq!(stream.next().await, Some(Ok(ModelDelta::Text("second".into()))));
}

#[tokio::test]
async fn tool_calls_come_with_their_arguments_whole() {
    let answer = Reply::stream()
        .text("I look.")
        .call(0, "call_a", "read-file", &json!({"path": "a"}))
        .call(1, "call_b", "list-dir", &json!({}))
        .finish("tool_calls")
        .done();
    let items = ask([answer]).await;
    let Some(Ok(ModelDelta::Finish(answer))) = items.last() else { panic!("no answer: {items:?}") };
    let calls = answer.parts.iter().filter_map(|part| match part {
        AnswerPart::ToolCall(call) => Some((call.name.as_str(), call.arguments.get())),
        AnswerPart::Text(_) | AnswerPart::Reasoning(_) => None,
    });
    assert_eq!(calls.collect::<Vec<_>>(), [("read-file", r#"{"path":"a"}"#), ("list-dir", "{}")]);
}

#[tokio::test]
async fn odd_streams_are_read() {
    let end = r#"{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}"#;
    for stream in [
        format!("\u{feff}data: {end}\n\n"),
        format!("data: {end}\r\n\r\n"),
        format!("data: {end}\r\r"),
        format!(": comment\n\n\nretry: 10\nid: 1\nevent: message\ndata: {end}\n\n"),
        format!("data: {end}"),
        format!("{end}\n"),
    ] {
        check_outcome(Reply::stream().bytes(stream.clone()), "ok", None).await;
        check_outcome(Reply::status(200).bytes(stream), "ok", None).await;
    }
    let bad = end.replace("ok", "o\u{1}k");
    let bad: Vec<u8> = bad.bytes().map(|byte| if byte == 1 { 0xFF } else { byte }).collect();
    let bad = [b"data: ".as_slice(), &bad, b"\n\n"].concat();
    check_outcome(Reply::stream().bytes(bad), "o\u{fffd}k", None).await;
}

#[tokio::test]
async fn a_server_that_never_closes_is_not_waited_for_after_the_end() {
    let timeouts = Timeouts { after_end: SHORT, ..Timeouts::default() };
    let answer = Reply::stream().text("a").finish("stop").hold();
    let server = ModelServer::start([answer]).await.expect("a port");
    let items = ask_with(&server.base_url(), Manners { timeouts, ..manners() }).await;
    assert_eq!(outcome(&items), ("a".to_owned(), None));
    check_outcome(Reply::stream().text("a").finish("stop").cut().chunked(), "a", None).await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_failed_and_its_text_is_kept() {
    for broken in [
        Reply::stream().text("a"),
        Reply::stream().text("a").bytes("data: {\"choices\":[{\"del"),
        Reply::stream().text("a").cut().chunked(),
        Reply::stream().text("a").bytes("data: {\"cho").cut().chunked(),
    ] {
        check_outcome(broken, "a", Some(Failure::Truncated)).await;
    }
    check_outcome(Reply::stream(), "", Some(Failure::Truncated)).await;
}

#[tokio::test]
async fn silence_has_a_limit_before_the_answer_and_within_it() {
    let before = Timeouts { first_byte: SHORT, ..Timeouts::default() };
    let within = Timeouts { next_byte: SHORT, ..Timeouts::default() };
    for (answer, timeouts, text, phase) in [
        (Reply::stream().hold(), before, "", Phase::FirstByte),
        (Reply::stream().text("a").hold(), within, "a", Phase::NextByte),
    ] {
        let server = ModelServer::start([answer]).await.expect("a port");
        let items = ask_with(&server.base_url(), Manners { timeouts, ..manners() }).await;
        let failure = Failure::Timeout { phase, limit: SHORT };
        assert_eq!(outcome(&items), (text.to_owned(), Some(failure)));
    }
}

#[tokio::test]
async fn an_error_in_the_middle_keeps_the_text_and_the_servers_words() {
    let error = r#"{"error":{"message":"GPU on fire","code":503}}"#;
    check_outcome(Reply::stream().text("a").event(error), "a", Some(Failure::ServerError)).await;
    check_sentence(
        Reply::stream().header("x-request-id", "r-7").text("a").event(error),
        "lab/qwen3: the server failed (status 503): GPU on fire [request r-7]; \
         what came is kept; send the message again",
    )
    .await;
}

#[tokio::test]
async fn what_is_too_long_is_named() {
    let long = |len: usize| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}", "x".repeat(len))
    };
    let end = "\"},\"finish_reason\":\"stop\"}]}\n\n";
    let most = 8_000_000;
    let read = Reply::stream().bytes(long(most) + end);
    check_outcome(read, &"x".repeat(most), None).await;
    let limit_bytes = 8 * 1024 * 1024;
    let failure = Failure::TooLong { what: "one event", limit_bytes };
    check_outcome(Reply::stream().bytes(long(limit_bytes)), "", Some(failure)).await;
    let failure = Failure::TooLong { what: "the answer", limit_bytes };
    let document = Reply::status(200).header("content-type", "application/json");
    check_outcome(document.bytes(long(limit_bytes)), "", Some(failure)).await;
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_read_too() {
    let message = json!({"role": "assistant", "content": "whole"});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    check_outcome(Reply::json(200, &json!({"choices": [choice]})), "whole", None).await;
    check_sentence(
        Reply::json(200, &json!({"error": "model \"qwen3\" not found", "code": 404})),
        "lab/qwen3: the server rejected the request (status 404): model \"qwen3\" not found; \
         check the model's name and `base_url`; `turnstile doctor` lists the models",
    )
    .await;
}

#[tokio::test]
async fn what_is_no_answer_says_what_it_is() {
    let page = Reply::status(200).header("content-type", "text/html; charset=utf-8");
    check_sentence(
        page.bytes("<html><title>Log in</title>"),
        "lab/qwen3: the answer cannot be read: it is of type text/html (status 200): \
         a page titled \"Log in\"; check that `base_url` leads to an API of this kind",
    )
    .await;
    check_sentence(
        Reply::json(200, &json!({"status": "ok"})),
        "lab/qwen3: the answer cannot be read: no answer in {\"status\":\"ok\"}; \
         check that `base_url` leads to an API of this kind",
    )
    .await;
    check_sentence(
        Reply::stream().event("hello"),
        "lab/qwen3: the answer cannot be read: expected value at line 1 column 1 in the event \
         hello; check that `base_url` leads to an API of this kind",
    )
    .await;
    check_sentence(
        Reply::status(302).header("location", "https://other/v1"),
        "lab/qwen3: the server rejected the request (status 302): it has moved to \
         https://other/v1; check the model's name, and the server's own log",
    )
    .await;
}

#[tokio::test]
async fn a_refusal_is_what_its_status_and_body_say() {
    let error = |code: &str| json!({"error": {"message": "m", "code": code}});
    for (status, code, failure) in [
        (400, "x", Failure::Rejected),
        (400, "context_length_exceeded", Failure::ContextOverflow),
        (401, "x", Failure::Authentication),
        (403, "x", Failure::Authentication),
        (402, "x", Failure::QuotaUsedUp),
        (404, "x", Failure::Rejected),
        (413, "x", Failure::ContextOverflow),
        (422, "x", Failure::Rejected),
        (429, "insufficient_quota", Failure::QuotaUsedUp),
        (500, "context_length_exceeded", Failure::ContextOverflow),
    ] {
        // Only one answer is scripted: a second request would get another status.
        check_outcome(Reply::json(status, &error(code)), "", Some(failure)).await;
    }
}

#[tokio::test]
async fn what_may_pass_is_asked_again_and_every_wait_is_told() {
    let busy = json!({"error": {"message": "Loading model"}});
    for (first, why) in [
        (Reply::json(503, &busy), "the server failed: Loading model"),
        (Reply::status(500), "the server failed"),
        (Reply::status(408), "the server failed"),
        (Reply::status(409), "the server rejected the request"),
        (Reply::status(429), "rate limited"),
    ] {
        let items = ask([first, hello()]).await;
        assert_eq!(outcome(&items), ("Hello".to_owned(), None));
        assert_eq!(waits(&items), [(2, why)]);
    }
    let items = ask([Reply::nothing(), Reply::nothing(), hello()]).await;
    assert_eq!(outcome(&items), ("Hello".to_owned(), None));
    assert_eq!(waits(&items).iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), [2, 4]);
}

#[tokio::test]
async fn it_gives_up_after_the_last_retry() {
    let server = ModelServer::start([]).await.expect("a port");
    let items = ask_with(&server.base_url(), manners()).await;
    assert_eq!(outcome(&items), (String::new(), Some(Failure::ServerError)));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_asked_again_and_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let items = ask_with(&format!("http://{address}/v1"), manners()).await;
    assert_eq!(outcome(&items).1, Some(Failure::Unreachable));
    assert_eq!(waits(&items).len(), 2);
    let error = items.last().and_then(|item| item.as_ref().err()).expect("an error");
    let named = format!("lab/qwen3: the server cannot be reached: {address}: ");
    assert!(error.to_string().starts_with(&named), "{error}");
}

#[tokio::test]
async fn a_server_says_how_long_to_wait() {
    let limited = |wait: &str| Reply::status(429).header("retry-after", wait);
    let items = ask([limited("0.01"), hello()]).await;
    assert_eq!(outcome(&items), ("Hello".to_owned(), None));
    assert_eq!(waits(&items), [(10, "rate limited for 10 ms")]);
    let items = ask([limited("300")]).await;
    let failure = Failure::RateLimited { retry_after: Some(Duration::from_mins(5)) };
    assert_eq!(outcome(&items), (String::new(), Some(failure)));
    assert_eq!(waits(&items), []);
}

#[tokio::test]
async fn cancelling_ends_the_stream_and_closes_the_connection() {
    let server = ModelServer::start([Reply::stream().text("a").hold()]).await.expect("a port");
    let model = Server::new("lab", reach(&server.base_url()), manners()).model("m");
    let cancel = CancellationToken::new();
    let mut stream = model.stream(request(), cancel.clone());
    assert_eq!(stream.next().await, Some(Ok(ModelDelta::TextStart)));
    cancel.cancel();
    let rest: Items = stream.collect().await;
    assert_eq!(outcome(&rest), ("a".to_owned(), Some(Failure::Cancelled)));
    server.hung_up().await;
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let server = ModelServer::start([Reply::stream().text("a").hold()]).await.expect("a port");
    let model = Server::new("lab", reach(&server.base_url()), manners()).model("m");
    let mut stream = model.stream(request(), CancellationToken::new());
    assert_eq!(stream.next().await, Some(Ok(ModelDelta::TextStart)));
    drop(stream);
    server.hung_up().await;
}

#[tokio::test]
async fn a_wait_can_be_cancelled() {
    let limited = Reply::status(429).header("retry-after", "100");
    let server = ModelServer::start([limited]).await.expect("a port");
    let model = Server::new("lab", reach(&server.base_url()), manners()).model("m");
    let cancel = CancellationToken::new();
    let mut stream = model.stream(request(), cancel.clone());
    assert!(matches!(stream.next().await, Some(Ok(ModelDelta::Waiting { .. }))));
    cancel.cancel();
    let rest: Items = stream.collect().await;
    assert_eq!(outcome(&rest), (String::new(), Some(Failure::Cancelled)));
}

#[tokio::test]
async fn nothing_is_asked_when_it_was_cancelled_before() {
    let server = ModelServer::start([hello()]).await.expect("a port");
    let model = Server::new("lab", reach(&server.base_url()), manners()).model("m");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let items: Items = model.stream(request(), cancel).collect().await;
    assert_eq!(outcome(&items), (String::new(), Some(Failure::Cancelled)));
    assert_eq!(server.requests(), []);
}

#[tokio::test]
async fn a_key_is_never_in_an_error() {
    let words = format!("bad key {KEY}");
    let error = json!({"error": {"message": words, "code": 401}});
    for answer in [
        Reply::json(401, &error).header("x-request-id", KEY),
        Reply::json(200, &error),
        Reply::stream().event(&error.to_string()),
        Reply::stream().event(&words),
        Reply::status(400).bytes(format!("{}{KEY}", "x".repeat(590))),
        Reply::status(302).header("location", &format!("http://h/{KEY}")),
        Reply::status(200).header("content-type", "text/html").bytes(format!("<title>{KEY}")),
    ] {
        let items = ask([answer]).await;
        let error = items.last().and_then(|item| item.as_ref().err()).expect("an error");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("sk-very"), "{shown}");
    }
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_said() {
    let server = ModelServer::start([]).await.expect("a port");
    let mut bad_header = reach(&server.base_url());
    bad_header.headers.insert("x y".to_owned(), Secret::new("v"));
    let model = Server::new("lab", bad_header, manners()).model("m");
    let items: Items = model.stream(request(), CancellationToken::new()).collect().await;
    let [Err(error)] = items.as_slice() else { panic!("no error: {items:?}") };
    assert_eq!(
        error.to_string(),
        "lab/m: the provider's configuration cannot be used: the header \"x y\" has a name or a \
         value that cannot be sent; correct it in `[providers]`"
    );
}

/// Has a key only when it is asked again; counts how often that is.
#[derive(Debug, Default)]
struct Late(AtomicU32);

#[async_trait::async_trait]
impl KeyProvider for Late {
    async fn key(&self) -> Result<Secret, NoKey> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Err(NoKey("LAB_KEY is not set".to_owned())),
            _ => Ok(Secret::new(KEY)),
        }
    }
}

#[tokio::test]
async fn a_key_is_fetched_at_the_first_use_and_its_error_is_the_call_s() {
    let list = json!({"data": []});
    let replies = [Reply::json(200, &list), Reply::json(200, &list)];
    let server = ModelServer::start(replies).await.expect("a port");
    let late = Arc::new(Late::default());
    let key: Option<Arc<dyn KeyProvider>> = Some(Arc::<Late>::clone(&late));
    let lab = Server::new("lab", Reach { key, ..reach(&server.base_url()) }, manners());
    assert_eq!(late.0.load(Ordering::Relaxed), 0);
    let within = Duration::from_secs(5);
    let error = lab.models(within).await.expect_err("no key yet");
    assert_eq!(
        error.to_string(),
        "lab: there is no key: LAB_KEY is not set; see `key` of this provider in the configuration"
    );
    for _ in 0..2 {
        assert_eq!(lab.models(within).await, Ok(Vec::new()));
    }
    assert_eq!(late.0.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_server_lists_its_models_in_every_shape() {
    let names = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
    for (document, listed) in [
        (json!({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}), names(&["a", "b"])),
        (json!({"models": [{"name": "a"}, {"model": "b"}]}), names(&["a", "b"])),
        (json!([{"id": "a"}, "b"]), names(&["a", "b"])),
        (json!({"data": []}), names(&[])),
        (
            json!({"hello": 1}),
            Err(Failure::Malformed { what: "no list of models in {\"hello\":1}".to_owned() }),
        ),
    ] {
        let server = ModelServer::start([Reply::json(200, &document)]).await.expect("a port");
        let lab = Server::new("lab", reach(&server.base_url()), manners());
        let found = lab.models(Duration::from_secs(5)).await;
        assert_eq!(found.map_err(|error| error.failure), listed);
        assert_eq!(server.requests()[0].path, "/v1/models");
    }
    let silent = ModelServer::start([Reply::stream().hold()]).await.expect("a port");
    let lab = Server::new("lab", reach(&silent.base_url()), manners());
    let failure = lab.models(SHORT).await.map_err(|error| error.failure);
    assert_eq!(failure, Err(Failure::Timeout { phase: Phase::FirstByte, limit: SHORT }));
}
