//! What an error says to a person.

use std::error::Error;

/// The error with its whole chain of causes, in one line.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Transparent errors repeat their cause.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Trouble {
        #[error("cannot open the door")]
        Door(#[source] Box<Trouble>),
        #[error(transparent)]
        Passed(Box<Trouble>),
        #[error("the key is lost")]
        Key,
    }

    #[test]
    fn every_cause_is_said_once() {
        let door = Trouble::Door(Box::new(Trouble::Passed(Box::new(Trouble::Key))));
        assert_eq!(with_causes(&door), "cannot open the door: the key is lost");
        assert_eq!(with_causes(&Trouble::Key), "the key is lost");
    }
}
