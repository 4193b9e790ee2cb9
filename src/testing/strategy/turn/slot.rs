//! A tool call of a random history: what may happen to it next, and what it then becomes.

use crate::base::id::ToolCallId;
use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::turn::event::{
    Classification, Decision, DecisionSource, InvocationRequested, PermissionClassified,
    PermissionRequired, PermissionResolved, ResultSource, ToolProgress, ToolResult, ToolResultData,
    TurnFact,
};

use super::Move;
use crate::testing::strategy::{Choices, content};

/// A tool call of the last answer.
pub(super) struct Slot {
    pub(super) id: ToolCallId,
    pub(super) name: String,
    /// What the name stands for; none for a name that the model made up.
    pub(super) tool: Option<ToolDescriptor>,
    pub(super) resolved: bool,
    permission: Permission,
    invoked: bool,
}

/// How far the question whether a call may run has come.
enum Permission {
    NotAsked,
    Asked { classified: bool },
    Decided(Decision),
}

impl Slot {
    pub(super) fn new(id: ToolCallId, name: String, tool: Option<ToolDescriptor>) -> Self {
        Self { id, name, tool, resolved: false, permission: Permission::NotAsked, invoked: false }
    }

    pub(super) fn awaits_permission(&self) -> bool {
        matches!(self.permission, Permission::Asked { .. }) && !self.resolved
    }

    pub(super) fn awaits_answer(&self) -> bool {
        self.invoked && !self.resolved && self.execution() == Some(Execution::Async)
    }

    fn may_run(&self) -> bool {
        let allowed = match self.permission {
            Permission::NotAsked | Permission::Decided(Decision::Allow) => true,
            Permission::Asked { .. } | Permission::Decided(Decision::Deny) => false,
        };
        allowed && self.tool.is_some() && !self.invoked
    }

    fn execution(&self) -> Option<Execution> {
        self.tool.as_ref().map(|tool| tool.execution)
    }

    /// Adds what may happen to the unresolved call at place `at`.
    pub(super) fn moves(&self, at: usize, moves: &mut Vec<Move>) {
        moves.push(Move::GiveUp(at));
        match self.permission {
            Permission::NotAsked if !self.invoked => moves.push(Move::Ask(at)),
            Permission::Asked { classified: false } => {
                moves.extend([Move::Classify(at), Move::Decide(at), Move::Decide(at)]);
            }
            Permission::Asked { classified: true } => moves.extend([Move::Decide(at); 2]),
            Permission::NotAsked | Permission::Decided(_) => {}
        }
        if self.may_run() {
            moves.extend([Move::Invoke(at); 3]);
        }
        if self.invoked {
            moves.extend([Move::Report(at), Move::Finish(at), Move::Finish(at)]);
        }
    }

    pub(super) fn ask(&mut self, choices: &mut Choices<'_>) -> TurnFact {
        self.permission = Permission::Asked { classified: false };
        TurnFact::PermissionRequired(PermissionRequired {
            tool_call_id: self.id.clone(),
            tool_name: self.name.clone(),
            request: content::any_json(choices),
            checker_error: choices.maybe(content::text),
        })
    }

    pub(super) fn classify(&mut self, choices: &mut Choices<'_>) -> TurnFact {
        self.permission = Permission::Asked { classified: true };
        let decisions = [Classification::Allow, Classification::Deny, Classification::Defer];
        TurnFact::PermissionClassified(PermissionClassified {
            tool_call_id: self.id.clone(),
            decision: choices.of(&decisions),
            reason: content::text(choices),
        })
    }

    pub(super) fn decide(&mut self, choices: &mut Choices<'_>) -> TurnFact {
        let decision = choices.of(&[Decision::Allow, Decision::Allow, Decision::Deny]);
        self.permission = Permission::Decided(decision);
        let sources =
            [DecisionSource::Human, DecisionSource::Classifier, DecisionSource::HumanUnavailable];
        TurnFact::PermissionResolved(PermissionResolved {
            tool_call_id: self.id.clone(),
            decision,
            source: choices.of(&sources),
            reason: choices.maybe(content::text),
            metadata: choices.maybe(content::any_json),
        })
    }

    pub(super) fn invoke(&mut self, choices: &mut Choices<'_>) -> TurnFact {
        self.invoked = true;
        let tool = self.tool.as_ref().expect("only what is known may run");
        TurnFact::InvocationRequested(InvocationRequested {
            tool_call_id: self.id.clone(),
            tool_id: tool.tool_id.clone(),
            tool_name: self.name.clone(),
            execution: tool.execution,
            input: content::any_json(choices),
        })
    }

    pub(super) fn report(&mut self, choices: &mut Choices<'_>) -> TurnFact {
        let source = self.execution().expect("only what is known runs");
        let (tool_call_id, progress) = (self.id.clone(), content::any_json(choices));
        TurnFact::ToolProgress(ToolProgress { tool_call_id, source, progress })
    }

    pub(super) fn finish(&mut self, choices: &mut Choices<'_>) -> TurnFact {
        let source = match self.execution().expect("only what is known runs") {
            Execution::Sync => ResultSource::Sync,
            Execution::Async => ResultSource::Async,
        };
        let is_error = choices.one_in(4);
        self.resolve(choices, source, is_error)
    }

    pub(super) fn give_up(&mut self, choices: &mut Choices<'_>) -> TurnFact {
        self.resolve(choices, ResultSource::Runtime, true)
    }

    fn resolve(
        &mut self,
        choices: &mut Choices<'_>,
        source: ResultSource,
        is_error: bool,
    ) -> TurnFact {
        self.resolved = true;
        let output = content::any_json(choices);
        let result = ToolResultData { output, is_error, metadata: choices.maybe(content::object) };
        TurnFact::ToolResult(ToolResult {
            tool_call_id: self.id.clone(),
            tool_name: self.name.clone(),
            source,
            result,
        })
    }
}
