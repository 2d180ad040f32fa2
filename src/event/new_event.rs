//! What a caller appends through the dynamic door: a type, raw JSON, and what the envelope may carry.
//!
//! It never checks what only the session can know (A2, A4, A5): append does, before anything changes.

use std::sync::Arc;

use super::envelope::{ENVELOPE_FIELDS, extra_members};
use super::json::{JsonText, Members};
use super::{Class, Event, EventType, SurfaceOp, Time};
use crate::error::Result;

/// An event that has no place yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub(crate) event_type: EventType,
    pub(crate) data: JsonText,
    pub(crate) surface_op: Option<SurfaceOp>,
    pub(crate) sources: Option<Arc<[u64]>>,
    pub(crate) time: Option<Time>,
    pub(crate) extra: Option<Arc<str>>,
    /// A line to give back verbatim, and the seq that it names.
    pub(crate) line: Option<(Arc<str>, u64)>,
}

impl NewEvent {
    /// An event of a type with checked data.
    #[must_use]
    pub fn new(event_type: impl Into<EventType>, data: JsonText) -> Self {
        let event_type = event_type.into();
        Self { event_type, data, surface_op: None, sources: None, time: None, extra: None, line: None }
    }

    /// An event of a type with data that is checked here.
    ///
    /// # Errors
    /// Those of [`JsonText::parse`].
    pub fn raw(event_type: impl Into<EventType>, data: &str) -> Result<Self> {
        Ok(Self::new(event_type, JsonText::parse(data)?))
    }

    /// A stored event to be appended again, with its time, unknown fields and, at the same seq, its line.
    #[must_use]
    pub fn from_event(event: Event) -> Self {
        event.into_new()
    }

    /// With a surface marker.
    #[must_use]
    pub fn with_surface_op(mut self, op: SurfaceOp) -> Self {
        self.surface_op = Some(op);
        self.line = None;
        self
    }

    /// With the seqs of the events it was made of (`sourceEventSeqs`).
    #[must_use]
    pub fn with_sources(mut self, sources: Vec<u64>) -> Self {
        self.sources = Some(sources.into());
        self.line = None;
        self
    }

    /// With a time of its own instead of the store's clock.
    #[must_use]
    pub fn with_time(mut self, time: Time) -> Self {
        self.time = Some(time);
        self.line = None;
        self
    }

    /// With unknown envelope fields (V2), `object` being a JSON object of them; they replace earlier ones.
    ///
    /// # Errors
    /// [`InvalidJson`](crate::ErrorKind::InvalidJson) and [`InvalidValue`](crate::ErrorKind::InvalidValue) when it is not
    /// a JSON object, or names a field that the envelope itself uses.
    pub fn with_extra(mut self, object: &str) -> Result<Self> {
        self.extra = extra_members(object, &ENVELOPE_FIELDS)?;
        self.line = None;
        Ok(self)
    }

    /// The event this becomes at `seq`; `now` counts where it brings no time of its own.
    pub(crate) fn into_event(self, seq: u64, now: Time) -> Event {
        Event::assemble(seq, now, self)
    }

    /// The type's name.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.event_type.as_str()
    }

    /// What the engine knows of the type.
    #[must_use]
    pub fn class(&self) -> Class {
        self.event_type.class()
    }

    /// The payload.
    #[must_use]
    pub fn data(&self) -> &JsonText {
        &self.data
    }

    /// The marker, if any.
    #[must_use]
    pub fn surface_op(&self) -> Option<SurfaceOp> {
        self.surface_op
    }

    /// The sources, if any.
    #[must_use]
    pub fn sources(&self) -> Option<&[u64]> {
        self.sources.as_deref()
    }

    /// The time of its own, if any.
    #[must_use]
    pub fn time(&self) -> Option<&Time> {
        self.time.as_ref()
    }

    /// Unknown envelope fields as text, `"k":v,"l":w`.
    #[must_use]
    pub fn extra(&self) -> Option<&str> {
        self.extra.as_deref()
    }

    /// Unknown envelope fields one by one, duplicates included.
    #[must_use]
    pub fn extra_members(&self) -> Members<'_> {
        Members::of_text(self.extra.as_deref().unwrap_or(""))
    }
}
