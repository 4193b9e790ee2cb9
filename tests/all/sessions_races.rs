//! Races among deciding, stopping, ending and deleting, on several threads and the real runtime.

use std::sync::Arc;

use turnstile::base::tasks::{Ended, Tasks};
use turnstile::testing::gate::Gate;

use crate::sessions_real_world::{World, says, writes};

/// How often the racers start, each time in another order.
const ROUNDS: usize = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_wins_of_a_decision_a_stop_and_a_deletion_nothing_is_revived() {
    for round in 0..ROUNDS {
        let (world, tasks) = (Arc::new(World::new()), Tasks::new());
        let session = world.session().await;
        let turn = world.run(&session, writes()).await;
        world.model.then(says("Written.").finish("stop"));
        let racers: Vec<_> = (0..3)
            .map(|number| {
                let (world, session, turn) = (Arc::clone(&world), session.clone(), turn.clone());
                tasks.spawn("racer", async move {
                    match (round + number) % 3 {
                        0 => drop(world.allow(&turn).await),
                        1 => drop(world.sessions.stop_turn(&turn, None).await),
                        _ => drop(world.sessions.delete_session(&session).await.expect("there")),
                    }
                })
            })
            .collect();
        for racer in racers {
            racer.await.expect("it ends");
        }
        assert_eq!(world.sessions.running(), [], "a deletion waits for what runs");
        assert_eq!(world.sessions.list_sessions(), []);
        world.sessions.restore_session(&session).await.expect("restored");
        assert_eq!(world.scanned().await, world.sessions.list_sessions());
        drop(world.allow(&turn).await);
        world.sessions.stop_turn(&turn, None).await.expect("stopped");
        let ended = world.sessions.get_turn(&turn).await.expect("readable");
        assert!(ended.state.terminal.is_some());
        let late = world.allow(&turn).await;
        assert!(late.is_err(), "it has ended");
        world.sessions.stop_turn(&turn, None).await.expect("it has ended already");
        let read = world.sessions.get_turn(&turn).await.expect("readable");
        assert_eq!(read.events, ended.events, "nothing follows an end");
        assert_eq!(world.scanned().await, world.sessions.list_sessions());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_wins_of_an_end_and_a_stop_the_turn_has_ended_once() {
    for _ in 0..ROUNDS {
        let (world, tasks) = (Arc::new(World::new()), Tasks::new());
        let (session, gate) = (world.session().await, Gate::new());
        let turn = world.send(&session, says("One").gate(&gate).text(".")).await;
        gate.reached().await;
        let (stops, stopped) = (world.sessions.clone(), turn.clone());
        let stop = tasks.spawn("stop", async move { stops.stop_turn(&stopped, None).await });
        gate.open();
        let stopped = stop.await.expect("it ends");
        assert!(matches!(stopped, Ended::Done(Ok(()))), "{stopped:?}");
        let ended = world.sessions.get_turn(&turn).await.expect("readable");
        assert!(ended.state.terminal.is_some());
        world.rested().await;
        world.run(&session, says("Two.")).await;
        assert_eq!(world.scanned().await, world.sessions.list_sessions());
        let read = world.sessions.get_turn(&turn).await.expect("readable");
        assert_eq!(read.events, ended.events, "nothing follows an end");
    }
}
