//! What `check` needs to know of an event, also of one that no log would take.
//!
//! Reading a line is lenient: a field of a wrong shape is noted and the rest is still looked at.

use std::borrow::Cow;

use crate::Result;
use crate::event::envelope::sources_from_json;
use crate::event::{Class, Envelope, Event, JsonKind, JsonRef, SurfaceOp, Time};

/// An event's envelope, as far as it can be read.
pub(super) struct Facts<'a> {
    pub(super) seq: Option<u64>,
    pub(super) class: Class,
    pub(super) data: Option<JsonRef<'a>>,
    pub(super) sources: Listed<'a>,
    pub(super) op: Marked,
    /// Fields of the envelope that are missing or of another type.
    pub(super) faults: Vec<&'static str>,
}

/// `sourceEventSeqs`.
pub(super) enum Listed<'a> {
    Absent,
    Valid(Cow<'a, [u64]>),
    Malformed {
        /// Those entries that are seqs.
        seqs: Vec<u64>,
        reason: String,
    },
}

impl Listed<'_> {
    /// The seqs that are named.
    pub(super) fn seqs(&self) -> &[u64] {
        match self {
            Self::Absent => &[],
            Self::Valid(seqs) => seqs,
            Self::Malformed { seqs, .. } => seqs,
        }
    }
}

/// `surfaceOp`.
pub(super) enum Marked {
    Absent,
    Valid(SurfaceOp),
    Malformed(&'static str),
}

impl<'a> Facts<'a> {
    pub(super) fn of_event(event: &'a Event) -> Self {
        Self {
            seq: Some(event.seq()),
            class: event.class(),
            data: Some(event.data().value()),
            sources: event.sources().map_or(Listed::Absent, |seqs| Listed::Valid(seqs.into())),
            op: event.surface_op().map_or(Marked::Absent, Marked::Valid),
            faults: Vec::new(),
        }
    }

    /// # Errors
    /// The line is not one JSON object.
    pub(super) fn of_line(line: &'a str) -> Result<Self> {
        let envelope = Envelope::parse(line)?;
        let mut faults = Vec::new();
        let name = envelope.event_type().and_then(|name| name.as_str());
        if name.is_none() {
            faults.push("type is missing or no string");
        }
        if envelope.time().and_then(|time| Time::parse_json(time.as_number()?)).is_none() {
            faults.push("time is missing or no number");
        }
        if envelope.data().is_none() {
            faults.push("data is missing");
        }
        Ok(Self {
            seq: envelope.seq().and_then(|seq| seq.as_u64()),
            class: name.map_or(Class::Other, |name| Class::of(&name.to_utf8_lossy())),
            data: envelope.data(),
            sources: envelope.sources().map_or(Listed::Absent, listed),
            op: envelope.surface_op().map_or(Marked::Absent, marked),
            faults,
        })
    }
}

fn listed(value: JsonRef<'_>) -> Listed<'static> {
    match sources_from_json(value) {
        Ok(seqs) => Listed::Valid(seqs.into()),
        Err(reason) => {
            let entries = Some(value).filter(|value| value.kind() == JsonKind::Array).into_iter();
            let seqs = entries.flat_map(|array| array.elements()).filter_map(|entry| entry.as_u64());
            Listed::Malformed { seqs: seqs.collect(), reason }
        }
    }
}

fn marked(value: JsonRef<'_>) -> Marked {
    match SurfaceOp::from_json(value) {
        Ok(Some(op)) => Marked::Valid(op),
        Ok(None) => Marked::Absent,
        Err(reason) => Marked::Malformed(reason),
    }
}
