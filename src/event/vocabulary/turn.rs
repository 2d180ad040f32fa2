//! Turns and steps: `turn/start`, `turn/end`, `step/start`, `step/end`.

use super::{Extra, Source};

record! {
    /// `turn/start`: a turn begins.
    TurnStart {
        /// The turn's number, from 1.
        turn: u64 = "turn",
        /// Why it begins.
        trigger: Trigger = "trigger",
    }
    new(turn: u64, trigger: Trigger)
}

record! {
    /// `turn/end`: a turn is over.
    TurnEnd {
        /// The turn's number.
        turn: u64 = "turn",
        /// Why it is over.
        reason: TurnEndReason = "reason",
    }
    new(turn: u64, reason: TurnEndReason)
}

record! {
    /// `step/start`: a step of a turn begins, one call of the model.
    StepStart {
        /// The turn's number.
        turn: u64 = "turn",
        /// The step's number, from 1 in each turn.
        step: u64 = "step",
    }
    new(turn: u64, step: u64)
}

record! {
    /// `step/end`: a step is over.
    StepEnd {
        /// The turn's number.
        turn: u64 = "turn",
        /// The step's number.
        step: u64 = "step",
    }
    new(turn: u64, step: u64)
}

open_set! {
    /// Why a turn begins.
    Trigger by "kind" {
        /// A message arrived.
        Message(FromSource) = "message",
        /// The agent goes on by itself.
        Continuation(Extra) = "continuation",
        /// Something was put into the conversation.
        Injection(FromSource) = "injection",
    }
}

record! {
    /// What a trigger says of its origin.
    FromSource {
        /// Who it comes from.
        source: Source = "source",
    }
    new(source: Source)
}

open_set! {
    /// Why a turn is over.
    TurnEndReason by "kind" {
        /// The agent is done.
        Completed(Extra) = "completed",
        /// Somebody stopped it.
        Aborted(Aborted) = "aborted",
        /// A step failed.
        Error(TurnError) = "error",
        /// The agent was taken down.
        Disposed(Extra) = "disposed",
        /// The model's answer was cut at its limit.
        MaxTokens(Extra) = "max-tokens",
        /// The process ended in the middle of the turn; written by repair (R2).
        Interrupted(Extra) = "interrupted",
    }
}

record! {
    /// A turn that somebody stopped.
    Aborted {
        /// Why.
        reason: Option<String> = "reason",
    }
    new(reason: Option<String>)
}

record! {
    /// A turn that ended because a step failed.
    TurnError {
        /// The step that failed.
        step: u64 = "step",
        /// What went wrong.
        message: String = "message",
        /// A code for programs.
        code: Option<String> = "code",
    }
    new(step: u64, message: impl Into<String>) without(code)
}

impl Trigger {
    /// A message arrived.
    #[must_use]
    pub fn message(source: Source) -> Self {
        Self::Message(FromSource::new(source))
    }

    /// The agent goes on by itself.
    #[must_use]
    pub fn continuation() -> Self {
        Self::Continuation(Extra::new())
    }

    /// Something was put into the conversation.
    #[must_use]
    pub fn injection(source: Source) -> Self {
        Self::Injection(FromSource::new(source))
    }
}

impl TurnEndReason {
    /// The agent is done.
    #[must_use]
    pub fn completed() -> Self {
        Self::Completed(Extra::new())
    }

    /// Somebody stopped it, perhaps saying why.
    #[must_use]
    pub fn aborted(why: Option<String>) -> Self {
        Self::Aborted(Aborted::new(why))
    }

    /// A step failed.
    #[must_use]
    pub fn error(step: u64, message: impl Into<String>) -> Self {
        Self::Error(TurnError::new(step, message))
    }

    /// The agent was taken down.
    #[must_use]
    pub fn disposed() -> Self {
        Self::Disposed(Extra::new())
    }

    /// The model's answer was cut at its limit.
    #[must_use]
    pub fn max_tokens() -> Self {
        Self::MaxTokens(Extra::new())
    }

    /// The process ended in the middle of the turn.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::Interrupted(Extra::new())
    }
}
