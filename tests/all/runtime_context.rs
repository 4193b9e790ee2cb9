//! What a turn knows of those before it: the agent that it inherits and the conversation that the
//! model gets (`design/turn-runtime.md` section 4).

use std::sync::Arc;

use turnstile::base::id::{IdSource as _, Ids, TurnId};
use turnstile::domain::agent::{AgentOverrides, AgentSnapshot, Execution, RequestedAgent};
use turnstile::domain::event::Event;
use turnstile::domain::json::Json;
use turnstile::domain::message::{ProviderOptions, ReasoningPart, TextPart};
use turnstile::domain::turn::event::{ToolResultData, TurnContext, TurnEvent, TurnFact};
use turnstile::models::delta::{Answer, AnswerPart, ModelDelta, ProviderToolCall};
use turnstile::models::error::Failure;
use turnstile::runtime::api::{CreateTurn, TurnOutcome};
use turnstile::runtime::context::ContextError;
use turnstile::runtime::error::AdvanceError;
use turnstile::store::log::{LogId, LogKind, Record};
use turnstile::store::seam::LogStore as _;
use turnstile::testing::agents::AGENT;
use turnstile::testing::clock::HandClock;
use turnstile::testing::fact::{self, complete, created_after, inline, json, request_in, tool};
use turnstile::testing::log::{Log, PREVIOUS_TURN};
use turnstile::testing::model::{Play, Reply, ScriptedModel};
use turnstile::testing::store::memory_store;
use turnstile::testing::store::scripted::ScriptedStore;
use turnstile::testing::tools::FakeTool;
use turnstile::testing::world::{Setting, World, after, cancel, other_model};

/// What the model got in its last request, a line of JSON for each message.
fn received(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    let last = requests.last().expect("the model was asked");
    last.messages.iter().map(|it| serde_json::to_string(it).expect("JSON")).collect()
}

/// A turn that follows `previous` on the other model.
async fn on_other(world: &World, previous: &TurnId, text: &str) -> TurnId {
    let RequestedAgent::ById(mut agent) = RequestedAgent::by_id(AGENT) else { panic!("by id") };
    agent.overrides = Some(AgentOverrides { model: Some(other_model()), composition: None });
    let (agent, context) = (RequestedAgent::ById(agent), after(previous));
    world.create(CreateTurn { agent, context, ..world.turn(text) }).await
}

/// From which turn this one inherits its agent.
fn inherited_from(world: &World, turn: &TurnId) -> Option<TurnId> {
    match &world.state(turn).definition.agent.resolved {
        AgentSnapshot::Full(_) => None,
        AgentSnapshot::Inherited(inherited) => Some(inherited.inherited_from.clone()),
    }
}

#[tokio::test]
async fn an_unchanged_agent_is_inherited_from_turn_to_turn() {
    let world = World::with_tools([FakeTool::sync("a")]);
    let mut turns = vec![world.ask("0").await];
    for number in 1..=3 {
        world.will_say("Yes.");
        world.run(turns.last().expect("one")).await;
        let previous = turns.last().expect("one").clone();
        turns.push(world.ask_after(&previous, &number.to_string()).await);
    }
    world.will_say("Yes.");
    world.run(&turns[3]).await;
    let inherited: Vec<_> = turns.iter().map(|turn| inherited_from(&world, turn)).collect();
    assert_eq!(inherited[0], None);
    assert_eq!(inherited[1..], turns[..3].iter().cloned().map(Some).collect::<Vec<_>>());
    let request = &world.model.requests()[3];
    assert_eq!((request.system_prompt.as_ref(), request.tools.len()), ("Be brief.", 1));
    let contents = received(&world.model);
    assert_eq!(contents.len(), 7, "four questions, three answers: {contents:?}");
}

#[tokio::test]
async fn another_model_inherits_and_another_prompt_or_tool_does_not() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.will_say("Yes.");
    let first = world.ask("Hi.").await;
    world.run(&first).await;
    let switched = on_other(&world, &first, "Again.").await;
    assert_eq!(inherited_from(&world, &switched), Some(first.clone()));
    world.agents.change(|agent| agent.system_prompt = "Be long.".into());
    let other_prompt = world.ask_after(&first, "Again.").await;
    assert_eq!(inherited_from(&world, &other_prompt), None);
    world.run(&other_prompt).await;
    world.agents.change(|agent| agent.tools = vec![tool("b", Execution::Sync)].into());
    let retooled = world.ask_after(&other_prompt, "Again.").await;
    assert_eq!(inherited_from(&world, &retooled), None);
}

#[tokio::test]
async fn an_unreadable_predecessor_costs_a_full_snapshot_and_then_the_advance() {
    let world = World::bare();
    let gone = TurnId::from(PREVIOUS_TURN);
    let turn = world.ask_after(&gone, "Hi.").await;
    assert_eq!(inherited_from(&world, &turn), None);
    let rejected = world.advance(&turn).await;
    assert!(
        matches!(&rejected, Err(AdvanceError::Context(ContextError::Unreadable { turn, .. })) if *turn == gone),
        "{rejected:?}"
    );
    assert_eq!(world.log(&turn), ["turn_created"], "nothing false is recorded");
}

#[tokio::test]
async fn a_corrupt_predecessor_rejects_the_advance() {
    let store = memory_store();
    let id = LogId::new(LogKind::Turn, PREVIOUS_TURN).expect("well formed");
    let record = Record::new(r#"{"type":"unheard_of"}"#).expect("an object");
    drop(store.create(&id, &[record]).await.expect("created"));
    let world = World::over(Arc::new(store), Setting::default());
    let turn = world.ask_after(&TurnId::from(PREVIOUS_TURN), "Hi.").await;
    let rejected = world.advance(&turn).await;
    assert!(matches!(rejected, Err(AdvanceError::Context(ContextError::Unreadable { .. }))));
}

#[tokio::test]
async fn a_turn_after_one_that_has_not_ended_is_rejected() {
    let world = World::bare();
    let first = world.ask("Hi.").await;
    let second = world.ask_after(&first, "And?").await;
    let rejected = world.advance(&second).await;
    assert!(
        matches!(rejected, Err(AdvanceError::Context(ContextError::NotEnded(turn))) if turn == first)
    );
}

/// An answer of reasoning and text with what its provider wants back.
fn signed() -> Vec<Play> {
    let options = |text: &str| ProviderOptions::of("lab", &json(text)).expect("an object");
    let reasoning =
        ReasoningPart { text: "Hm.".into(), provider_options: Some(options(r#"{"sig":1.50}"#)) };
    let hidden =
        ReasoningPart { text: "".into(), provider_options: Some(options(r#"{"enc":"x"}"#)) };
    let text = TextPart { text: "Yes.".into(), provider_options: None };
    let parts = vec![
        AnswerPart::Reasoning(reasoning),
        AnswerPart::Reasoning(hidden),
        AnswerPart::Text(text),
    ];
    let answer = Answer { parts, finish_reason: "stop".to_owned(), ..Answer::default() };
    [
        ModelDelta::ReasoningStart,
        ModelDelta::Reasoning("Hm.".into()),
        ModelDelta::ReasoningEnd,
        ModelDelta::ReasoningStart,
        ModelDelta::ReasoningEnd,
        ModelDelta::TextStart,
        ModelDelta::Text("Yes.".into()),
        ModelDelta::TextEnd,
        ModelDelta::Finish(Box::new(answer)),
    ]
    .map(Play::Delta)
    .into()
}

const SIGNED: &str = r#"{"role":"assistant","content":[{"type":"reasoning","text":"Hm.","providerOptions":{"lab":{"sig":1.50}}},{"type":"reasoning","text":"","providerOptions":{"lab":{"enc":"x"}}},{"type":"text","text":"Yes."}]}"#;
const STRIPPED: &str = r#"{"role":"assistant","content":[{"type":"text","text":"Hm."},{"type":"text","text":"Yes."}]}"#;

#[tokio::test]
async fn what_a_provider_wants_back_goes_to_its_own_model_only_and_again_after_a_switch() {
    let world = World::bare();
    world.model.then(signed());
    let first = world.ask("1").await;
    world.run(&first).await;

    let second = world.ask_after(&first, "2").await;
    world.model.then(signed());
    world.run(&second).await;
    assert_eq!(received(&world.model)[1], SIGNED);

    let third = on_other(&world, &second, "3").await;
    world.other.then(signed());
    world.advance(&third).await.expect("it rests");
    assert_eq!(received(&world.other)[1], STRIPPED);
    assert_eq!(received(&world.other)[3], STRIPPED);

    let fourth = world.ask_after(&third, "4").await;
    world.will_say("Done.");
    world.run(&fourth).await;
    let back = received(&world.model);
    assert_eq!([&back[1], &back[3], &back[5]], [SIGNED, SIGNED, STRIPPED]);
}

#[tokio::test]
async fn what_a_turn_that_did_not_complete_had_from_a_provider_is_not_sent_again() {
    let world = World::with_tools([FakeTool::outside("ask")]);
    let options = ProviderOptions::of("lab", &json(r#"{"id":"p1"}"#)).expect("an object");
    let call = ProviderToolCall {
        name: "ask".to_owned(),
        arguments: json("{}"),
        provider_options: Some(options),
    };
    let parts = vec![AnswerPart::ToolCall(call.clone())];
    let answer = Answer { parts, finish_reason: "tool-calls".to_owned(), ..Answer::default() };
    let deltas = [ModelDelta::ToolCall(call), ModelDelta::Finish(Box::new(answer))];
    world.model.then(deltas.map(Play::Delta).into());
    let first = world.ask("1").await;
    world.run(&first).await;
    world.give(&first, cancel("no")).await.expect("taken");
    let second = world.ask_after(&first, "2").await;
    world.will_say("Done.");
    world.run(&second).await;
    assert_eq!(
        received(&world.model)[1..],
        [
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool-call","toolCallId":"{first}_1","toolName":"ask","arguments":{{}}}}]}}"#
            ),
            format!(
                r#"{{"role":"tool","content":"The call was cancelled: the turn was stopped before it had a result.","toolCallId":"{first}_1","toolName":"ask"}}"#
            ),
            r#"{"role":"user","content":"2"}"#.to_owned(),
        ]
    );
}

#[tokio::test]
async fn failed_calls_add_nothing_to_the_conversation() {
    let world = World::bare();
    world.model.then(Reply::new().text("Once").fail(Failure::ServerError));
    let first = world.ask("1").await;
    let failed = world.advance(&first).await;
    assert!(matches!(failed, Ok(TurnOutcome::Failed(_))));
    let second = world.ask_after(&first, "2").await;
    world.will_say("Done.");
    world.run(&second).await;
    assert_eq!(
        received(&world.model),
        [r#"{"role":"user","content":"1"}"#, r#"{"role":"user","content":"2"}"#]
    );
}

#[tokio::test]
async fn an_inline_context_is_sent_by_its_turn_and_by_those_after_it() {
    let world = World::bare();
    let first = world.create(CreateTurn { context: inline(), ..world.turn("1") }).await;
    world.will_say("Yes.");
    assert_eq!(world.run(&first).await[1], "model_call_requested 0 [context input]");
    let own = received(&world.model);
    let second = world.ask_after(&first, "2").await;
    world.will_say("Done.");
    assert_eq!(
        world.run(&second).await[1],
        "model_call_requested 0 [input] after the previous turn"
    );
    assert_eq!(received(&world.model)[..3], own, "what was sent stays as it was");
    assert_eq!(own[0], r#"{"role":"user","content":"Before?"}"#);
}

#[tokio::test]
async fn long_results_of_earlier_turns_are_left_out_and_those_of_the_turn_itself_are_not() {
    let long = "ä".repeat(2_501);
    let result = ToolResultData { output: Json::text(&long), is_error: false, metadata: None };
    let world = World::with_tools([FakeTool::sync("read").returning(result)]);
    world.will_call("read");
    world.will_say("Read.");
    let first = world.ask("1").await;
    world.run(&first).await;
    let own = received(&world.model);
    assert!(own[2].contains(&long));
    let second = world.ask_after(&first, "2").await;
    world.will_say("Done.");
    world.run(&second).await;
    let later = received(&world.model);
    assert_eq!(
        later[2],
        format!(
            r#"{{"role":"tool","content":"[The result of this call of read was 2501 characters long and is left out here. Run the tool again if you need it.]","toolCallId":"{first}_1","toolName":"read"}}"#
        )
    );
    assert_eq!(
        (&later[..2], &later[3..4]),
        (&own[..2], &[r#"{"role":"assistant","content":"Read."}"#.to_owned()][..])
    );
    let recorded = world.facts(&first).iter().any(
        |fact| matches!(fact, TurnFact::ToolResult(it) if it.result.output == Json::text(&long)),
    );
    assert!(recorded, "the log is untouched");
}

#[tokio::test]
async fn a_further_turn_reads_the_log_of_the_one_before_it_only() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = World::over(Arc::new(store.clone()), Setting::default());
    let mut last = world.ask("0").await;
    world.will_say("Yes.");
    world.run(&last).await;
    for number in 1..=6 {
        let next = world.ask_after(&last, &number.to_string()).await;
        let before = store.reads().len();
        world.will_say("Yes.");
        world.run(&next).await;
        let read: Vec<_> = store.reads()[before..].iter().map(|log| log.id().to_owned()).collect();
        assert_eq!(read, [next.as_str()], "its own log; the one before was read as it was created");
        last = next;
    }
    let read = store.reads().len();
    drop(world.ask_after(&last, "7").await);
    let read: Vec<_> = store.reads()[read..].iter().map(|log| log.id().to_owned()).collect();
    assert_eq!(read, [last.as_str()]);
}

/// The ids of turns that were written before a world began.
fn earlier_ids(count: usize) -> Vec<TurnId> {
    let ids = Ids::new(HandClock::new(), 7);
    std::iter::repeat_with(|| TurnId::from(ids.next())).take(count).collect()
}

#[tokio::test]
async fn a_chain_of_ten_thousand_turns_is_sent_whole_and_the_next_turn_reads_one_log() {
    const COUNT: usize = 10_000;
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = World::over(Arc::new(store.clone()), Setting::default());
    let chain = earlier_ids(COUNT);
    let before = std::iter::once(TurnContext::Inline(Vec::new())).chain(chain.iter().map(after));
    for (number, (turn, context)) in chain.iter().zip(before).enumerate() {
        let log = Log::turn(created_after(context.clone()))
            .then(request_in(&context, 0, "input"))
            .then(fact::answer(0, &number.to_string()))
            .then(complete());
        let of_turn = |event: TurnEvent| Event { id: turn.clone(), ..event };
        let events: Vec<_> = log.into_events().into_iter().map(of_turn).collect();
        world.write(&events).await;
    }
    world.will_say("Yes.");
    let first = world.ask_after(&chain[COUNT - 1], "And?").await;
    assert_eq!(store.reads().len(), COUNT, "each turn before it was read once");
    world.run(&first).await;
    let messages = received(&world.model);
    assert_eq!(messages.len(), 2 * COUNT + 1);
    let answers = messages.iter().skip(1).step_by(2);
    assert!(answers.enumerate().all(|(number, it)| it.contains(&format!(":\"{number}\""))));

    let read = store.reads().len();
    world.will_say("Yes.");
    let next = world.ask_after(&first, "And then?").await;
    world.run(&next).await;
    let own = |log: &&LogId| log.id() == next.as_str();
    let reads = &store.reads()[read..];
    let before: Vec<_> = reads.iter().filter(|it| !own(it)).map(LogId::id).collect();
    assert_eq!(before, [first.as_str()], "of the turns before it, the one that is new");
    assert_eq!(received(&world.model).len(), 2 * COUNT + 3);
}
