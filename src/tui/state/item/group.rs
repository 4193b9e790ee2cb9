//! The items of a turn in groups: its input, one group for each model call, and how it stands. An
//! item is found by its group, so that a turn of many calls costs no more than a short one.

use std::sync::Arc;

use crate::base::id::ToolCallId;
use crate::domain::message::{AssistantMessage, AssistantPart, Content as MessageContent};
use crate::domain::turn::live::{DeltaKind, OpenBlock};
use crate::domain::turn::state::{AddedInput, ModelCall, Settlement, TerminalKind, ToolCall};
use crate::domain::turn::status::TurnStatus;
use crate::domain::turn::step::StepEvent;
use crate::tui::state::activity::Activity;
use crate::tui::state::item::{
    Body, CallBody, Came, EndBody, Growth, Item, ItemId, Part, Standing,
};
use crate::tui::state::turns::{Content, Divider, Live, Loaded, Slot, Streaming};

/// How many groups a turn has.
pub(in crate::tui::state) fn count(slot: &Slot) -> usize {
    match &slot.content {
        Content::Asked | Content::Damaged(_) => 1,
        Content::Loaded(turn) => turn.state.model_calls.len() + 2,
    }
}

/// In which group a part is.
pub(super) fn of(slot: &Slot, part: &Part) -> Option<usize> {
    if let Part::Divider(number) = part {
        let is_before = slot.beside().before.iter().any(|divider| divider.number == *number);
        let is_after = slot.beside().after.iter().any(|divider| divider.number == *number);
        return is_before.then_some(0).or(is_after.then(|| count(slot) - 1));
    }
    let Content::Loaded(turn) = &slot.content else {
        return (*part == Part::Whole).then_some(0);
    };
    let calls = turn.state.model_calls.len();
    let of_call = |call: u64| usize::try_from(call).ok().filter(|call| *call < calls);
    match part {
        Part::Whole | Part::Divider(_) => None,
        Part::Input => Some(0),
        Part::Added(number) => {
            let at = usize::try_from(*number).ok()?.checked_sub(1)?;
            let input = turn.state.inputs.get(at)?;
            Some(of_call(input.first_call).map_or(calls + 1, |call| call + 1))
        }
        Part::Block { call, .. } | Part::Failure(call) => of_call(*call).map(|call| call + 1),
        // A call that is not known yet stands in the answer that streams.
        Part::Call(id) => match turn.state.tool_calls.get(id) {
            Some(call) => of_call(call.model_call_index).map(|call| call + 1),
            None => Some(calls),
        },
        Part::End => Some(calls + 1),
    }
}

/// The items of a group of a turn that runs or not, with the dividers beside the turn.
pub(in crate::tui::state) fn items<'a>(
    slot: &'a Slot,
    activity: &'a Activity,
    number: usize,
) -> Vec<Item<'a>> {
    let mut items = if number == 0 { dividers(slot, &slot.beside().before) } else { Vec::new() };
    match &slot.content {
        Content::Asked => items.push(whole(slot, Body::Loading)),
        Content::Damaged(why) => items.push(whole(slot, Body::Damaged(why))),
        Content::Loaded(turn) => items.extend(of_turn(turn, &slot.live, activity, number)),
    }
    if number + 1 == count(slot) {
        items.extend(dividers(slot, &slot.beside().after));
    }
    items
}

fn dividers<'a>(slot: &Slot, dividers: &'a [Divider]) -> Vec<Item<'a>> {
    let item = |divider: &'a Divider| Item {
        id: ItemId { turn: slot.id.clone(), part: Part::Divider(divider.number) },
        revision: divider.revision,
        body: Body::Divider(&divider.summary),
    };
    dividers.iter().map(item).collect()
}

fn whole<'a>(slot: &Slot, body: Body<'a>) -> Item<'a> {
    let id = ItemId { turn: slot.id.clone(), part: Part::Whole };
    let revision = u64::from(matches!(slot.content, Content::Damaged(_)));
    Item { id, revision, body }
}

fn of_turn<'a>(
    turn: &'a Loaded,
    live: &'a Live,
    activity: &'a Activity,
    number: usize,
) -> Vec<Item<'a>> {
    let calls = turn.state.model_calls.len();
    let Some(call) = number.checked_sub(1) else { return vec![input(turn)] };
    if let Some(model_call) = turn.state.model_calls.get(call) {
        return of_call((turn, live, activity), model_call, call);
    }
    let mut items = added(turn, calls as u64..);
    if call == calls {
        items.push(end(turn, live, activity));
    }
    items
}

fn item<'a>(turn: &Loaded, part: Part, revision: u64, body: Body<'a>) -> Item<'a> {
    Item { id: ItemId { turn: turn.state.id.clone(), part }, revision, body }
}

fn input(turn: &Loaded) -> Item<'_> {
    let (message, at) = (&turn.state.definition.input, turn.state.created_at);
    item(turn, Part::Input, 0, Body::Message { message, at })
}

/// The messages that were added for these model calls.
fn added(turn: &Loaded, calls: impl std::ops::RangeBounds<u64>) -> Vec<Item<'_>> {
    let inputs = turn.state.inputs.iter().zip(1..);
    let here = inputs.filter(|(input, _)| calls.contains(&input.first_call));
    let made = here.map(|(AddedInput { message, at, .. }, number)| {
        item(turn, Part::Added(number), 0, Body::Message { message, at: *at })
    });
    made.collect()
}

fn of_call<'a>(
    (turn, live, activity): (&'a Loaded, &'a Live, &'a Activity),
    model_call: &'a ModelCall,
    call: usize,
) -> Vec<Item<'a>> {
    let index = call as u64;
    let mut items = added(turn, index..=index);
    let mut maker = Maker { turn, live, activity, call: index, block: 0, items: &mut items };
    match &model_call.settlement {
        Some(Settlement::Completed(response)) => maker.answer(&response.message),
        Some(Settlement::Failed { error, .. }) => {
            maker.steps(&model_call.steps, None);
            let came = if maker.has_answered() { Came::APart } else { Came::Nothing };
            if !was_stopped(turn, index) {
                let body = Body::Failure { error, came };
                items.push(item(turn, Part::Failure(index), 0, body));
            }
        }
        None => maker.steps(&model_call.steps, live.streaming.as_ref()),
    }
    items
}

/// Whether a person's stop ended this call; how the turn ended says so already.
fn was_stopped(turn: &Loaded, index: u64) -> bool {
    let is_last = index + 1 == turn.state.next_call_index();
    let ended = turn.state.terminal.as_ref();
    is_last
        && ended.is_some_and(|end| match &end.kind {
            TerminalKind::Cancelled(_) => !end.is_closed_interruption(),
            TerminalKind::Completed(_) | TerminalKind::Failed(_) => false,
        })
}

/// Makes the items of one model call, in order.
struct Maker<'a, 'v> {
    turn: &'a Loaded,
    live: &'a Live,
    activity: &'a Activity,
    call: u64,
    block: usize,
    items: &'v mut Vec<Item<'a>>,
}

impl<'a> Maker<'a, '_> {
    /// Whether something of the answer is on the screen.
    fn has_answered(&self) -> bool {
        let is_of_answer = |item: &Item<'_>| {
            matches!(item.body, Body::Text { .. } | Body::Reasoning { .. } | Body::Call(_))
        };
        self.items.iter().any(is_of_answer)
    }

    fn answer(&mut self, message: &'a Arc<AssistantMessage>) {
        let parts = match &message.content {
            MessageContent::Text(text) => {
                self.block(DeltaKind::Text, text, Growth::Settled);
                return;
            }
            MessageContent::Parts(parts) => parts,
        };
        for part in parts {
            match part {
                AssistantPart::Text(part) => {
                    self.block(DeltaKind::Text, &part.text, Growth::Settled);
                }
                AssistantPart::Reasoning(part) => {
                    self.block(DeltaKind::Reasoning, &part.text, Growth::Settled);
                }
                AssistantPart::ToolCall(part) => {
                    let call = self.turn.state.tool_calls.get(&part.tool_call_id);
                    let body = CallBody {
                        name: &part.tool_name,
                        arguments: &part.arguments,
                        call,
                        tail: self.live.tails.get(&part.tool_call_id),
                    };
                    self.call(&part.tool_call_id, body);
                }
            }
        }
    }

    /// What is in the log already, then what streams beyond it.
    fn steps(&mut self, steps: &'a [StepEvent], streaming: Option<&'a Streaming>) {
        for step in steps {
            match step {
                StepEvent::TextEnd { text } => self.block(DeltaKind::Text, text, Growth::Settled),
                StepEvent::ReasoningEnd { text } => {
                    self.block(DeltaKind::Reasoning, text, Growth::Settled);
                }
                StepEvent::ToolCall { tool_call } => {
                    let (name, arguments) = (&tool_call.tool_name, &tool_call.arguments);
                    let body = CallBody { name, arguments, call: None, tail: None };
                    self.call(&tool_call.tool_call_id, body);
                }
                StepEvent::TextStart
                | StepEvent::ReasoningStart
                | StepEvent::FinishStep(_)
                | StepEvent::ProviderError { .. } => {}
            }
        }
        let Some(streaming) = streaming.filter(|open| open.call.model_call_index == self.call)
        else {
            return;
        };
        // Empty blocks are not counted on either side, see `block`.
        let open = streaming.call.blocks.iter().filter(|block| !block.text.is_empty());
        let growth = match (streaming.growth, self.activity.elsewhere) {
            (Growth::Interrupted, Some(_)) => Growth::Elsewhere,
            (growth, _) => growth,
        };
        for OpenBlock { kind, text, .. } in open.skip(self.block) {
            self.block(*kind, text, growth);
        }
    }

    /// A block without text is not drawn: a provider that hides its reasoning leaves one.
    fn block(&mut self, kind: DeltaKind, text: &'a str, growth: Growth) {
        if text.is_empty() {
            return;
        }
        let part = Part::Block { call: self.call, block: self.block };
        self.block += 1;
        let stage = match growth {
            Growth::Settled => 0,
            Growth::Growing => 1,
            Growth::Interrupted => 2,
            Growth::Elsewhere => 3,
        };
        let revision = text.len() as u64 * 4 + stage;
        let body = match kind {
            DeltaKind::Text => Body::Text { text, growth },
            DeltaKind::Reasoning => Body::Reasoning { text, growth },
        };
        self.items.push(item(self.turn, part, revision, body));
    }

    fn call(&mut self, id: &ToolCallId, body: CallBody<'a>) {
        let revision = call_revision(&body);
        self.items.push(item(self.turn, Part::Call(id.clone()), revision, Body::Call(body)));
    }
}

/// What changes about a call: the steps that it has taken, then what it reported, then its tail.
fn call_revision(body: &CallBody<'_>) -> u64 {
    let Some(call) = body.call else { return 0 };
    let tail = body.tail.map_or(0, |tail| tail.revision);
    let reports = call.progress.len() as u64;
    ((1 + steps_taken(call)) << 56) | ((reports & 0xFF_FFFF) << 32) | (tail & 0xFFFF_FFFF)
}

fn steps_taken(call: &ToolCall) -> u64 {
    let permission = call.permission.as_ref();
    let steps = [
        permission.is_some(),
        permission.is_some_and(|permission| permission.classified.is_some()),
        permission.is_some_and(|permission| permission.classification_failed.is_some()),
        permission.is_some_and(|permission| permission.resolved.is_some()),
        call.invocation.is_some(),
        call.result.is_some(),
    ];
    steps.into_iter().map(u64::from).sum()
}

fn end<'a>(turn: &'a Loaded, live: &'a Live, activity: &'a Activity) -> Item<'a> {
    let state = &turn.state;
    let standing = match (&state.terminal, activity.run(&state.id)) {
        (Some(terminal), _) => Standing::Ended(terminal),
        (None, Some(run)) => Standing::Running { run, wait: live.wait.as_ref() },
        (None, None) if state.status() == TurnStatus::Suspended => Standing::Suspended,
        (None, None) => activity.elsewhere.map_or(Standing::Interrupted, Standing::Elsewhere),
    };
    let kind = match &standing {
        Standing::Ended(_) => 0,
        Standing::Running { wait: None, .. } => 1,
        Standing::Running { wait: Some(_), .. } => 2,
        Standing::Suspended => 3,
        Standing::Interrupted => 4,
        // Another process is told in other words.
        Standing::Elsewhere(holder) => 5 + u64::from(holder.process.unwrap_or_default()),
    };
    // Every event may change what was used, and every wait of the model client its reason.
    let revision = ((turn.offset + live.waits) << 33) + kind;
    let failure = state.model_calls.last().and_then(|call| match &call.settlement {
        Some(Settlement::Failed { error, .. }) => Some(error.as_str()),
        Some(Settlement::Completed(_)) | None => None,
    });
    let body = EndBody { standing, began_at: state.created_at, usage: &state.usage, failure };
    item(turn, Part::End, revision, Body::End(body))
}
