//! Writes a turn log from choices. What is legal is worked out here from the rules of
//! `design/turn-runtime.md` section 5, not asked of the reducer, which is what it tests.

mod begin;
mod slot;

use std::sync::Arc;

use crate::base::id::{ToolCallId, TurnId};
use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::message::AssistantMessage;
use crate::domain::turn::event::{
    ClassificationFailed, InputAdded, MODEL_CALL_LIMIT, ModelCallCompleted, ModelCallFailed,
    ModelCallRequested, ModelRequest, ModelStep, PendingAsyncTool, PendingPermission,
    ToolsExtended, TurnCancelled, TurnCompleted, TurnContext, TurnCreated, TurnEvent, TurnFact,
    TurnFailed, TurnSuspended,
};
use crate::domain::turn::reference::MessageRef;
use crate::domain::turn::status::INTERRUPTED;
use crate::domain::turn::step::{FinishStep, StepEvent};
use crate::testing::fact::{tool, tools};
use crate::testing::log::{Log, TURN};

use self::slot::Slot;
use super::{Choices, content};

pub(super) fn write(choices: &[u32]) -> Vec<TurnEvent> {
    let mut choices = Choices::new(choices);
    let created = begin::created(&mut choices);
    let mut writer = Writer::new(choices, &created);
    while !writer.choices.are_spent() && !writer.ended {
        let moves = writer.moves();
        let chosen = writer.choices.of(&moves);
        let fact = writer.make(chosen);
        writer.log.push(fact);
    }
    writer.log.into_events()
}

/// Something that may happen next; the number is the place of a call in the batch.
#[derive(Clone, Copy)]
enum Move {
    Request,
    Add,
    End,
    Extend,
    Step,
    Answer,
    Call,
    Fail,
    Ask(usize),
    Classify(usize),
    Decide(usize),
    Invoke(usize),
    Report(usize),
    Finish(usize),
    GiveUp(usize),
    LeaveUnclassified,
    Suspend,
}

struct Writer<'a> {
    choices: Choices<'a>,
    log: Log<TurnFact>,
    context: TurnContext,
    /// The tools that a name can stand for.
    known: Vec<ToolDescriptor>,
    extensions: usize,
    calls: u64,
    call_is_open: bool,
    calls_left: u64,
    calls_max: u64,
    /// What the next request has to refer to.
    due: Vec<MessageRef>,
    batch: Vec<Slot>,
    ids: usize,
    succeeded: Vec<ToolCallId>,
    inputs: u64,
    /// The last answer, if the last call had one and it called nothing.
    last_word: Option<ModelCallCompleted>,
    ended: bool,
}

impl<'a> Writer<'a> {
    fn new(choices: Choices<'a>, created: &TurnCreated) -> Self {
        let mut due = Vec::new();
        if matches!(&created.context, TurnContext::Inline(messages) if !messages.is_empty()) {
            due.push(MessageRef::Context);
        }
        due.push(MessageRef::Input);
        Self {
            choices,
            log: Log::turn(TurnFact::Created(Arc::new(created.clone()))),
            context: created.context.clone(),
            known: tools(),
            extensions: 0,
            calls: 0,
            call_is_open: false,
            calls_left: created.config.max_model_calls,
            calls_max: created.config.max_model_calls,
            due,
            batch: Vec::new(),
            ids: 0,
            succeeded: Vec::new(),
            inputs: 0,
            last_word: None,
            ended: false,
        }
    }

    /// What may happen next; what should happen more often stands more than once.
    fn moves(&self) -> Vec<Move> {
        if self.call_is_open {
            use Move::{Answer, Call, Fail, Step};
            return vec![Step, Step, Answer, Call, Call, Call, Fail];
        }
        let mut moves = Vec::new();
        for (at, slot) in self.batch.iter().enumerate().filter(|(_, slot)| !slot.resolved) {
            slot.moves(at, &mut moves);
        }
        if self.batch.iter().any(Slot::awaits_permission) {
            moves.push(Move::LeaveUnclassified);
        }
        if self.batch.iter().any(|slot| slot.awaits_permission() || slot.awaits_answer()) {
            moves.push(Move::Suspend);
        }
        if !self.succeeded.is_empty() {
            moves.push(Move::Extend);
        }
        if self.batch.iter().all(|slot| slot.resolved) {
            moves.extend([Move::End, Move::Add]);
            if self.calls_left > 0 {
                moves.extend([Move::Request; 9]);
            }
        }
        moves
    }

    fn make(&mut self, chosen: Move) -> TurnFact {
        match chosen {
            Move::Request => self.request(),
            Move::Add => self.add(),
            Move::End => self.end(),
            Move::Extend => self.extend(),
            Move::Step => self.step(),
            Move::Answer => self.answer(),
            Move::Call => self.call(),
            Move::Fail => self.fail(),
            Move::LeaveUnclassified => self.leave_unclassified(),
            Move::Suspend => self.suspend(),
            Move::Ask(at) => self.on_slot(at, Slot::ask),
            Move::Classify(at) => self.on_slot(at, Slot::classify),
            Move::Decide(at) => self.on_slot(at, Slot::decide),
            Move::Invoke(at) => self.on_slot(at, Slot::invoke),
            Move::Report(at) => self.on_slot(at, Slot::report),
            Move::Finish(at) => self.finish(at),
            Move::GiveUp(at) => self.on_slot(at, Slot::give_up),
        }
    }

    fn on_slot(
        &mut self,
        at: usize,
        make: fn(&mut Slot, &mut Choices<'_>) -> TurnFact,
    ) -> TurnFact {
        let slot = self.batch.get_mut(at).expect("a call of the batch");
        make(slot, &mut self.choices)
    }

    fn request(&mut self) -> TurnFact {
        let context_ref = match &self.context {
            TurnContext::Previous(reference) if self.calls == 0 => Some(reference.clone()),
            TurnContext::Previous(_) | TurnContext::Inline(_) => None,
        };
        let model_call_index = self.calls;
        self.calls += 1;
        self.calls_left -= 1;
        self.call_is_open = true;
        self.last_word = None;
        self.batch.clear();
        TurnFact::ModelCallRequested(ModelCallRequested {
            model_call_index,
            request: ModelRequest {
                context_ref,
                messages: std::mem::take(&mut self.due),
                parameters: content::object(&mut self.choices),
            },
        })
    }

    fn add(&mut self) -> TurnFact {
        self.inputs += 1;
        self.calls_left = self.calls_max;
        self.due.push(MessageRef::Added(self.inputs));
        let message = content::user(&mut self.choices);
        TurnFact::InputAdded(InputAdded { input_index: self.inputs, message })
    }

    fn step(&mut self) -> TurnFact {
        let choices = &mut self.choices;
        let event = match choices.below(7) {
            0 => StepEvent::TextStart,
            1 => StepEvent::TextEnd { text: content::text(choices).into() },
            2 => StepEvent::ReasoningStart,
            3 => StepEvent::ReasoningEnd { text: content::text(choices).into() },
            4 => StepEvent::ToolCall {
                tool_call: content::call(choices, ToolCallId::from("step"), "read-file"),
            },
            5 => StepEvent::FinishStep(FinishStep {
                finish_reason: "stop".into(),
                usage: choices.maybe(content::usage),
                provider_metadata: choices.maybe(content::any_json),
            }),
            _ => StepEvent::ProviderError { error: content::text(choices) },
        };
        TurnFact::ModelStep(ModelStep { model_call_index: self.calls - 1, event })
    }

    fn answer(&mut self) -> TurnFact {
        let message = content::answer(&mut self.choices);
        let reason = self.choices.of(&["stop", "length", "content-filter"]);
        let completed = self.settled_with(message, reason);
        self.last_word = Some(completed.clone());
        TurnFact::ModelCallCompleted(completed)
    }

    fn call(&mut self) -> TurnFact {
        for _ in 0..=self.choices.below(3) {
            self.ids += 1;
            let id = ToolCallId::of_turn(&TurnId::from(TURN), self.ids);
            let known = !self.choices.one_in(5);
            let tool = known.then(|| self.choices.of(&self.known));
            let name = tool.as_ref().map_or("made-up", |tool| &tool.name).to_owned();
            self.batch.push(Slot::new(id, name, tool));
        }
        let named: Vec<_> =
            self.batch.iter().map(|slot| (slot.id.clone(), slot.name.clone())).collect();
        let message = content::calling(&mut self.choices, &named);
        let completed = self.settled_with(message, "tool-calls");
        self.due.extend(named.into_iter().map(|(id, _)| MessageRef::ToolResult(id)));
        TurnFact::ModelCallCompleted(completed)
    }

    fn settled_with(
        &mut self,
        message: AssistantMessage,
        finish_reason: &str,
    ) -> ModelCallCompleted {
        self.call_is_open = false;
        let model_call_index = self.calls - 1;
        self.due.push(MessageRef::Assistant(model_call_index));
        ModelCallCompleted {
            model_call_index,
            message: Arc::new(message),
            finish_reason: finish_reason.to_owned(),
            usage: content::usage(&mut self.choices),
            provider_metadata: self.choices.maybe(content::any_json),
        }
    }

    fn fail(&mut self) -> TurnFact {
        self.call_is_open = false;
        let error = self.choices.of(&["429 too many requests", INTERRUPTED]).to_owned();
        TurnFact::ModelCallFailed(ModelCallFailed { model_call_index: self.calls - 1, error })
    }

    fn finish(&mut self, at: usize) -> TurnFact {
        let fact = self.on_slot(at, Slot::finish);
        if let TurnFact::ToolResult(result) = &fact
            && !result.result.is_error
        {
            self.succeeded.push(result.tool_call_id.clone());
        }
        fact
    }

    fn extend(&mut self) -> TurnFact {
        self.extensions += 1;
        let execution = self.choices.of(&[Execution::Sync, Execution::Async]);
        let added = tool(&format!("extra-{}", self.extensions), execution);
        self.known.push(added.clone());
        TurnFact::ToolsExtended(ToolsExtended {
            tool_call_id: self.choices.of(&self.succeeded),
            source: content::text(&mut self.choices),
            tools: vec![added],
        })
    }

    fn leave_unclassified(&mut self) -> TurnFact {
        let asked = self.batch.iter().filter(|slot| slot.awaits_permission());
        TurnFact::ClassificationFailed(ClassificationFailed {
            tool_call_ids: asked.map(|slot| slot.id.clone()).collect(),
            error: content::text(&mut self.choices),
        })
    }

    fn suspend(&mut self) -> TurnFact {
        let asked = self.batch.iter().filter(|slot| slot.awaits_permission());
        let mut pending_permissions: Vec<_> = asked
            .map(|slot| PendingPermission {
                tool_call_id: slot.id.clone(),
                tool_name: slot.name.clone(),
                request: content::object(&mut self.choices),
            })
            .collect();
        let exposed = self.batch.iter().filter(|slot| slot.awaits_answer());
        let pending_async_tools = exposed.map(|slot| PendingAsyncTool {
            tool_call_id: slot.id.clone(),
            tool_id: slot.tool.as_ref().map(|tool| tool.tool_id.clone()).unwrap_or_default(),
            tool_name: slot.name.clone(),
            input: content::any_json(&mut self.choices),
        });
        let pending_async_tools = pending_async_tools.collect();
        if self.choices.one_in(2) {
            pending_permissions.reverse();
        }
        let usage = content::usage(&mut self.choices);
        TurnFact::Suspended(Arc::new(TurnSuspended {
            pending_permissions,
            pending_async_tools,
            usage,
        }))
    }

    fn end(&mut self) -> TurnFact {
        self.ended = true;
        let usage = content::usage(&mut self.choices);
        if let Some(last) = self.last_word.take() {
            let ModelCallCompleted { message, finish_reason, .. } = last;
            return TurnFact::Completed(TurnCompleted { output: message, finish_reason, usage });
        }
        if self.choices.one_in(2) {
            let reason = self.choices.maybe(|_| INTERRUPTED.to_owned());
            return TurnFact::Cancelled(TurnCancelled { reason, usage });
        }
        let spent = self.calls_left == 0;
        let code = spent.then(|| MODEL_CALL_LIMIT.to_owned());
        TurnFact::Failed(TurnFailed { error: content::text(&mut self.choices), code, usage })
    }
}
