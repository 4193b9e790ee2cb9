//! Who decides on a call that asks: the table of `design/turn-runtime.md` section 8.

use std::sync::Arc;

use turnstile::domain::turn::event::{
    Classification, PermissionRequired, TurnConfig, TurnCreated, TurnFact,
};
use turnstile::runtime::api::{CreateConfig, CreateTurn, Human, PermissionMode};
use turnstile::testing::checker::{Says, ScriptedClassifier, Thinks};
use turnstile::testing::fact::{calls, json, request, turn};
use turnstile::testing::gate::Gate;
use turnstile::testing::log::Log;
use turnstile::testing::tools::FakeTool;
use turnstile::testing::world::{Setting, World, allow, options};

/// A world with the tools `a` and `b`, which ask.
fn asking(classifier: Option<Arc<ScriptedClassifier>>) -> World {
    let tools = ["a", "b"].map(FakeTool::sync).map(Arc::new).into();
    let world = World::new(Setting { tools, classifier, ..Setting::default() });
    world.checker.say("a", Says::Ask);
    world.checker.say("b", Says::Ask);
    world
}

/// A turn of mode `permission` calls `a`, which asks; gives what follows the question.
async fn check_table(
    (permission, human): (PermissionMode, Human),
    classifier: Option<Thinks>,
    expected: &[&str],
) {
    let world = asking(classifier.map(|thinks| ScriptedClassifier::new([thinks])));
    world.will_call("a");
    world.will_say("Done.");
    let config = CreateConfig { permission, human, ..world.turn("").config };
    let turn = world.create(CreateTurn { config, ..world.turn("Do it.") }).await;
    let log = world.run(&turn).await;
    assert_eq!(log[5], "tool_permission_required #1 a");
    let end = log.iter().position(|line| line.starts_with("model_call_requested 1"));
    assert_eq!(log[6..end.unwrap_or(log.len())], *expected);
}

const SUSPENDED: &str = "turn_suspended permissions [#1] async []";
const NOBODY: &str =
    "tool_permission_resolved #1 deny by human_unavailable: nobody is there to ask";
const DENIED: &str =
    r#"tool_result #1 runtime error "This call was denied: nobody is there to ask""#;

#[tokio::test]
async fn in_manual_mode_a_person_is_asked_or_the_call_is_denied() {
    let manual = |human| (PermissionMode::Manual, human);
    check_table(manual(Human::Available), None, &[SUSPENDED]).await;
    check_table(manual(Human::Unavailable), None, &[NOBODY, DENIED]).await;
}

#[tokio::test]
async fn manual_mode_never_asks_the_classifier() {
    let classifier = ScriptedClassifier::new([Thinks::Nothing]);
    let world = asking(Some(Arc::clone(&classifier)));
    world.will_call("a");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    assert_eq!(classifier.batches(), [] as [Vec<String>; 0]);
}

#[tokio::test]
async fn what_a_classifier_does_not_allow_is_asked_if_a_person_is_there() {
    let mode = (PermissionMode::Auto, Human::Available);
    let thinks = |decision| Some(Thinks::Of(vec![("a", decision)]));
    check_table(
        mode,
        thinks(Classification::Allow),
        &[
            "tool_permission_classified #1 allow: a looks like it",
            "tool_permission_resolved #1 allow by classifier: a looks like it",
            "tool_invocation_requested #1 a sync {}",
            r#"tool_result #1 sync "a done""#,
        ],
    )
    .await;
    let denied = "tool_permission_classified #1 deny: a looks like it";
    check_table(mode, thinks(Classification::Deny), &[denied, SUSPENDED]).await;
    let deferred = "tool_permission_classified #1 defer: a looks like it";
    check_table(mode, thinks(Classification::Defer), &[deferred, SUSPENDED]).await;
    let failed = "tool_permission_classification_failed [#1]: the classifier's answer cannot be \
                  read: no yes and no no";
    check_table(mode, Some(Thinks::Nothing), &[failed, SUSPENDED]).await;
    let omitted = "tool_permission_classification_failed [#1]: the classifier left this call out";
    check_table(mode, Some(Thinks::Of(Vec::new())), &[omitted, SUSPENDED]).await;
    check_table(mode, None, &[SUSPENDED]).await;
}

#[tokio::test]
async fn what_a_classifier_does_not_allow_is_denied_if_nobody_is_there() {
    let mode = (PermissionMode::Auto, Human::Unavailable);
    let thinks = |decision| Some(Thinks::Of(vec![("a", decision)]));
    check_table(
        mode,
        thinks(Classification::Allow),
        &[
            "tool_permission_classified #1 allow: a looks like it",
            "tool_permission_resolved #1 allow by classifier: a looks like it",
            "tool_invocation_requested #1 a sync {}",
            r#"tool_result #1 sync "a done""#,
        ],
    )
    .await;
    let resolved = "tool_permission_resolved #1 deny by human_unavailable: a looks like it";
    let result = r#"tool_result #1 runtime error "This call was denied: a looks like it""#;
    let denied = "tool_permission_classified #1 deny: a looks like it";
    check_table(mode, thinks(Classification::Deny), &[denied, resolved, result]).await;
    let deferred = "tool_permission_classified #1 defer: a looks like it";
    check_table(mode, thinks(Classification::Defer), &[deferred, resolved, result]).await;
    let failed = "tool_permission_classification_failed [#1]: the classifier's answer cannot be \
                  read: no yes and no no";
    check_table(mode, Some(Thinks::Nothing), &[failed, NOBODY, DENIED]).await;
    let omitted = "tool_permission_classification_failed [#1]: the classifier left this call out";
    check_table(mode, Some(Thinks::Of(Vec::new())), &[omitted, NOBODY, DENIED]).await;
    let nobody = "nobody is there to ask, and no classifier model is configured";
    let resolved = format!("tool_permission_resolved #1 deny by human_unavailable: {nobody}");
    let result = format!(r#"tool_result #1 runtime error "This call was denied: {nobody}""#);
    check_table(mode, None, &[&resolved, &result]).await;
}

#[tokio::test]
async fn a_classifier_judges_all_calls_of_an_answer_in_one_go() {
    let thinks = vec![("b", Classification::Allow), ("a", Classification::Deny)];
    let classifier = ScriptedClassifier::new([Thinks::Of(thinks)]);
    let world = asking(Some(Arc::clone(&classifier)));
    world.will_call("a b");
    world.will_say("Done.");
    let config = CreateConfig { permission: PermissionMode::Auto, ..world.turn("").config };
    let turn = world.create(CreateTurn { config, ..world.turn("Do it.") }).await;
    let log = world.run(&turn).await;
    assert_eq!(
        log[8..],
        [
            "tool_permission_classified #1 deny: a looks like it",
            "tool_permission_classified #2 allow: b looks like it",
            "tool_permission_resolved #2 allow by classifier: b looks like it",
            "tool_invocation_requested #2 b sync {}",
            r#"tool_result #2 sync "b done""#,
            "turn_suspended permissions [#1] async []",
        ]
    );
    world.give(&turn, allow(&turn, 1)).await.expect("taken");
    assert_eq!(classifier.batches(), [["a", "b"]], "nothing is judged twice");
}

#[tokio::test]
async fn a_person_may_decide_while_the_classifier_thinks() {
    let gate = Gate::new();
    let classifier = ScriptedClassifier::new([Thinks::Late(gate.clone())]);
    let world = asking(Some(classifier));
    world.will_call("a b");
    world.will_say("Done.");
    let config = CreateConfig { permission: PermissionMode::Auto, ..world.turn("").config };
    let turn = world.create(CreateTurn { config, ..world.turn("Do it.") }).await;
    let thinking = world.start(&turn);
    gate.reached().await;
    let decided = world.start_with(&turn, Some(allow(&turn, 1)), options());
    while world.log(&turn).len() < 9 {
        tokio::task::yield_now().await;
    }
    gate.open();
    thinking.outcome.await.expect("it rests");
    decided.outcome.await.expect("it rests");
    assert_eq!(
        world.log(&turn)[8..],
        [
            "tool_permission_resolved #1 allow by human",
            "tool_permission_classification_failed [#2]: the classifier left this call out",
            "tool_invocation_requested #1 a sync {}",
            r#"tool_result #1 sync "a done""#,
            "turn_suspended permissions [#2] async []",
        ]
    );
}

#[tokio::test]
async fn a_classifier_that_breaks_down_defers() {
    let mode = (PermissionMode::Auto, Human::Available);
    let failed = "tool_permission_classification_failed [#1]: the classifier panicked: internal \
                  error: entered unreachable code: it went mad";
    check_table(mode, Some(Thinks::Panic), &[failed, SUSPENDED]).await;
}

#[tokio::test]
async fn what_another_program_asks_in_its_own_words_is_recorded_as_not_classified() {
    let classifier = ScriptedClassifier::new([Thinks::Of(Vec::new())]);
    let world = asking(Some(Arc::clone(&classifier)));
    let required = TurnFact::PermissionRequired(PermissionRequired {
        tool_call_id: "c1".into(),
        tool_name: "a".to_owned(),
        request: json(r#"{"title":"May it?"}"#),
        checker_error: None,
    });
    let definition = turn();
    let config = TurnConfig { auto_permission: true, ..definition.config.clone() };
    let created = TurnFact::Created(TurnCreated { config, ..definition }.into());
    let log = Log::turn(created).then(request(0, "input")).then(calls(0, "c1:a")).then(required);
    let turn = world.write(log.events()).await;
    world.run(&turn).await;
    let end: Vec<_> = world.log(&turn).into_iter().skip(log.events().len()).collect();
    let failed =
        "tool_permission_classification_failed [c1]: this program cannot read what is asked";
    assert_eq!(end, [failed, "turn_suspended permissions [c1] async []"]);
    assert_eq!(classifier.batches(), [] as [Vec<String>; 0]);
}
