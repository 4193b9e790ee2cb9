//! What the disk does not take while a command runs that shows no screen: it is said, tried again for
//! a while where that can help, and then given up, so that no script waits for ever.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::cli::report::{Exit, Problem, say};
use crate::store::coordinate::Stall;
use crate::store::log::LogId;

/// How long want of room is waited out: what somebody needs who reads of it and frees some.
const WANT_MAX: Duration = Duration::from_mins(1);

/// Why nothing is held any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GivenUp {
    /// Trying again does not mend it.
    ForPeople,
    /// There was no room for too long.
    TooLong,
    /// A person interrupted the command.
    Interrupted,
}

/// Does what a command does, and looks after what the disk does not take of it. Once somebody has
/// interrupted the command nothing is held any more.
pub(super) async fn attended<T>(
    app: &App,
    interrupted: &CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    let attend = async {
        let why = attend(app.follow_stalls(), interrupted, |line| say(&line)).await;
        say(&why.to_string());
        // Each of them is told to whoever wanted it written.
        drop(app.hold_nothing());
        std::future::pending().await
    };
    tokio::select! {
        biased;
        // Whoever attends has nothing to lose when the work is done.
        done = work => done,
        done = attend => done,
    }
}

/// The same for commands that an interrupt ends at once as long as nothing is held.
pub(super) async fn attended_or_interrupted(
    app: &App,
    work: impl Future<Output = Result<Exit, Problem>>,
) -> Result<Exit, Problem> {
    let interrupted = CancellationToken::new();
    let on_interrupt = async {
        let mut stalls = app.follow_stalls();
        // Until then the signal ends the process as it always did.
        if stalls.wait_for(|stalls| !stalls.is_empty()).await.is_err() {
            return std::future::pending().await;
        }
        interrupt().await;
        if !stalls.borrow().is_empty() {
            interrupted.cancel();
            interrupt().await;
        }
        drop(app.hold_nothing());
    };
    tokio::select! {
        biased;
        // Who interrupts what the disk holds up a second time does not wait for the disk either.
        () = on_interrupt => Ok(Exit::Interrupted),
        done = attended(app, &interrupted, work) => done,
    }
}

/// Waits for an interrupt; for ever, where none can be heard.
pub(super) async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Says what is stalled, each once, until it is to be given up.
async fn attend(
    mut stalls: watch::Receiver<Vec<Stall>>,
    interrupted: &CancellationToken,
    mut say: impl FnMut(String),
) -> GivenUp {
    let mut said: Vec<(LogId, String)> = Vec::new();
    let over = tokio::time::sleep(WANT_MAX);
    tokio::pin!(over);
    loop {
        let now = stalls.borrow_and_update().clone();
        for stall in now.iter().filter(|stall| !said.iter().any(|said| is_of(said, stall))) {
            say(line_of(stall));
        }
        match (said.is_empty(), now.is_empty()) {
            (true, false) => over.as_mut().reset(tokio::time::Instant::now() + WANT_MAX),
            (false, true) => say("the disk takes what is written again".to_owned()),
            (true, true) | (false, false) => {}
        }
        said = now.iter().map(|stall| (stall.log.clone(), stall.why.clone())).collect();
        if now.iter().any(|stall| stall.retry_in.is_none()) {
            return GivenUp::ForPeople;
        }
        tokio::select! {
            biased;
            // All are safe to drop: a token keeps its state, what changed stays changed, and time goes
            // on.
            () = interrupted.cancelled(), if !now.is_empty() => return GivenUp::Interrupted,
            changed = stalls.changed() => if changed.is_err() {
                return std::future::pending().await;
            },
            () = &mut over, if !now.is_empty() => return GivenUp::TooLong,
        }
    }
}

fn is_of((log, why): &(LogId, String), stall: &Stall) -> bool {
    *log == stall.log && *why == stall.why
}

fn line_of(stall: &Stall) -> String {
    let Stall { why, records, retry_in, .. } = stall;
    let held = match records {
        1 => "1 record is held".to_owned(),
        _ => format!("{records} records are held"),
    };
    match retry_in {
        None => format!("storage stalled: {why}"),
        Some(_) => format!(
            "storage stalled: {why}; {held} and tried again for up to {} s: make room, or give up \
             with Ctrl-C",
            WANT_MAX.as_secs()
        ),
    }
}

impl std::fmt::Display for GivenUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ForPeople => f.write_str("giving up: trying again does not mend that"),
            Self::TooLong => {
                write!(f, "giving up: there was no room for {} s", WANT_MAX.as_secs())
            }
            Self::Interrupted => f.write_str("giving up, because you interrupt it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    use crate::testing::store::turn;

    fn stall(log: usize, cause: &str, retry_in_s: Option<u64>) -> Stall {
        Stall {
            log: turn(log),
            cause: cause.to_owned(),
            why: format!("cannot append to it: {cause}"),
            records: 3,
            retry_in: retry_in_s.map(Duration::from_secs),
            tries: 1,
        }
    }

    /// Shows these stalls one after the other, a second each; gives what was said, why it was given up
    /// and after how long.
    async fn attended(shown: &[Vec<Stall>]) -> (Vec<String>, GivenUp, Duration) {
        let stalls = watch::Sender::new(Vec::new());
        let (began, mut said) = (Instant::now(), Vec::new());
        let (following, interrupted) = (stalls.subscribe(), CancellationToken::new());
        let show = async {
            for shown in shown {
                stalls.send_replace(shown.clone());
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            std::future::pending().await
        };
        let why = tokio::select! {
            biased;
            // One of them ends.
            why = attend(following, &interrupted, |line| said.push(line)) => why,
            why = show => why,
        };
        (said, why, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn want_of_room_is_said_once_per_change_and_given_up_after_a_minute() {
        let (full, later) = (stall(0, "full", Some(1)), stall(0, "full", Some(2)));
        let both = vec![later.clone(), stall(1, "full", Some(1))];
        let (said, why, took) = attended(&[vec![full], vec![later], both]).await;
        assert_eq!((why, took), (GivenUp::TooLong, WANT_MAX));
        let line = "storage stalled: cannot append to it: full; 3 records are held and tried again \
                    for up to 60 s: make room, or give up with Ctrl-C";
        assert_eq!(said, [line, line]);
    }

    #[tokio::test(start_paused = true)]
    async fn every_stall_has_a_minute_of_its_own() {
        let full = || vec![stall(0, "full", Some(1))];
        let (said, why, took) = attended(&[full(), full(), Vec::new(), full()]).await;
        assert_eq!((why, took), (GivenUp::TooLong, WANT_MAX + Duration::from_secs(3)));
        assert_eq!(said.len(), 3);
        assert_eq!(said[1], "the disk takes what is written again");
    }

    #[tokio::test(start_paused = true)]
    async fn what_only_a_person_can_mend_is_given_up_at_once() {
        let shown = [vec![stall(0, "full", Some(1))], vec![stall(0, "broken", None)]];
        let (said, why, took) = attended(&shown).await;
        assert_eq!((why, took), (GivenUp::ForPeople, Duration::from_secs(1)));
        assert_eq!(said[1..], ["storage stalled: cannot append to it: broken"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_interrupt_gives_up_what_is_held_then_or_later() {
        let stalls = watch::Sender::new(Vec::new());
        let interrupted = CancellationToken::new();
        interrupted.cancel();
        let attend = attend(stalls.subscribe(), &interrupted, drop);
        tokio::pin!(attend);
        let early = futures_util::FutureExt::now_or_never(attend.as_mut());
        assert_eq!(early, None, "nothing is held");
        stalls.send_replace(vec![stall(0, "full", Some(1))]);
        assert_eq!(attend.await, GivenUp::Interrupted);
    }
}
