//! Permission rules: what may be done, what must be asked for, what is forbidden
//! (`design/tools.md`, rules).

use std::fmt;

use crate::domain::permission::pattern::{Breadth, Pattern, Place};
use crate::domain::permission::plan::{LocatedPath, LocatedPlan};

/// What a rule says of a call. The stricter is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ruling {
    /// It may run.
    Allow,
    /// Somebody must be asked.
    Ask,
    /// It may not run.
    Deny,
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// What a rule is about: one tool, or what a call of any tool would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// Every call of the tool with this id.
    Tool(String),
    /// Reading a path.
    Read,
    /// Making, changing or removing a file.
    Write,
    /// The same as [`Head::Write`]: the word that people use for it.
    Edit,
    /// Running a command.
    Run,
    /// Reaching a host.
    Reach,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool(tool_id) => tool_id,
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Run => "run",
            Self::Reach => "reach",
        })
    }
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What it says.
    pub ruling: Ruling,
    /// What it is about.
    pub head: Head,
    /// Which paths of it; everything without one.
    pub pattern: Option<Pattern>,
}

impl Rule {
    /// Whether the rule says something about this one thing that a call of `tool_id` would do.
    #[must_use]
    pub fn matches(&self, tool_id: &str, touch: Touch<'_>, place: Place<'_>) -> bool {
        let about = match (&self.head, touch) {
            (Head::Tool(tool), _) => tool == tool_id,
            (Head::Read, Touch::Read(_))
            | (Head::Write | Head::Edit, Touch::Write(_))
            | (Head::Run, Touch::Run(_))
            | (Head::Reach, Touch::Reach(_)) => true,
            (Head::Read | Head::Write | Head::Edit | Head::Run | Head::Reach, _) => false,
        };
        let breadth = match self.ruling {
            Ruling::Allow => Breadth::Exact,
            Ruling::Ask | Ruling::Deny => Breadth::Wide,
        };
        about
            && match (&self.pattern, touch) {
                (None, _) => true,
                (Some(pattern), Touch::Read(path) | Touch::Write(path)) => {
                    pattern.matches(path, place, breadth)
                }
                (Some(_), Touch::Run(_) | Touch::Reach(_) | Touch::Nothing) => false,
            }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ruling, self.head)?;
        match &self.pattern {
            Some(pattern) => write!(f, "({pattern})"),
            None => Ok(()),
        }
    }
}

/// One thing that a call would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch<'a> {
    /// It reads this path.
    Read(&'a LocatedPath),
    /// It makes, changes or removes this file.
    Write(&'a LocatedPath),
    /// It runs this command line.
    Run(&'a str),
    /// It reaches this host.
    Reach(&'a str),
    /// It does nothing that could be named.
    Nothing,
}

impl<'a> Touch<'a> {
    /// Everything that a plan names.
    pub fn all(plan: &'a LocatedPlan) -> impl Iterator<Item = Self> {
        let reads = plan.reads.iter().map(Touch::Read);
        let writes = plan.writes.iter().map(Touch::Write);
        let commands = plan.commands.iter().map(|command| Touch::Run(command));
        let hosts = plan.hosts.iter().map(|host| Touch::Reach(host));
        reads.chain(writes).chain(commands).chain(hosts)
    }
}

impl fmt::Display for Touch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read {}", path.path),
            Self::Write(path) => write!(f, "write {}", path.path),
            Self::Run(command) => write!(f, "run {command}"),
            Self::Reach(host) => write!(f, "reach {host}"),
            Self::Nothing => f.write_str("run it"),
        }
    }
}
