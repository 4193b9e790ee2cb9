//! Everything that a person can do by a key: names, labels and groups.

use std::fmt;
use std::str::FromStr;

/// Declares one group of actions: variant, stable name, label.
macro_rules! actions {
    ($(#[$doc:meta])* $group:ident { $($variant:ident $name:literal $label:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $group {
            $(#[doc = $label] $variant,)+
        }

        impl $group {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }
    };
}

actions! {
    /// What works everywhere.
    AppAction {
        Interrupt "interrupt" "Clear the text, stop the turn, or quit",
        Escape "escape" "Close what is on top",
        Help "help" "Show the keys",
        NextPane "next-pane" "Next pane",
        PreviousPane "previous-pane" "Previous pane",
        GoToPrompt "go-to-prompt" "Go to the prompt",
        WaitingList "waiting-list" "Show all that waits for you",
        NewSession "new-session" "New session",
        ToggleList "toggle-list" "Show or hide the session list",
        Compact "compact" "Sum up what was said, to make room",
        RetryWrites "retry-writes" "Try again what the disk did not take",
        GiveUpWrites "give-up-writes" "Give up what the disk did not take",
        Redraw "redraw" "Redraw the screen",
        Suspend "suspend" "Suspend to the shell",
        Quit "quit" "Quit",
    }
}

actions! {
    /// Moving through whatever has the focus and is no text.
    MoveAction {
        Up "move-up" "Up",
        Down "move-down" "Down",
        PageUp "page-up" "Page up",
        PageDown "page-down" "Page down",
        HalfPageUp "half-page-up" "Half a page up",
        HalfPageDown "half-page-down" "Half a page down",
        Top "move-to-top" "To the top",
        Bottom "move-to-bottom" "To the bottom",
        ToList "to-list" "To the session list",
        ToTimeline "to-timeline" "To the conversation",
        ToComposer "to-composer" "To the composer",
    }
}

actions! {
    /// What the session list does with the session under the cursor, or with the marked ones.
    ListAction {
        Open "open-session" "Open",
        Filter "filter-sessions" "Filter",
        Sort "sort-sessions" "Sort by the next order",
        Mark "mark-session" "Mark",
        Rename "rename-session" "Rename",
        Delete "delete-session" "Delete",
        Undo "undo-delete" "Take the last deletion or archiving back",
        Purge "purge-session" "Destroy for good",
        Archive "archive-session" "Put away, or get back",
        ShowArchived "show-archived" "Show what is put away, or what is not",
    }
}

actions! {
    /// What can be done with a turn that was interrupted or waits for somebody.
    TurnAction {
        Resume "resume-turn" "Resume the interrupted turn",
        Close "close-turn" "Close the interrupted turn, or stop the waiting one",
    }
}

actions! {
    /// Reading a conversation.
    TimelineAction {
        ToggleFold "toggle-fold" "Fold or unfold",
        FoldAll "fold-all" "Fold or unfold all",
        FoldReasoning "fold-reasoning" "Fold or unfold all reasoning",
        PreviousTurn "previous-turn" "Previous turn",
        NextTurn "next-turn" "Next turn",
        PreviousOwn "previous-own-message" "Previous message of yours",
        NextOwn "next-own-message" "Next message of yours",
        ToggleRaw "toggle-raw" "Raw or rendered text",
        CopyMessage "copy-message" "Copy the message",
        CopyCode "copy-code" "Copy a code block",
        CopyTurn "copy-turn" "Copy the whole turn",
        Edit "edit-message" "Edit your message in a fork",
        Fork "fork-session" "Fork at this turn",
        Events "show-events" "Show the events of the turn",
    }
}

actions! {
    /// Deciding whether a tool may do what it asks for.
    PermissionAction {
        AllowOnce "allow-once" "Allow once",
        Deny "deny" "Deny",
        DenyWithReason "deny-with-reason" "Deny with a reason",
        FullView "full-view" "Show all of it",
        Later "decide-later" "Later",
    }
}

actions! {
    /// Answering a question of an agent.
    QuestionAction {
        Toggle "toggle-option" "Choose the option",
        Next "next-field" "Next question or free text",
        Answer "answer-question" "Answer",
        Dismiss "dismiss-question" "Dismiss",
        Later "answer-later" "Later",
    }
}

actions! {
    /// What the list of all that waits adds to moving in it. What is decided is decided in its own
    /// prompt, where all of it can be read.
    WaitingAction {
        Jump "jump-to-waiting" "Go to its session",
    }
}

actions! {
    /// What the composer adds to editing text.
    ComposerAction {
        Send "send" "Send",
        Newline "newline" "New line",
        HistoryUp "history-up" "Line up, or older message",
        HistoryDown "history-down" "Line down, or newer message",
        Complete "complete" "Complete, or next pane",
        TakeBack "take-back" "Take the last waiting message back",
        EditWaiting "edit-waiting" "Edit the last waiting message",
        SendWaiting "send-waiting" "Send the messages that are held",
        DeleteOrQuit "delete-or-quit" "Delete forwards; quit when empty",
    }
}

actions! {
    /// Editing text, wherever there is some.
    EditAction {
        CharLeft "char-left" "Character left",
        CharRight "char-right" "Character right",
        WordLeft "word-left" "Word left",
        WordRight "word-right" "Word right",
        LineUp "line-up" "Line up",
        LineDown "line-down" "Line down",
        LineStart "line-start" "Start of the line",
        LineEnd "line-end" "End of the line",
        TextStart "text-start" "Start of the text",
        TextEnd "text-end" "End of the text",
        DeleteBack "delete-back" "Delete backwards",
        DeleteForward "delete-forward" "Delete forwards",
        DeleteWordBack "delete-word-back" "Delete the word before",
        DeleteWordForward "delete-word-forward" "Delete the word after",
        KillToStart "kill-to-start" "Cut to the start of the line",
        KillToEnd "kill-to-end" "Cut to the end of the line",
        Yank "yank" "Insert what was cut",
        ExpandPaste "expand-paste" "Write out the pasted block",
        Undo "undo" "Undo",
        Redo "redo" "Redo",
    }
}

actions! {
    /// Looking at the log of a turn.
    InspectAction {
        Open "open-event" "Show the event",
        Request "show-request" "Show what was sent to the model",
        Copy "copy-event" "Copy what is shown",
    }
}

actions! {
    /// Dialogs: confirming, a field to fill in, filters. They close with "escape".
    DialogAction {
        Accept "accept" "Accept",
        Resume "resume-and-send" "Go on with the interrupted turn",
    }
}

/// Anything that a key can be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// See [`AppAction`].
    App(AppAction),
    /// See [`MoveAction`].
    Move(MoveAction),
    /// See [`ListAction`].
    List(ListAction),
    /// See [`TurnAction`].
    Turn(TurnAction),
    /// See [`TimelineAction`].
    Timeline(TimelineAction),
    /// See [`PermissionAction`].
    Permission(PermissionAction),
    /// See [`QuestionAction`].
    Question(QuestionAction),
    /// See [`WaitingAction`].
    Waiting(WaitingAction),
    /// See [`ComposerAction`].
    Composer(ComposerAction),
    /// See [`EditAction`].
    Edit(EditAction),
    /// See [`InspectAction`].
    Inspect(InspectAction),
    /// See [`DialogAction`].
    Dialog(DialogAction),
}

impl Action {
    /// Every action, group by group, in the order of the help.
    pub fn all() -> impl Iterator<Item = Self> {
        let app = AppAction::ALL.iter().map(|action| Self::App(*action));
        app.chain(MoveAction::ALL.iter().map(|action| Self::Move(*action)))
            .chain(ListAction::ALL.iter().map(|action| Self::List(*action)))
            .chain(TurnAction::ALL.iter().map(|action| Self::Turn(*action)))
            .chain(TimelineAction::ALL.iter().map(|action| Self::Timeline(*action)))
            .chain(PermissionAction::ALL.iter().map(|action| Self::Permission(*action)))
            .chain(QuestionAction::ALL.iter().map(|action| Self::Question(*action)))
            .chain(WaitingAction::ALL.iter().map(|action| Self::Waiting(*action)))
            .chain(ComposerAction::ALL.iter().map(|action| Self::Composer(*action)))
            .chain(EditAction::ALL.iter().map(|action| Self::Edit(*action)))
            .chain(InspectAction::ALL.iter().map(|action| Self::Inspect(*action)))
            .chain(DialogAction::ALL.iter().map(|action| Self::Dialog(*action)))
    }

    /// The name in key tables, in kebab-case. It is unique and never changes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::App(action) => action.name(),
            Self::Move(action) => action.name(),
            Self::List(action) => action.name(),
            Self::Turn(action) => action.name(),
            Self::Timeline(action) => action.name(),
            Self::Permission(action) => action.name(),
            Self::Question(action) => action.name(),
            Self::Waiting(action) => action.name(),
            Self::Composer(action) => action.name(),
            Self::Edit(action) => action.name(),
            Self::Inspect(action) => action.name(),
            Self::Dialog(action) => action.name(),
        }
    }

    /// What it does, in the few words of help and hints.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::App(action) => action.label(),
            Self::Move(action) => action.label(),
            Self::List(action) => action.label(),
            Self::Turn(action) => action.label(),
            Self::Timeline(action) => action.label(),
            Self::Permission(action) => action.label(),
            Self::Question(action) => action.label(),
            Self::Waiting(action) => action.label(),
            Self::Composer(action) => action.label(),
            Self::Edit(action) => action.label(),
            Self::Inspect(action) => action.label(),
            Self::Dialog(action) => action.label(),
        }
    }

    /// Whether it changes anything that is kept or runs: in a view that only looks it does nothing, and
    /// is not offered.
    #[must_use]
    pub fn changes(self) -> bool {
        match self {
            Self::App(action) => action == AppAction::Compact,
            Self::List(action) => match action {
                ListAction::Rename
                | ListAction::Delete
                | ListAction::Undo
                | ListAction::Purge
                | ListAction::Archive => true,
                ListAction::Open
                | ListAction::Filter
                | ListAction::Sort
                | ListAction::Mark
                | ListAction::ShowArchived => false,
            },
            Self::Turn(TurnAction::Resume | TurnAction::Close) => true,
            Self::Timeline(action) => {
                matches!(action, TimelineAction::Edit | TimelineAction::Fork)
            }
            Self::Permission(action) => match action {
                PermissionAction::AllowOnce
                | PermissionAction::Deny
                | PermissionAction::DenyWithReason => true,
                PermissionAction::FullView | PermissionAction::Later => false,
            },
            Self::Question(action) => match action {
                QuestionAction::Toggle | QuestionAction::Answer | QuestionAction::Dismiss => true,
                QuestionAction::Next | QuestionAction::Later => false,
            },
            Self::Composer(action) => match action {
                ComposerAction::Send
                | ComposerAction::TakeBack
                | ComposerAction::EditWaiting
                | ComposerAction::SendWaiting => true,
                ComposerAction::Newline
                | ComposerAction::HistoryUp
                | ComposerAction::HistoryDown
                | ComposerAction::Complete
                | ComposerAction::DeleteOrQuit => false,
            },
            Self::Dialog(action) => action == DialogAction::Resume,
            Self::Move(_) | Self::Waiting(_) | Self::Edit(_) | Self::Inspect(_) => false,
        }
    }

    /// The heading under which help shows it.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::App(_) => "Anywhere",
            Self::Move(_) => "Moving",
            Self::List(_) => "Session list",
            Self::Turn(_) => "Turn that rests",
            Self::Timeline(_) => "Conversation",
            Self::Permission(_) => "Permission",
            Self::Question(_) => "Question",
            Self::Waiting(_) => "Waiting",
            Self::Composer(_) => "Composer",
            Self::Edit(_) => "Editing",
            Self::Inspect(_) => "Events",
            Self::Dialog(_) => "Dialog",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no action is called {0:?}")]
pub struct UnknownAction(String);

impl FromStr for Action {
    type Err = UnknownAction;

    fn from_str(name: &str) -> Result<Self, UnknownAction> {
        let found = Self::all().find(|action| action.name() == name);
        found.ok_or_else(|| UnknownAction(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_action_is_found_by_its_own_name() {
        for action in Action::all() {
            assert_eq!(action.name().parse(), Ok(action));
        }
        assert_eq!("fly".parse::<Action>(), Err(UnknownAction("fly".to_owned())));
    }

    #[test]
    fn what_changes_something_is_known_of_every_action() {
        let changing: Vec<_> = Action::all().filter(|it| it.changes()).map(Action::name).collect();
        let expected = [
            "compact",
            "rename-session",
            "delete-session",
            "undo-delete",
            "purge-session",
            "archive-session",
            "resume-turn",
            "close-turn",
            "edit-message",
            "fork-session",
            "allow-once",
            "deny",
            "deny-with-reason",
            "toggle-option",
            "answer-question",
            "dismiss-question",
            "send",
            "take-back",
            "edit-waiting",
            "send-waiting",
            "resume-and-send",
        ];
        assert_eq!(changing, expected);
    }

    #[test]
    fn names_are_kebab_case_and_labels_differ_within_a_group() {
        let mut shown = BTreeSet::new();
        for action in Action::all() {
            let name = action.name();
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{name}");
            assert!(shown.insert((action.group(), action.label())), "{name}");
        }
    }
}
