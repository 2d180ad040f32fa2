//! The one error of the library: opaque, cheap to clone, with predicates.
//!
//! A poisoned writer hands the same error to every waiter, so an [`Error`] is shared, never copied. Its text
//! says what was being done, where (file and offset), what was found, and what to do next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a call of this library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an [`Error`]. New classes may be added.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The operating system refused an operation.
    Io,
    /// Stored bytes are damaged or missing: what was acknowledged cannot be handed out.
    Corrupt,
    /// Another process or handle is the writer of this store.
    Locked,
    /// No space is left for what was asked; nothing was accepted.
    Full,
    /// The unflushed bound or the prepared space is used up for the moment; nothing was accepted, try again.
    Backpressure,
    /// The session has moved on from the expected sequence number.
    Conflict,
    /// A session of that id is there already (live, or stored).
    Exists,
    /// There is no such session, event or store.
    NotFound,
    /// The text is not one JSON value.
    InvalidJson,
    /// A value that JSON cannot carry losslessly, or a field of a wrong shape.
    InvalidValue,
    /// A surface marker is missing, malformed, or where none belongs.
    Marker,
    /// `sourceEventSeqs` breaks a rule.
    Sources,
    /// A replace that the surface refuses.
    Replace,
    /// A limit of the format is exceeded.
    TooLarge,
    /// A turn is open where none may be.
    OpenTurn,
    /// The writer failed earlier; reopen the store to go on.
    Poisoned,
    /// The store or session was closed or detached.
    Closed,
    /// The handle was inherited by a forked process, which may not use it.
    Forked,
    /// The handle was opened for reading only.
    ReadOnly,
    /// A format or schema version that this build does not read.
    Version,
    /// The file system cannot give what the store relies on.
    Unsupported,
    /// A `created` or `flush` listener failed, or a listener called back into its session.
    Listener,
    /// An invariant that the session was asked to enforce would break.
    Invariant,
    /// A line of the record protocol that is no request.
    BadLine,
    /// An argument outside its documented range.
    InvalidArgument,
    /// A fault of this library. Please report it.
    Internal,
}

impl ErrorKind {
    /// The name that `sessionlog record` answers with.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt",
            Self::Locked => "locked",
            Self::Full | Self::Backpressure => "full",
            Self::Conflict => "conflict",
            Self::Exists => "exists",
            Self::NotFound => "not-found",
            Self::InvalidJson => "invalid-json",
            Self::InvalidValue | Self::InvalidArgument | Self::Invariant => "invalid-value",
            Self::Marker => "marker",
            Self::Sources => "sources",
            Self::Replace => "replace",
            Self::TooLarge => "too-large",
            Self::OpenTurn => "open-turn",
            Self::Poisoned | Self::Closed | Self::Forked => "poisoned",
            Self::Version => "version",
            Self::BadLine => "bad-line",
            Self::Io | Self::ReadOnly | Self::Unsupported | Self::Listener | Self::Internal => "internal",
        }
    }
}

/// Why something could not be done. See [`ErrorKind`] for the classes.
#[derive(Clone)]
pub struct Error {
    inner: Arc<Inner>,
}

struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<io::Error>,
    cause: Option<Error>,
    typed: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind` that says `message`.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::build(kind, message.into(), None, None, None, None)
    }

    /// An error of `kind` that says what `cause` says; [`source`](std::error::Error::source) gives the cause by type.
    pub(crate) fn typed(kind: ErrorKind, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        let (message, typed) = (cause.to_string(), Some(Box::new(cause) as _));
        let (path, offset, source, cause) = (None, None, None, None);
        Self { inner: Arc::new(Inner { kind, message, path, offset, source, cause, typed }) }
    }

    /// A failed call to the operating system: `operation` on `path`. A full disk gets its own kind.
    #[must_use]
    pub fn io(operation: &str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let kind = match source.kind() {
            // The last one is a limit that somebody set on the size of files.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                ErrorKind::Full
            }
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let path = path.as_ref();
        let message = format!("{operation} {}: {source}", path.display());
        Self::build(kind, message, Some(path.to_path_buf()), None, Some(source), None)
    }

    /// Damage at `offset` of `path`.
    #[must_use]
    pub fn corrupt(path: impl AsRef<Path>, offset: u64, message: impl fmt::Display) -> Self {
        let path = path.as_ref();
        let text = format!("{} at byte {offset}: {message}", path.display());
        Self::build(ErrorKind::Corrupt, text, Some(path.to_path_buf()), Some(offset), None, None)
    }

    /// Damage somewhere in `path`.
    #[must_use]
    pub(crate) fn corrupt_in(path: impl AsRef<Path>, message: impl fmt::Display) -> Self {
        let path = path.as_ref();
        let text = format!("{}: {message}", path.display());
        Self::build(ErrorKind::Corrupt, text, Some(path.to_path_buf()), None, None, None)
    }

    /// The same error under another kind and a text that says more; the first one is kept as its cause.
    #[must_use]
    pub fn wrap(self, kind: ErrorKind, message: impl fmt::Display) -> Self {
        let text = format!("{message}: {self}");
        let (path, offset) = (self.inner.path.clone(), self.inner.offset);
        Self::build(kind, text, path, offset, None, Some(self))
    }

    fn build(
        kind: ErrorKind,
        message: String,
        path: Option<PathBuf>,
        offset: Option<u64>,
        source: Option<io::Error>,
        cause: Option<Error>,
    ) -> Self {
        Self { inner: Arc::new(Inner { kind, message, path, offset, source, cause, typed: None }) }
    }

    /// The class.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The file that the error is about, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.inner.path.as_deref()
    }

    /// The byte offset in [`path`](Self::path), where it is known.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.inner.offset
    }

    /// The error of the operating system, where there is one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        let own = self.inner.source.as_ref().map(io::Error::kind);
        own.or_else(|| self.inner.cause.as_ref().and_then(Error::io_kind))
    }

    /// Stored bytes are damaged or missing.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        self.kind() == ErrorKind::Corrupt
    }

    /// Another writer holds the store.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.kind() == ErrorKind::Locked
    }

    /// The disk is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind() == ErrorKind::Full
    }

    /// There is no room at the moment; the same call may go through later.
    #[must_use]
    pub fn is_backpressure(&self) -> bool {
        self.kind() == ErrorKind::Backpressure
    }

    /// The session has moved on.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    /// No such session, event or store.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// The writer failed earlier.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.kind() == ErrorKind::Poisoned
    }

    /// The handle is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.kind() == ErrorKind::Closed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.inner.kind, self.inner.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Some(cause) = &self.inner.cause {
            return Some(cause);
        }
        if let Some(typed) = &self.inner.typed {
            return Some(typed.as_ref());
        }
        self.inner.source.as_ref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}
