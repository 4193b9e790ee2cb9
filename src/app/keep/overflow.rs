//! What is to be kept while the queue to the keeper is full: in order, and of each composer's draft
//! only the newest, so that what waits grows with what a person sends and opens, not with typing.

use std::collections::VecDeque;

use crate::app::command::DraftOf;
use crate::app::keep::Keep;

/// What waits before the queue.
#[derive(Debug, Default)]
pub(in crate::app) struct Overflow {
    waiting: VecDeque<Keep>,
    /// Whether somebody moves what waits on.
    draining: Draining,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Draining {
    #[default]
    Nobody,
    Somebody,
}

/// What whoever added something has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum Added {
    /// Nothing: it is moved on with the others.
    BehindOthers,
    /// Move on what waits until nothing does.
    First,
}

impl Overflow {
    /// Whether the queue may be used directly without overtaking anything.
    pub(in crate::app) fn is_idle(&self) -> bool {
        self.draining == Draining::Nobody
    }

    /// Puts something behind what waits.
    pub(in crate::app) fn add(&mut self, keep: Keep) -> Added {
        self.put(keep);
        match std::mem::replace(&mut self.draining, Draining::Somebody) {
            Draining::Nobody => Added::First,
            Draining::Somebody => Added::BehindOthers,
        }
    }

    /// The next to move on; after none, nobody does.
    pub(in crate::app) fn next(&mut self) -> Option<Keep> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.draining = Draining::Nobody;
        }
        next
    }

    fn put(&mut self, keep: Keep) {
        let about = composer(&keep);
        let last =
            self.waiting.iter_mut().rev().find(|it| about.is_some() && composer(it) == about);
        match (last, keep) {
            (Some(Keep::Save { draft, .. }), Keep::Save { draft: newer, .. }) => *draft = newer,
            (_, keep) => self.waiting.push_back(keep),
        }
    }
}

/// Whose draft it is about.
fn composer(keep: &Keep) -> Option<&DraftOf> {
    match keep {
        Keep::Save { of, .. }
        | Keep::SaveFirst { of, .. }
        | Keep::Append { of, .. }
        | Keep::Load(of)
        | Keep::Sending(of)
        | Keep::Sent(of) => Some(of),
        Keep::SetAside { .. }
        | Keep::BringBack { .. }
        | Keep::Remember(_)
        | Keep::List(_)
        | Keep::Done(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::command::Draft;

    fn save(text: &str) -> Keep {
        let draft = Draft { text: text.to_owned(), ..Draft::default() };
        Keep::Save { of: DraftOf::NewSession, draft }
    }

    fn said(overflow: &mut Overflow) -> Vec<String> {
        std::iter::from_fn(|| overflow.next())
            .map(|keep| match keep {
                Keep::Save { draft, .. } => draft.text,
                Keep::Sent(_) => "sent".to_owned(),
                Keep::Remember(text) => format!("remember {text}"),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn of_drafts_only_the_newest_waits_and_nothing_else_is_lost_or_overtaken() {
        let mut overflow = Overflow::default();
        assert!(overflow.is_idle());
        assert_eq!(overflow.add(save("a")), Added::First);
        let sent = || Keep::Sent(DraftOf::NewSession);
        let more = [save("ab"), Keep::Remember("ab".to_owned()), save("abc"), sent(), save("d")];
        for keep in more {
            assert_eq!(overflow.add(keep), Added::BehindOthers);
        }
        assert!(!overflow.is_idle());
        assert_eq!(said(&mut overflow), ["abc", "remember ab", "sent", "d"]);
        assert!(overflow.is_idle());
        assert_eq!(overflow.add(save("e")), Added::First);
    }
}
