//! What the program tells of a turn's log, and what it does around calls of the session layer.

use turnstile::app::command::{Command, DraftOf, Inspect, InspectWhat, TextOf, Unsent};
use turnstile::app::notice::{Inspected, Notice, Refused};
use turnstile::base::id::{EventId, TurnId};

use crate::app_world::{GUIDE, Person, Running, draft, process};

async fn inspected(running: &mut Running, turn: &TurnId, what: InspectWhat) -> Inspected {
    running.perform(Command::Inspect(Inspect { turn: turn.clone(), what }));
    running
        .until(|notice| match notice {
            Notice::Inspected(inspected) => Some(inspected.clone()),
            _ => None,
        })
        .await
}

#[test]
fn a_turn_is_told_event_by_event_and_each_event_whole() {
    let person = Person::new(GUIDE);
    process(async {
        let mut running = person.start();
        let (_, turn) = running.run(DraftOf::NewSession, "Hello.").await;
        let Inspected::Events { events: Ok(events), .. } =
            inspected(&mut running, &turn, InspectWhat::Events).await
        else {
            panic!("it is readable")
        };
        let kinds: Vec<&str> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds.get(..2), Some(&["turn_created", "model_call_requested"][..]));
        assert_eq!(events.get(1).and_then(|event| event.model_call), Some(0));
        let first = inspected(&mut running, &turn, InspectWhat::Text(TextOf::Event(1))).await;
        let Inspected::Text { text: Ok(text), .. } = first else { panic!("{first:?}") };
        assert!(text.text().starts_with("{\n  \"type\": \"turn_created\",\n"), "{}", text.text());
        let beyond = inspected(&mut running, &turn, InspectWhat::Text(TextOf::Event(9_999))).await;
        assert!(matches!(beyond, Inspected::Text { text: Err(_), .. }), "{beyond:?}");
    });
}

#[test]
fn a_turn_that_is_not_there_says_so() {
    let person = Person::new(GUIDE);
    process(async {
        let mut running = person.start();
        let turn = TurnId::from("2026-03-04T04-59-59Z-0000042-000");
        let events = inspected(&mut running, &turn, InspectWhat::Events).await;
        assert!(matches!(events, Inspected::Events { events: Err(_), .. }), "{events:?}");
    });
}

#[test]
fn a_message_is_taken_back_only_after_its_text_is_in_the_draft() {
    let person = Person::new(GUIDE);
    process(async {
        let mut running = person.start();
        let (session, _) = running.run(DraftOf::NewSession, "Hello.").await;
        let event = EventId::from("01890a5d-ac96-774b-bcce-b302099a8057");
        let (of, text) = (DraftOf::Session(session.clone()), draft("taken back"));
        let taken = Unsent::TakeBack { session, event: event.clone(), draft: text.clone() };
        running.perform(Command::Unsent(taken));
        let (what, _) = running.refused().await;
        assert!(matches!(what, Refused::TakeBack { event: told, .. } if told == event));
        assert_eq!(running.draft(of).await, text, "what does not wait any more is not lost");
    });
}
