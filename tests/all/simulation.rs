//! The session layer, the runtime and the store under every order of events that a seed draws.
//! `TURNSTILE_SEEDS=10000` plays so many, `TURNSTILE_SEED=42` plays one.

use std::collections::BTreeMap;

use turnstile::testing::sim::{Played, play};

/// How many are played where nothing is said.
const SEEDS: u64 = 200;

/// The number that a person gave.
#[expect(clippy::disallowed_methods, reason = "it is how a person asks for more, or for one again")]
pub(crate) fn asked(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text:?}")))
}

/// Plays so many, on as many threads as there are; each seed is a world of its own.
fn play_all(seeds: u64) -> Vec<Played> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = |first: usize| {
        let seeds = (0..seeds).skip(first).step_by(threads);
        seeds.map(|seed| play(seed).unwrap_or_else(|broken| panic!("{broken}"))).collect()
    };
    let part = &part;
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        let all = parts.into_iter().map(|part| match part.join() {
            Ok(played) => played,
            Err(broken) => std::panic::resume_unwind(broken),
        });
        all.collect::<Vec<Vec<_>>>().concat()
    })
}

#[test]
fn whatever_happens_in_whatever_order_every_promise_is_kept() {
    if let Some(seed) = asked("TURNSTILE_SEED") {
        play(seed).unwrap_or_else(|broken| panic!("{broken}"));
        return;
    }
    let seeds = asked("TURNSTILE_SEEDS").unwrap_or(SEEDS);
    let (mut done, mut turns, mut met) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for played in play_all(seeds) {
        for (operation, count) in played.done {
            *done.entry(operation).or_insert(0) += count;
        }
        for (status, count) in played.turns {
            *turns.entry(status).or_insert(0) += count;
        }
        for (what, count) in played.met {
            *met.entry(what).or_insert(0) += count;
        }
    }
    // What never came about was not tried.
    let expected = [
        "answer",
        "archive",
        "close",
        "collect",
        "compact",
        "create",
        "decide",
        "delete",
        "edit",
        "fork",
        "grant",
        "purge",
        "queue",
        "recover",
        "rename",
        "report",
        "restore",
        "resume",
        "scan",
        "send",
        "send waiting",
        "stop",
        "take back",
    ];
    assert_eq!(done.keys().copied().collect::<Vec<_>>(), expected, "{done:?}");
    let expected = ["cancelled", "completed", "failed", "idle", "suspended"];
    assert_eq!(turns.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{turns:?}");
    let expected = [
        "a batch was torn",
        "a fork had turns",
        "a log was destroyed",
        "a message that waited began a turn",
        "a message was held",
        "a message was taken in",
        "a model call was interrupted",
        "a question that a crash left was collected",
        "a tool was interrupted",
        "a turn began with a summary",
    ];
    assert_eq!(met.keys().copied().collect::<Vec<_>>(), expected, "{met:?}");
}

#[test]
fn a_seed_plays_the_same_every_time() {
    // In files, and in memory.
    for seed in [3, 7, 8, 9] {
        let [one, two] = [(), ()].map(|()| play(seed).unwrap_or_else(|broken| panic!("{broken}")));
        assert_eq!(format!("{one:?}"), format!("{two:?}"));
    }
}
