//! What can be undone and redone at once: how many edits of the model make up each step.

/// As many edits can be undone.
pub(super) const EDITS_MAX: usize = 1_000;

/// See the module. Typing is undone word by word: a word and the spaces behind it are one step.
#[derive(Clone, Default)]
pub(super) struct Past {
    undo: Vec<usize>,
    redo: Vec<usize>,
    /// How what was typed last ended; none once something else was done.
    typing: Option<Ending>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Word,
    Space,
}

impl Past {
    /// One edit was made, as a step of its own.
    pub(super) fn did(&mut self) {
        self.redo.clear();
        self.undo.push(1);
        if self.undo.len() > EDITS_MAX {
            self.undo.remove(0);
        }
    }

    /// Text was inserted by one edit.
    pub(super) fn typed(&mut self, text: &str) {
        let ending = if text.ends_with(char::is_whitespace) { Ending::Space } else { Ending::Word };
        let goes_on = match self.typing {
            Some(Ending::Word) => true,
            Some(Ending::Space) => ending == Ending::Space,
            None => false,
        };
        match self.undo.last_mut() {
            Some(last) if goes_on => {
                *last += 1;
                self.redo.clear();
            }
            Some(_) | None => self.did(),
        }
        self.typing = Some(ending);
    }

    /// The last two steps are one.
    pub(super) fn join(&mut self) {
        if let Some(edits) = self.undo.pop() {
            match self.undo.last_mut() {
                Some(last) => *last += edits,
                None => self.undo.push(edits),
            }
        }
    }

    /// What is typed next is a step of its own.
    pub(super) fn pause(&mut self) {
        self.typing = None;
    }

    /// The step to undo, as a number of edits.
    pub(super) fn take_last(&mut self) -> Option<usize> {
        self.typing = None;
        self.undo.pop()
    }

    /// The step to redo, as a number of edits.
    pub(super) fn take_next(&mut self) -> Option<usize> {
        self.typing = None;
        self.redo.pop()
    }

    pub(super) fn undid(&mut self, edits: usize) {
        self.redo.push(edits);
    }

    pub(super) fn redid(&mut self, edits: usize) {
        self.undo.push(edits);
    }
}
