//! The bundled session: an agent that mends a small program, in three turns.

use sessionlog::event::{Class, Event, Header};
use sessionlog::interop::jsonl::Reader;
use sessionlog::{Error, ErrorKind, Result};

/// The file, as an agent harness would have written it.
pub(super) const TEXT: &str = include_str!("session.jsonl");

/// The first event that is never flushed: the answer to the second of three parallel tool calls.
const FIRST_UNFLUSHED: u64 = 367;
/// With it goes the start of the third call, in one batch.
const UNFLUSHED: usize = 2;

/// The session in parts.
pub(super) struct Source {
    pub(super) header: Header,
    /// What is flushed, step by step.
    pub(super) steps: Vec<Vec<Event>>,
    /// What is appended and not flushed before the end comes.
    pub(super) unflushed: Vec<Event>,
}

impl Source {
    pub(super) fn read() -> Result<Self> {
        let mut reader = Reader::new(TEXT.as_bytes(), "demo/session.jsonl")?;
        let header = reader.header().clone();
        let (mut steps, mut step, mut unflushed) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(event) = reader.next_event()? {
            if event.seq() >= FIRST_UNFLUSHED {
                unflushed.push(event);
                if unflushed.len() == UNFLUSHED {
                    break;
                }
                continue;
            }
            let ends = matches!(event.class(), Class::StepEnd | Class::TurnEnd);
            step.push(event);
            if ends {
                steps.push(std::mem::take(&mut step));
            }
        }
        // The step in the middle of which the recorder dies: its first part was flushed.
        steps.push(step);
        if unflushed.len() < UNFLUSHED {
            return Err(Error::new(ErrorKind::Internal, "the bundled session is too short"));
        }
        Ok(Self { header, steps, unflushed })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use sessionlog::event::{Checker, SurfaceOp};

    #[test]
    fn the_session_is_as_rich_as_a_real_one_and_breaks_no_rule() {
        let mut reader = Reader::new(TEXT.as_bytes(), "demo").unwrap();
        let mut checker = Checker::new();
        while let Some(violations) = reader.check_next(&mut checker).unwrap() {
            assert_eq!(violations, []);
        }
        let mut reader = Reader::new(TEXT.as_bytes(), "demo").unwrap();
        let mut classes = BTreeSet::new();
        let mut replaced = 0;
        let mut text = format!("{}\n", reader.header().to_line());
        while let Some(event) = reader.next_event().unwrap() {
            classes.insert(event.class().name());
            if matches!(event.surface_op(), Some(SurfaceOp::Replace { .. })) {
                replaced = event.sources().unwrap().len();
            }
            text.push_str(&event.to_line());
            text.push('\n');
        }
        assert_eq!(text, TEXT);
        assert_eq!(classes.len(), Class::ALL.len());
        assert!(replaced > 10);
    }

    #[test]
    fn the_end_comes_between_parallel_calls() {
        let source = Source::read().unwrap();
        let classes: Vec<Class> = source.unflushed.iter().map(Event::class).collect();
        assert_eq!(classes, [Class::ToolResult, Class::ToolCall]);
        assert_eq!(source.steps.last().unwrap().last().unwrap().class(), Class::ToolCall);
        // Enough bytes for several sectors, so that one of them can be lost.
        assert!(source.unflushed.iter().map(|event| event.data().len()).sum::<usize>() > 4 * 512);
    }
}
