//! One lock for each of many things, such as sessions: made when it is needed, gone when nobody
//! holds it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Locks by key. Whoever waits for one gets it in the order of asking.
#[derive(Debug)]
pub struct KeyedLocks<K>(Mutex<HashMap<K, Weak<AsyncMutex<()>>>>);

/// How many locks that nobody holds may stand before they are swept out.
const IDLE_LOCKS_MAX: usize = 256;

impl<K> Default for KeyedLocks<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> KeyedLocks<K> {
    /// Waits for the lock of `key` and holds it until the guard is dropped.
    pub async fn lock(&self, key: &K) -> OwnedMutexGuard<()> {
        self.of(key).lock_owned().await
    }

    fn of(&self, key: &K) -> Arc<AsyncMutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        if locks.len() > IDLE_LOCKS_MAX {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::new(AsyncMutex::new(()));
        locks.insert(key.clone(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_key_is_held_once_and_other_keys_do_not_wait() {
        let locks = KeyedLocks::default();
        let held = locks.lock(&"a").await;
        drop(locks.lock(&"b").await);
        assert!(locks.of(&"a").try_lock().is_err());
        drop(held);
        assert!(locks.of(&"a").try_lock().is_ok());
    }

    #[tokio::test]
    async fn locks_that_nobody_holds_go_away() {
        let locks = KeyedLocks::default();
        for key in 0..1_000 {
            drop(locks.lock(&key).await);
        }
        assert!(locks.0.lock().unwrap().len() <= IDLE_LOCKS_MAX + 1);
    }
}
