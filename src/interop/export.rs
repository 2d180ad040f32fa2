//! What all ways out of the store share.

/// What is done about output that is there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is an error of kind `Exists`.
    #[default]
    Refuse,
    /// Sessions and events that it lacks are added. What it has must be the beginning of what is exported; otherwise
    /// that is an error of kind `Conflict`.
    Append,
    /// It is replaced.
    Replace,
}

/// What became of a session in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFate {
    /// It was not there before.
    Written,
    /// It took the place of what was there.
    Replaced,
    /// The events from this one on were added.
    Extended {
        /// The first event that is new.
        from: u64,
    },
    /// All of it was there already.
    Unchanged,
}

impl ExportFate {
    /// A short name, for programs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Replaced => "replaced",
            Self::Extended { .. } => "extended",
            Self::Unchanged => "unchanged",
        }
    }
}
