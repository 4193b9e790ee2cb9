//! The rule engine: from all rules that match to one verdict. Deny beats ask beats allow, whatever
//! their layer; what no rule speaks of asks (`design/tools.md`, rules).

use std::collections::HashSet;
use std::fmt;

use crate::base::id::TurnId;
use crate::domain::permission::pattern::Place;
use crate::domain::permission::plan::{LocatedPath, LocatedPlan};
use crate::domain::permission::rule::{Rule, Ruling, Touch};

/// The rules of one origin.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Where they come from, as a person is told: a file, a session, a mode.
    pub name: String,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// A call whose permission is in question.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The tool.
    pub tool_id: &'a str,
    /// What the call would touch.
    pub plan: &'a LocatedPlan,
    /// The turns of this session, whose long output may be read again.
    pub own_turns: &'a HashSet<TurnId>,
}

/// The answer, with the rule that gave it as a person reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow {
        /// The rule.
        rule: String,
    },
    /// Somebody must be asked.
    Ask {
        /// The rule, or which default asks.
        rule: String,
    },
    /// It may not run.
    Deny {
        /// The rule.
        rule: String,
        /// What is denied, for the model.
        reason: String,
    },
}

/// The rules that judge calls.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    layers: Vec<Layer>,
}

impl Rules {
    /// These rules, layer by layer.
    #[must_use]
    pub fn new(layers: Vec<Layer>) -> Self {
        Self { layers }
    }

    /// Judges a call: by the strictest that is said of anything it would touch.
    #[must_use]
    pub fn judge(&self, question: &Question<'_>) -> Verdict {
        let place = Place { folder: &question.plan.folder, own_turns: question.own_turns };
        let opinion = |touch| self.opinion(question.tool_id, touch, place);
        let strictest = Touch::all(question.plan)
            .map(opinion)
            .reduce(|first, next| if next.ruling > first.ruling { next } else { first })
            .unwrap_or_else(|| opinion(Touch::Nothing));
        let Opinion { ruling, rule, of } = strictest;
        match ruling {
            Ruling::Allow => Verdict::Allow { rule },
            Ruling::Ask => Verdict::Ask { rule },
            Ruling::Deny => {
                let reason = format!("not allowed to {of}: the rule `{rule}` denies it");
                Verdict::Deny { rule, reason }
            }
        }
    }

    /// Judges one path that a running call came upon.
    #[must_use]
    pub fn judge_read(&self, tool_id: &str, path: &LocatedPath, place: Place<'_>) -> Ruling {
        self.opinion(tool_id, Touch::Read(path), place).ruling
    }

    fn opinion<'a>(&self, tool_id: &str, touch: Touch<'a>, place: Place<'_>) -> Opinion<'a> {
        let rules = self.layers.iter().flat_map(|layer| {
            layer.rules.iter().map(move |rule| Layered { rule, layer: &layer.name })
        });
        let matching = rules.filter(|it| it.rule.matches(tool_id, touch, place));
        match matching.max_by_key(|it| it.rule.ruling) {
            Some(it) => Opinion { ruling: it.rule.ruling, rule: it.to_string(), of: touch },
            None => Opinion { ruling: Ruling::Ask, rule: without_rule(tool_id, touch), of: touch },
        }
    }
}

/// What is said of one thing that a call would do.
struct Opinion<'a> {
    ruling: Ruling,
    rule: String,
    of: Touch<'a>,
}

struct Layered<'a> {
    rule: &'a Rule,
    layer: &'a str,
}

impl fmt::Display for Layered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.rule, self.layer)
    }
}

/// Why a call asks that no rule speaks of.
fn without_rule(tool_id: &str, touch: Touch<'_>) -> String {
    let what = match touch {
        Touch::Read(path) if !path.inside => "read outside the session's folder",
        Touch::Write(path) if !path.inside => "write outside the session's folder",
        Touch::Read(_) => "read",
        Touch::Write(_) => "write",
        Touch::Run(_) => "run",
        Touch::Reach(_) => "reach",
        Touch::Nothing => tool_id,
    };
    format!("ask {what} [default]")
}

/// Judges paths that no plan can name before: what lies below a folder that is walked through. A
/// tool that was allowed by rule takes only what is allowed; one that a person approved leaves out
/// only what is denied.
pub trait ReadGuard: Send + Sync {
    /// What the rules say of reading `path`.
    fn ruling(&self, path: &LocatedPath) -> Ruling;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::permission::pattern::{PathGlob, Pattern};
    use crate::domain::permission::rule::Head;

    fn rule(ruling: Ruling, head: Head, glob: Option<&str>) -> Rule {
        let pattern = glob.map(|glob| Pattern::Glob(Box::new(PathGlob::new(glob, None).unwrap())));
        Rule { ruling, head, pattern }
    }

    fn rules() -> Rules {
        let near = vec![
            rule(Ruling::Allow, Head::Edit, Some("src/**")),
            rule(Ruling::Allow, Head::Run, None),
            rule(Ruling::Allow, Head::Tool("todo".to_owned()), None),
        ];
        let far = vec![
            rule(Ruling::Allow, Head::Read, Some("**")),
            rule(Ruling::Ask, Head::Write, Some("src/main.rs")),
            rule(Ruling::Deny, Head::Read, Some("**/.env*")),
            rule(Ruling::Deny, Head::Tool("fetch".to_owned()), None),
        ];
        let layer = |name: &str, rules| Layer { name: name.to_owned(), rules };
        Rules::new(vec![layer("far", far), layer("near", near)])
    }

    fn path(path: &str) -> LocatedPath {
        let (resolved, inside) = match path.strip_prefix('/') {
            Some(_) => (path.to_owned(), false),
            None => (format!("/p/{path}"), true),
        };
        LocatedPath { path: path.to_owned(), resolved, inside }
    }

    fn check(tool_id: &str, touches: &[(&str, &str)], expected: &str) {
        let of = |verb: &'static str| {
            touches.iter().filter(move |touch| touch.0 == verb).map(|touch| touch.1)
        };
        let plan = LocatedPlan {
            folder: "/p".to_owned(),
            reads: of("read").map(path).collect(),
            writes: of("write").map(path).collect(),
            commands: of("run").map(str::to_owned).collect(),
            hosts: of("reach").map(str::to_owned).collect(),
        };
        let question = Question { tool_id, plan: &plan, own_turns: &HashSet::new() };
        let verdict = match rules().judge(&question) {
            Verdict::Allow { rule } | Verdict::Ask { rule } => rule,
            Verdict::Deny { reason, .. } => reason,
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn deny_beats_ask_beats_allow_whatever_their_layer() {
        check("read_file", &[("read", "a.rs")], "allow read(**) [far]");
        check("edit_file", &[("write", "src/a.rs")], "allow edit(src/**) [near]");
        check("edit_file", &[("write", "src/main.rs")], "ask write(src/main.rs) [far]");
        check(
            "read_file",
            &[("read", "a/.env.local")],
            "not allowed to read a/.env.local: the rule `deny read(**/.env*) [far]` denies it",
        );
        check(
            "fetch",
            &[("reach", "example.org")],
            "not allowed to reach example.org: the rule `deny fetch [far]` denies it",
        );
    }

    #[test]
    fn a_call_is_judged_by_the_strictest_of_all_that_it_touches() {
        let both = [("read", "src/a.rs"), ("write", "src/a.rs")];
        check("edit_file", &both, "allow read(**) [far]");
        let one_asks = [("run", "ls"), ("write", "docs/a.md"), ("read", "src/a.rs")];
        check("any", &one_asks, "ask write [default]");
        let one_denied = [("write", "docs/a.md"), ("read", ".env"), ("run", "ls")];
        check(
            "any",
            &one_denied,
            "not allowed to read .env: the rule `deny read(**/.env*) [far]` denies it",
        );
    }

    #[test]
    fn what_no_rule_speaks_of_asks() {
        check("todo", &[], "allow todo [near]");
        check("other", &[], "ask other [default]");
        check(
            "read_file",
            &[("read", "/etc/a")],
            "ask read outside the session's folder [default]",
        );
        check("write_file", &[("write", "/a")], "ask write outside the session's folder [default]");
        check("any", &[("reach", "example.org")], "ask reach [default]");
    }
}
