//! Which grants stand: those that somebody was told were given, unless somebody took them back.

use crate::testing::sim::Sim;
use crate::testing::sim::check::Found;
use crate::testing::sim::left::Removal;

impl Sim {
    /// A grant stands or not, as whoever gave it or took it back was told.
    pub(super) fn check_grants(&self, found: &Found) {
        for (grant, known) in &self.shared.lock().grants {
            // What is deleted cannot be looked at.
            let Some(session) = found.sessions.get(&known.session) else { continue };
            let stands = session.state.grants.iter().any(|it| it.grant_id == *grant);
            let is_right = match known.removal {
                Removal::None => stands,
                Removal::Begun => true,
                Removal::Done => !stands,
            };
            assert!(is_right, "grant {grant} of {}, {known:?}, stands: {stands}", known.session);
        }
    }
}
