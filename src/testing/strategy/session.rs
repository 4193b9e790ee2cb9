//! Writes a session log from choices.

use crate::base::id::{SessionId, TurnId};
use crate::domain::session::event::{
    Archived, Compacted, GrantAdded, GrantRemoved, Origin, SchemaUpgraded, SessionCreated,
    SessionEvent, SessionFact, TitleChanged, TurnAppended,
};
use crate::testing::fact::model;
use crate::testing::log::{Log, PREVIOUS_TURN};

use super::{Choices, content};

pub(super) fn write(choices: &[u32]) -> Vec<SessionEvent> {
    let mut choices = Choices::new(choices);
    let header = header(&mut choices);
    let version = header.schema_version;
    let log = Log::session(header);
    let mut writer =
        Writer { choices, log, version, turns: Vec::new(), grants: Vec::new(), made: 0 };
    while !writer.choices.are_spent() {
        writer.step();
    }
    writer.log.into_events()
}

fn header(choices: &mut Choices<'_>) -> SessionCreated {
    let count = |choices: &mut Choices<'_>| choices.below(4) as u64;
    SessionCreated {
        schema_version: 1 + u64::from(choices.one_in(4)),
        title: choices.maybe(content::text),
        cwd: choices.maybe(|_| "/p".to_owned()),
        parent_session: choices.maybe(|_| SessionId::from("2026-03-01T00-00-00Z-0000042-000")),
        seed_length: choices.maybe(count),
        origin: choices.maybe(|choices| choices.of(&[Origin::Subagent, Origin::Job])),
        delegation_depth: choices.maybe(count),
    }
}

struct Writer<'a> {
    choices: Choices<'a>,
    log: Log<SessionFact>,
    version: u64,
    turns: Vec<TurnId>,
    grants: Vec<String>,
    /// How many grants and compactions were ever made, for fresh ids.
    made: usize,
}

impl Writer<'_> {
    fn step(&mut self) {
        let kinds = if self.version == 1 { 5 } else { 8 };
        let fact = match self.choices.below(kinds) {
            0..=2 => self.turn(),
            3 => {
                SessionFact::TitleChanged(TitleChanged { title: content::text(&mut self.choices) })
            }
            4 if self.version == 1 => {
                self.version = 2;
                SessionFact::SchemaUpgraded(SchemaUpgraded { schema_version: 2 })
            }
            4 => SessionFact::Archived(Archived { archived: self.choices.one_in(2) }),
            5 => self.grant(),
            6 if !self.grants.is_empty() => {
                let at = self.choices.below(self.grants.len());
                let grant_id = self.grants.remove(at);
                SessionFact::GrantRemoved(GrantRemoved { grant_id })
            }
            _ if !self.turns.is_empty() => self.compaction(),
            _ => self.turn(),
        };
        self.log.push(fact);
    }

    fn turn(&mut self) -> SessionFact {
        let turn_id = TurnId::from(format!("{PREVIOUS_TURN}{}", self.turns.len()));
        self.turns.push(turn_id.clone());
        SessionFact::TurnAppended(TurnAppended {
            turn_id,
            session_seq: self.turns.len() as u64,
            agent_id: content::text(&mut self.choices),
            model: model(),
        })
    }

    fn grant(&mut self) -> SessionFact {
        self.made += 1;
        let grant_id = format!("g{}", self.made);
        self.grants.push(grant_id.clone());
        let (tool_id, pattern) = ("shell".to_owned(), self.choices.maybe(content::text));
        SessionFact::GrantAdded(GrantAdded { grant_id, tool_id, pattern })
    }

    fn compaction(&mut self) -> SessionFact {
        self.made += 1;
        SessionFact::Compacted(Compacted {
            compaction_id: format!("k{}", self.made),
            summary: content::text(&mut self.choices),
            first_kept_turn_id: self.choices.of(&self.turns),
        })
    }
}
