//! Grants: given, and taken back.

use crate::base::id::SessionId;
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::testing::seed::Seed;
use crate::testing::sim::left::Shared;

/// Gives a grant, or takes one back that stands.
pub(super) async fn grant(
    sessions: Sessions,
    session: SessionId,
    seed: Seed,
    shared: Shared,
) -> Result<(), SessionError> {
    let standing = if seed.chance(40) { shared.begin_removal(&session) } else { None };
    if let Some(grant) = standing {
        sessions.remove_grant(&session, &grant).await?;
        shared.removed_grant(&grant);
        return Ok(());
    }
    let pattern = if seed.chance(50) { Some("src/**") } else { None };
    let grant = sessions.add_grant(&session, "write_file", pattern).await?;
    shared.added_grant(&session, grant);
    Ok(())
}
