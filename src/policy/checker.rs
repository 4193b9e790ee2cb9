//! Whether a call may run: the seam, and the checker that goes by the rules.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use crate::base::id::TurnId;
use crate::domain::permission::decide::{Question, ReadGuard, Rules, Verdict};
use crate::domain::permission::pattern::{PatternError, Place};
use crate::domain::permission::plan::{LocatedPath, LocatedPlan};
use crate::domain::permission::rule::Ruling;
use crate::policy::built_in;

/// A call whose permission is in question.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool.
    pub tool_id: String,
    /// What the call would touch, and the session's folder.
    pub plan: LocatedPlan,
    /// The turns of this session, whose long output may be read again.
    pub own_turns: Arc<HashSet<TurnId>>,
}

/// A checker that came to no verdict. The call asks; the reason is recorded as `checkerError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no verdict on this call: {why}")]
pub struct NoVerdict {
    /// What stood in the way.
    pub why: String,
}

/// Judges calls before they run (`design/turn-runtime.md` section 8). A checker only judges: it
/// asks nobody, and what it says holds for this one call at this moment.
#[async_trait]
pub trait PermissionChecker: Send + Sync {
    /// The verdict on a call.
    ///
    /// # Errors
    /// [`NoVerdict`]: the call must be asked for.
    async fn check(&self, call: &Call) -> Result<Verdict, NoVerdict>;

    /// The same rules for what the running call comes upon below the paths of its plan.
    fn read_guard(&self, call: &Call) -> Arc<dyn ReadGuard>;
}

/// The checker that goes by the rules.
#[derive(Clone, Debug)]
pub struct RuleChecker {
    rules: Arc<Rules>,
}

impl RuleChecker {
    /// A checker with the built-in rules for these folders.
    ///
    /// # Errors
    /// [`PatternError`]: a rule cannot be read.
    pub fn new(options: &built_in::Options) -> Result<Self, PatternError> {
        let rules = Rules::new(vec![built_in::layer(options)?]);
        Ok(Self { rules: Arc::new(rules) })
    }
}

#[async_trait]
impl PermissionChecker for RuleChecker {
    async fn check(&self, call: &Call) -> Result<Verdict, NoVerdict> {
        let Call { tool_id, plan, own_turns } = call;
        Ok(self.rules.judge(&Question { tool_id, plan, own_turns }))
    }

    fn read_guard(&self, call: &Call) -> Arc<dyn ReadGuard> {
        Arc::new(RuleGuard {
            rules: Arc::clone(&self.rules),
            tool_id: call.tool_id.clone(),
            folder: call.plan.folder.clone(),
            own_turns: Arc::clone(&call.own_turns),
        })
    }
}

struct RuleGuard {
    rules: Arc<Rules>,
    tool_id: String,
    folder: String,
    own_turns: Arc<HashSet<TurnId>>,
}

impl ReadGuard for RuleGuard {
    fn ruling(&self, path: &LocatedPath) -> Ruling {
        let place = Place { folder: &self.folder, own_turns: &self.own_turns };
        self.rules.judge_read(&self.tool_id, path, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn checker() -> RuleChecker {
        let options = built_in::Options {
            work_dir: PathBuf::from("/home/ada/.local/share/turnstile"),
            configuration: vec![PathBuf::from("/home/ada/.config/turnstile")],
            home: Some(PathBuf::from("/home/ada")),
        };
        RuleChecker::new(&options).unwrap()
    }

    fn located(folder: &str, path: &str) -> LocatedPath {
        let resolved =
            if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
        let inside = PathBuf::from(&resolved).starts_with(folder);
        LocatedPath { path: path.to_owned(), resolved, inside }
    }

    fn call(tool_id: &str, plan: LocatedPlan) -> Call {
        let own_turns = Arc::new(HashSet::from([TurnId::from("own")]));
        Call { tool_id: tool_id.to_owned(), plan, own_turns }
    }

    /// What becomes of reading and of writing a path, in a session whose folder is `/home/ada/p`.
    async fn check_path(path: &str, read: Ruling, write: Ruling) {
        let folder = "/home/ada/p";
        let plan = || LocatedPlan { folder: folder.to_owned(), ..LocatedPlan::default() };
        let reads = LocatedPlan { reads: vec![located(folder, path)], ..plan() };
        let writes = LocatedPlan { writes: vec![located(folder, path)], ..plan() };
        let mut found = Vec::new();
        for call in [call("read_file", reads), call("write_file", writes)] {
            found.push(match checker().check(&call).await.unwrap() {
                Verdict::Allow { .. } => Ruling::Allow,
                Verdict::Ask { .. } => Ruling::Ask,
                Verdict::Deny { .. } => Ruling::Deny,
            });
        }
        assert_eq!(found, [read, write], "{path}");
    }

    #[tokio::test]
    async fn reading_inside_is_allowed_and_the_rest_asks() {
        use Ruling::{Allow, Ask};
        check_path("src/main.rs", Allow, Ask).await;
        check_path(".", Allow, Ask).await;
        check_path("/home/ada/other/a", Ask, Ask).await;
        check_path("/etc/passwd", Ask, Ask).await;
        check_path("a/.env", Ask, Ask).await;
        check_path(".env.local", Ask, Ask).await;
        check_path(".envrc", Allow, Ask).await;
    }

    #[tokio::test]
    async fn git_this_programs_folders_and_credentials_are_closed() {
        use Ruling::{Ask, Deny};
        check_path(".git/config", Deny, Deny).await;
        check_path("vendor/lib/.git/hooks/pre-commit", Deny, Deny).await;
        check_path("/home/ada/other/.git", Deny, Deny).await;
        check_path("/home/ada/.local/share/turnstile/storage/turns", Deny, Deny).await;
        check_path("/home/ada/.config/turnstile/config.toml", Deny, Deny).await;
        check_path("/home/ada/.ssh/id_ed25519", Deny, Ask).await;
        check_path("/home/ada/.aws/credentials", Deny, Ask).await;
        check_path("/home/ada/.aws/config", Ask, Ask).await;
    }

    #[tokio::test]
    async fn the_sessions_own_long_output_may_be_read() {
        let output = |turn: &str| format!("/home/ada/.local/share/turnstile/var/output/{turn}/c");
        check_path(&output("own"), Ruling::Allow, Ruling::Deny).await;
        check_path(&output("other"), Ruling::Deny, Ruling::Deny).await;
    }

    #[tokio::test]
    async fn commands_ask_and_questions_do_not() {
        let folder = || "/home/ada/p".to_owned();
        let commands = vec!["ls".to_owned()];
        let plan = LocatedPlan { folder: folder(), commands, ..LocatedPlan::default() };
        let verdict = checker().check(&call("shell", plan)).await.unwrap();
        assert_eq!(verdict, Verdict::Ask { rule: "ask run [default]".to_owned() });
        let plan = LocatedPlan { folder: folder(), ..LocatedPlan::default() };
        let verdict = checker().check(&call("ask_human", plan)).await.unwrap();
        assert_eq!(verdict, Verdict::Allow { rule: "allow ask_human [built-in]".to_owned() });
    }

    #[test]
    fn what_a_walk_comes_upon_is_judged_by_the_same_rules() {
        let home = "/home/ada";
        let plan = LocatedPlan {
            folder: home.to_owned(),
            reads: vec![located(home, ".")],
            ..LocatedPlan::default()
        };
        let guard = checker().read_guard(&call("search", plan));
        for (path, expected) in [
            ("p/src/main.rs", Ruling::Allow),
            ("p/.env", Ruling::Ask),
            (".ssh/config", Ruling::Deny),
            (".config/turnstile", Ruling::Deny),
            ("p/.git/HEAD", Ruling::Deny),
        ] {
            assert_eq!(guard.ruling(&located(home, path)), expected, "{path}");
        }
    }
}
