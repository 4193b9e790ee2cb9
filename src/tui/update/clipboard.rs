//! Copying: always the text as it came from its source, and a word about which way it went.

use crate::tui::effect::Effect;
use crate::tui::layout::Layout;
use crate::tui::msg::Copied;
use crate::tui::rich::markdown;
use crate::tui::state::State;
use crate::tui::state::item::{Body, Item};
use crate::tui::state::overlay::{Codes, Overlay};
use crate::tui::update::{Effects, overlay, problem, reading, tell};

/// Copies the item that has the focus.
pub(super) fn copy_item(state: &mut State, layout: &Layout, out: &mut Effects) {
    let source = meant(state, layout).and_then(|item| item.body.source());
    copy(state, source, "There is no text here to copy", out);
}

/// Copies the turn that has the focus.
pub(super) fn copy_turn(state: &mut State, layout: &Layout, out: &mut Effects) {
    let turn = reading::focus(state, layout).map(|item| item.turn);
    let items = turn.map(|turn| state.items().of(&turn)).unwrap_or_default();
    let sources: Vec<String> = items.iter().filter_map(|item| item.body.source()).collect();
    let source = Some(sources.join("\n\n")).filter(|source| !source.is_empty());
    copy(state, source, "There is no text in this turn to copy", out);
}

/// Copies the code block of the item that has the focus; of several, a number picks one.
pub(super) fn copy_code(state: &mut State, layout: &Layout, out: &mut Effects) {
    let blocks = meant(state, layout).map(|item| code_in(&item.body)).unwrap_or_default();
    match blocks.as_slice() {
        [] => tell(state, "There is no code block here"),
        [block] => copy(state, Some(block.clone()), "", out),
        [_, _, ..] => overlay::show(state, Overlay::Codes(Codes { blocks }), out),
    }
}

/// Copies the code block with this number.
pub(super) fn pick(state: &mut State, number: &str, out: &mut Effects) {
    let Some(Overlay::Codes(codes)) = &state.overlay else { return };
    let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    if let Some(block) = place.and_then(|place| codes.blocks.get(place)).cloned() {
        overlay::close(state, out);
        copy(state, Some(block), "", out);
    }
}

/// Says which way a copied text went, and no more.
pub(super) fn copied(state: &mut State, copied: Copied) {
    match copied {
        Copied::Terminal => tell(state, "Sent to the terminal's clipboard, which does not confirm"),
        Copied::Desktop => tell(state, "Copied"),
        Copied::File(path) => tell(state, format!("No clipboard was found; written to {path}")),
        Copied::Failed(why) => problem(state, format!("Not copied: {why}")),
    }
}

fn copy(state: &mut State, source: Option<String>, nothing: &str, out: &mut Effects) {
    match source {
        Some(text) => out.push(Effect::Copy { text }),
        None => tell(state, nothing),
    }
}

/// What is to be copied: the item that has the focus; where that only says how the turn stands, what
/// was said last in the turn.
fn meant<'a>(state: &'a State, layout: &Layout) -> Option<Item<'a>> {
    let items = state.items();
    let focused = items.find(&reading::focus(state, layout)?)?;
    if !matches!(focused.body, Body::End(_)) {
        return Some(focused);
    }
    let turn = focused.id.turn.clone();
    let back = std::iter::successors(Some(focused), |item| items.before(&item.id));
    let mut said = back.take_while(|item| item.id.turn == turn);
    said.find(|item| matches!(item.body, Body::Text { .. } | Body::Message { .. }))
}

fn code_in(body: &Body<'_>) -> Vec<String> {
    let source = body.source().unwrap_or_default();
    markdown::code_blocks(&source).into_iter().map(|block| block.text).collect()
}
