//! How a command ends.

use std::io;

use sessionlog::Error;

/// A command that did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Fine,
    /// Exit code 1: there was something to find, and it has been printed.
    Findings,
}

impl Outcome {
    /// Findings if `any`.
    pub(crate) fn findings_if(any: bool) -> Self {
        if any { Self::Findings } else { Self::Fine }
    }
}

/// A command that could not.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library said no.
    Library(Error),
    /// Standard output is gone or refuses.
    Output(io::Error),
    /// Something else, in words.
    Words(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// What a command returns.
pub(crate) type Ended = Result<Outcome, Failure>;
