//! What is told while a turn runs, to those who were there from the start and to those who come later
//! (`design/turn-runtime.md` section 13).

use std::sync::Arc;

use turnstile::base::clock::Timestamp;
use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::turn::event::{TurnEvent, TurnFact};
use turnstile::domain::turn::live::{DeltaKind, Folded, LiveEvent, News, OpenBlock, OpenCall};
use turnstile::models::delta::ModelDelta;
use turnstile::models::error::Failure;
use turnstile::runtime::api::Turns as _;
use turnstile::runtime::error::AdvanceError;
use turnstile::runtime::hub::{Interest, Received, Subscription};
use turnstile::store::error::StoreError;
use turnstile::store::memory;
use turnstile::testing::checker::Says;
use turnstile::testing::gate::Gate;
use turnstile::testing::log::SESSION;
use turnstile::testing::model::{Play, Reply};
use turnstile::testing::store::memory_store;
use turnstile::testing::tools::FakeTool;
use turnstile::testing::world::{Setting, World, all_told, allow};

fn told(subscription: &Subscription) -> Vec<LiveEvent> {
    let received = std::iter::from_fn(|| subscription.try_next());
    received
        .map(|received| match received {
            Received::Event(event) => event,
            Received::Lagged => panic!("a short turn is not too much"),
        })
        .collect()
}

#[tokio::test]
async fn offsets_go_on_over_suspension_and_resumption() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.checker.say("a", Says::Ask);
    world.will_call("a");
    world.will_say("Done.");
    let everything = world.runtime.hub().subscribe(Interest::Everything);
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    world.give(&turn, allow(&turn, 1)).await.expect("taken");
    let told = told(&everything);
    assert!(told.iter().all(|event| event.turn == turn));
    let session = told.iter().map(|event| event.session.as_ref().map(SessionId::as_str));
    assert!(session.eq(told.iter().map(|_| Some(SESSION))), "each says its session");
    let kinds = told.iter().filter_map(|event| match event.news {
        News::Started => Some("started".to_owned()),
        News::Rested => Some("rested".to_owned()),
        News::Recorded { offset, .. } => Some(offset.to_string()),
        _ => None,
    });
    let count = world.log(&turn).len();
    let numbers = |range: std::ops::RangeInclusive<usize>| range.map(|number| number.to_string());
    let started = || std::iter::once("started".to_owned());
    let rested = || std::iter::once("rested".to_owned());
    let expected = numbers(1..=1)
        .chain(started())
        .chain(numbers(2..=7))
        .chain(rested())
        .chain(started())
        .chain(numbers(8..=count))
        .chain(rested());
    assert_eq!(kinds.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Somebody who came while the turn ran.
struct Late {
    subscription: Subscription,
    open_call: Option<OpenCall>,
    events: Vec<Arc<TurnEvent>>,
}

impl Late {
    /// Subscribes, then fetches.
    async fn join(world: &World, turn: &TurnId) -> Self {
        let subscription = world.runtime.hub().subscribe(Interest::Everything);
        let joined = subscription.watch(turn);
        assert!(joined.running);
        let events = world.runtime.get_turn(turn).await.expect("readable").events;
        Self { subscription, open_call: joined.open_call, events }
    }

    /// Folds what was told since; gives the texts of each call, as its overlay stood when it ended.
    fn follow(&mut self) -> Vec<Vec<String>> {
        let mut overlays = Vec::new();
        for event in told(&self.subscription) {
            match event.news {
                News::Recorded { offset, event } => {
                    let have = self.events.len() as u64;
                    if offset <= have {
                        continue;
                    }
                    assert_eq!(offset, have + 1, "no gap");
                    match &event.fact {
                        TurnFact::ModelCallRequested(request) => {
                            self.open_call = Some(OpenCall::new(request.model_call_index));
                        }
                        TurnFact::ModelCallCompleted(_) | TurnFact::ModelCallFailed(_) => {
                            let blocks = self.open_call.take().expect("a call was open").blocks;
                            overlays.push(blocks.into_iter().map(|block| block.text).collect());
                        }
                        _ => {}
                    }
                    self.events.push(event);
                }
                News::Delta(delta) => {
                    let call = self.open_call.as_mut().expect("a call is open");
                    assert_ne!(call.fold(&delta), Folded::Gap, "{delta:?}");
                }
                News::Started
                | News::ModelWaiting { .. }
                | News::ToolTail { .. }
                | News::Rested => {}
            }
        }
        overlays
    }
}

#[tokio::test]
async fn whoever_joins_at_whatever_moment_misses_and_repeats_nothing() {
    let gates: Vec<_> = (0..6).map(|_| Gate::new()).collect();
    let world = World::with_tools([FakeTool::sync("a")]);
    let reply = Reply::new().gate(&gates[0]).reasoning("Let ").gate(&gates[1]).reasoning("me see.");
    let reply = reply.text("I ").gate(&gates[2]).text("call ").text("it.").gate(&gates[3]);
    world.model.then(reply.call("a", turnstile::testing::fact::json("{}")).finish("tool-calls"));
    let reply = Reply::new().gate(&gates[4]).text("Do").gate(&gates[5]).text("ne.");
    world.model.then(reply.finish("stop"));
    let turn = world.ask("Do it.").await;
    let running = world.start(&turn);
    let mut late = Vec::new();
    for gate in &gates {
        gate.reached().await;
        late.push(Late::join(&world, &turn).await);
        gate.open();
    }
    running.outcome.await.expect("it rests");
    let recorded = world.turns.read(&turn).await.expect("readable").events.clone();
    for (moment, late) in late.iter_mut().enumerate() {
        let overlays = late.follow();
        assert_eq!(late.events, recorded, "joined at gate {moment}");
        let first = vec!["Let me see.".to_owned(), "I call it.".to_owned()];
        let second = vec!["Done.".to_owned()];
        let expected = if moment < 4 { vec![first, second] } else { vec![second] };
        assert_eq!(overlays, expected, "joined at gate {moment}");
        assert_eq!(late.open_call, None, "what has settled is no overlay any more");
    }
}

#[tokio::test]
async fn a_call_that_fails_clears_its_overlay() {
    let gate = Gate::new();
    let world = World::bare();
    world.model.then(Reply::new().text("Once").gate(&gate).fail(Failure::ServerError));
    let turn = world.ask("A story.").await;
    let running = world.start(&turn);
    gate.reached().await;
    let watcher = world.runtime.hub().subscribe(Interest::Watched);
    let block = OpenBlock { block: 0, kind: DeltaKind::Text, text: "Once".to_owned() };
    let open = OpenCall { model_call_index: 0, blocks: vec![block], len: 4 };
    assert_eq!(watcher.watch(&turn).open_call, Some(open));
    gate.open();
    running.outcome.await.expect("it rests");
    let joined = watcher.watch(&turn);
    assert_eq!((joined.open_call, joined.running), (None, false));
}

#[tokio::test]
async fn a_client_that_waits_before_it_tries_again_is_told_of_and_not_recorded() {
    let world = World::bare();
    let until = Timestamp::from_ms(1_772_600_800_000);
    let waiting = ModelDelta::Waiting { until, why: "rate limited".to_owned() };
    let mut script = Reply::new().text("Hello.").finish("stop");
    script.insert(0, Play::Delta(waiting));
    world.model.then(script);
    let turn = world.ask("Hi.").await;
    let (told, rejected) = all_told(world.start(&turn)).await;
    assert_eq!(rejected, None);
    let waits = told.into_iter().filter_map(|event| match event.news {
        News::ModelWaiting { until, why } => Some((until, why)),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<_>>(), [(until, "rate limited".to_owned())]);
    assert_eq!(world.log(&turn).len(), 7);
}

#[tokio::test]
async fn a_program_that_ends_waits_for_no_model_and_the_turn_can_be_resumed() {
    let store = Arc::new(memory_store());
    let world = World::over(Arc::<memory::Store>::clone(&store), Setting::default());
    let gate = Gate::new();
    world.model.then(Reply::new().text("Hel").gate(&gate).text("lo.").finish("stop"));
    let turn = world.ask("Hi.").await;
    let running = world.start(&turn);
    gate.reached().await;
    world.tasks.shut_down().await;
    let outcome = running.outcome.await;
    assert!(matches!(outcome, Err(AdvanceError::Store(StoreError::Ending(_)))), "{outcome:?}");
    let log = world.log(&turn);
    assert_eq!(log.last().map(String::as_str), Some("model_call_requested 0 [input]"));
    assert!(!world.runtime.hub().is_running(&turn));
    drop(world);
    let next = World::over(store, Setting::default());
    next.will_say("Hello.");
    let log = next.run(&turn).await;
    assert_eq!(log.last().map(String::as_str), Some(r#"turn_completed "Hello." stop"#));
}
