//! Destroying for good, whoever else destroys at the same time.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use turnstile::base::id::TurnId;
use turnstile::store::log::LogId;
use turnstile::store::seam::LogStore;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::memory_store;
use turnstile::testing::store::scripted::{Change, ScriptedStore, Watch};
use turnstile::testing::turns::answering;

/// Destroys each log just before whoever asked for that does.
#[derive(Debug)]
struct Faster(Arc<dyn LogStore>);

#[async_trait]
impl Watch for Faster {
    async fn before(&self, log: &LogId, change: Change<'_>) {
        match change {
            Change::Destroy => {
                let removed = self.0.removed().await.expect("listed").into_iter();
                let removed = removed.filter(|it| it.log == *log).next_back().expect("there");
                self.0.destroy(&removed).await.expect("destroyed");
            }
            Change::Create(_) | Change::Append(_) | Change::Remove | Change::Restore => {}
        }
    }

    async fn after(&self, _log: &LogId, _change: Change<'_>) {}

    async fn read(&self, _what: &str) {}
}

fn with_somebody_faster() -> SessionWorld {
    let store: Arc<dyn LogStore> = Arc::new(memory_store());
    let watch = Arc::new(Faster(Arc::clone(&store)));
    SessionWorld::over(Arc::new(ScriptedStore::new(store).watched_by(watch)))
}

async fn turns(world: &SessionWorld) -> BTreeSet<TurnId> {
    world.turn_repo.ids().await.expect("listed").into_iter().collect()
}

#[tokio::test]
async fn what_somebody_else_destroys_meanwhile_is_gone_and_holds_up_nothing() {
    let world = with_somebody_faster();
    let (session, other) = (world.session().await, world.session().await);
    for session in [&session, &other] {
        world.run(session, answering("One.")).await;
        world.sessions.delete_session(session).await.expect("deleted");
    }
    let found = world.sessions.find_garbage(|_| true).await.expect("listed");
    assert_eq!((found.expired.len(), found.turns.len()), (2, 2));
    let gone = world.sessions.destroy_garbage(&found).await.expect("nothing of it is left");
    assert_eq!(gone, found);
    assert_eq!(turns(&world).await, BTreeSet::new());
}

#[tokio::test]
async fn what_somebody_else_destroys_meanwhile_is_gone_in_a_purge_too() {
    let world = with_somebody_faster();
    let (session, other) = (world.session().await, world.session().await);
    world.run(&session, answering("One.")).await;
    world.run(&session, answering("Two.")).await;
    let kept = world.run(&other, answering("Three.")).await;
    world.sessions.purge_session(&session).await.expect("nothing of it is left");
    assert_eq!(turns(&world).await, BTreeSet::from([kept]));
}
