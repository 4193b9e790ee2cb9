//! A live stream that loses and repeats: the screen ends with what the log holds.

use proptest::prelude::*;

use super::live::{open, shown};
use super::script::{Screen, commands};
use super::world::{Turn, ended};
use crate::app::notice::Notice;
use crate::domain::agent::Execution;
use crate::domain::turn::event::{Decision, ResultSource};

/// A turn from its first event to its last, piece by piece.
const LIFE: [fn(&mut Turn) -> Vec<Notice>; 12] = [
    |turn| vec![turn.started(), turn.asks_model()],
    |turn| vec![turn.delta(0, "Let ")],
    |turn| vec![turn.delta(4, "me see")],
    |turn| vec![turn.answers("Let me see", &[("shell", "{}"), ("shell", "{}")])],
    |turn| vec![turn.requires(1)],
    |turn| vec![turn.resolves(1, Decision::Deny)],
    |turn| vec![turn.finishes(1, ResultSource::Runtime)],
    |turn| vec![turn.invokes(2, Execution::Sync), turn.finishes(2, ResultSource::Sync)],
    |turn| vec![turn.asks_model()],
    |turn| vec![turn.delta(0, "Done")],
    |turn| vec![turn.answers("Done.", &[])],
    |turn| vec![turn.completes(), turn.rested()],
];

/// What becomes of a piece on its way to the screen.
#[derive(Clone, Copy, Debug)]
enum Way {
    Arrives,
    ArrivesTwice,
    IsLost,
}

proptest! {
    #[test]
    fn whatever_the_stream_loses_or_repeats_the_screen_ends_with_the_log(
        ways in prop::collection::vec(
            prop::sample::select(vec![Way::Arrives, Way::ArrivesTwice, Way::IsLost]), LIFE.len(),
        ),
        served in prop::collection::vec(any::<bool>(), LIFE.len()),
    ) {
        let mut session = ended("s1");
        let mut screen = Screen::showing(&session);
        let created = session.begin("go");
        screen.tell(created);
        let mut asked = 0;
        for (at, piece) in LIFE.iter().enumerate() {
            let notices = piece(session.turn());
            let last = at + 1 == LIFE.len();
            let times = match ways[at] {
                Way::Arrives => 1,
                Way::ArrivesTwice => 2,
                Way::IsLost => usize::from(last),
            };
            for notice in notices.iter().cycle().take(notices.len() * times) {
                let effects = commands(screen.tell(notice.clone()));
                asked += effects.iter().filter(|command| **command == open(&session)).count();
            }
            if asked > 0 && (served[at] || last) {
                asked -= 1;
                screen.tell_all(session.opened());
            }
            let counted: usize = screen.state.conversation.turns.item_count();
            prop_assert_eq!(counted, shown(&screen).len());
        }
        for _ in 0..asked {
            screen.tell_all(session.opened());
        }
        let whole = shown(&Screen::showing(&session));
        prop_assert_eq!(shown(&screen), whole);
        let items = screen.state.items();
        let back = std::iter::successors(items.last(), |item| items.before(&item.id));
        let mut back: Vec<_> = back.map(|item| item.id).collect();
        back.reverse();
        let forth = std::iter::successors(items.first(), |item| items.after(&item.id));
        prop_assert_eq!(back, forth.map(|item| item.id).collect::<Vec<_>>());
    }
}
