//! The overlay of the open call: joining late, in mid-answer too, loses and repeats nothing
//! (`design/turn-runtime.md` section 13).

use proptest::prelude::*;
use proptest::sample::Index;
use turnstile::domain::turn::live::{Delta, DeltaKind, Folded, OpenBlock, OpenCall};

/// The pieces of an answer of call 1 as they stream; `true` begins a new block.
fn answer() -> impl Strategy<Value = Vec<Delta>> {
    let piece = (any::<bool>(), prop_oneof![Just("a"), Just("näive "), Just("🦀\n")]);
    proptest::collection::vec(piece, 1..20).prop_map(|pieces| {
        let (mut block, mut at) = (0, 0);
        let delta = |(new_block, text): (bool, &str)| {
            block += u32::from(new_block);
            let kind = if block % 2 == 0 { DeltaKind::Reasoning } else { DeltaKind::Text };
            let delta = Delta { model_call_index: 1, kind, block, at, text: text.into() };
            at += text.len() as u64;
            delta
        };
        pieces.into_iter().map(delta).collect()
    })
}

fn folded(deltas: &[Delta]) -> OpenCall {
    let mut call = OpenCall::new(1);
    for delta in deltas {
        assert_eq!(call.fold(delta), Folded::Grown);
    }
    call
}

proptest! {
    #[test]
    fn the_overlay_is_the_text_that_was_streamed(deltas in answer()) {
        let call = folded(&deltas);
        let mut blocks: Vec<OpenBlock> = Vec::new();
        for Delta { block, kind, text, .. } in &deltas {
            if blocks.last().is_none_or(|last| last.block != *block) {
                blocks.push(OpenBlock { block: *block, kind: *kind, text: String::new() });
            }
            blocks.last_mut().expect("just pushed").text.push_str(text);
        }
        prop_assert_eq!(call.len, blocks.iter().map(|block| block.text.len() as u64).sum::<u64>());
        prop_assert_eq!(call.blocks, blocks);
    }

    #[test]
    fn a_late_subscriber_loses_and_repeats_nothing(
        deltas in answer(),
        joined in any::<Index>(),
        received_from in any::<Index>(),
    ) {
        let joined = joined.index(deltas.len());
        let received_from = received_from.index(joined + 1);
        let mut call = folded(&deltas[..joined]);
        for (at, delta) in deltas.iter().enumerate().skip(received_from) {
            let expected = if at < joined { Folded::Known } else { Folded::Grown };
            prop_assert_eq!(call.fold(delta), expected);
        }
        prop_assert_eq!(call, folded(&deltas));
    }

    #[test]
    fn a_missing_piece_is_a_gap_and_changes_nothing(deltas in answer(), lost in any::<Index>()) {
        let lost = lost.index(deltas.len());
        let before = folded(&deltas[..lost]);
        let mut call = before.clone();
        for delta in &deltas[lost + 1..] {
            prop_assert_eq!(call.fold(delta), Folded::Gap);
        }
        prop_assert_eq!(call, before);
    }
}

#[test]
fn pieces_of_another_call_are_old_or_a_gap() {
    let delta = |model_call_index| Delta {
        model_call_index,
        kind: DeltaKind::Text,
        block: 0,
        at: 0,
        text: "x".into(),
    };
    let mut call = OpenCall::new(1);
    assert_eq!(call.fold(&delta(0)), Folded::Known);
    assert_eq!(call.fold(&delta(2)), Folded::Gap);
    assert_eq!(call, OpenCall::new(1));
}
