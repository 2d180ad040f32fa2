//! `events`: what is in a session.
//!
//! What always holds: damage does not hide what is behind it. The hole is named on standard error, and the exit
//! code says that there was one.

use sessionlog::event::{Class, Event, JsonKind, JsonRef};

use crate::args;
use crate::failure::{Ended, Outcome};
use crate::holes::{Holes, ends_in_doubt};
use crate::output::{Output, printable, shortened};
use crate::stores::Stores;

/// How much of a payload a line for people shows.
const SHOWN_CHARS: usize = 100;

pub(crate) fn run(stores: &Stores, args: &args::Events, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let session = store.open(&args.id)?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut holes = Holes::new(&args.id, args.from);
    let mut end = session.seq();
    for event in session.read_from(args.from) {
        if left == 0 {
            // What comes next was not asked for; a hole before it was.
            end = event.as_ref().map_or(end, sessionlog::event::Event::seq);
            break;
        }
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                holes.lost(error)?;
                continue;
            }
        };
        holes.readable(event.seq());
        if args.event_type.as_deref().is_some_and(|wanted| wanted != event.event_type()) {
            continue;
        }
        left -= 1;
        print(&event, out)?;
    }
    let damaged = holes.end(end) | (end == session.seq() && ends_in_doubt(&session)?);
    Ok(Outcome::findings_if(damaged))
}

/// One event: the line exactly as exported, or a line for people.
pub(crate) fn print(event: &Event, out: &mut Output) -> std::io::Result<()> {
    if out.json {
        return out.line(event.to_line());
    }
    let event_type = printable(event.event_type());
    out.line(format_args!("{:>7}  {:<18} {}", event.seq(), event_type, gist(event)))
}

/// What an event says, in one line.
pub(crate) fn gist(event: &Event) -> String {
    let data = event.data().value();
    let body = data.get("message").unwrap_or(data);
    let text = match event.class() {
        Class::Chunk => data.get("chunk").map(chunk),
        Class::ToolCall => Some(tool_call(data)),
        _ => body.get("content").and_then(first_text),
    };
    let text = text.unwrap_or_else(|| data.raw().to_owned());
    let text = shortened(&text, SHOWN_CHARS);
    match event.surface_op() {
        Some(sessionlog::event::SurfaceOp::Replace { start, end }) => {
            format!("[replaces {start}..{end}] {text}")
        }
        _ => text,
    }
}

fn chunk(chunk: JsonRef<'_>) -> String {
    let text = |key: &str| {
        chunk.get(key).and_then(|text| text.as_str()).map(|text| text.to_utf8_lossy().into_owned())
    };
    let kind = text("type").unwrap_or_default();
    match text("text").or_else(|| text("argumentsDelta")).or_else(|| text("blockType")) {
        Some(text) => format!("{kind} {text:?}"),
        None => kind,
    }
}

fn tool_call(data: JsonRef<'_>) -> String {
    let text = |key: &str| {
        data.get(key).and_then(|text| text.as_str()).map(|text| text.to_utf8_lossy().into_owned())
    };
    format!("{} {}", text("name").unwrap_or_default(), text("arguments").unwrap_or_default())
}

/// The first text of a message's content, or the name of its first tool call.
fn first_text(content: JsonRef<'_>) -> Option<String> {
    if content.kind() == JsonKind::String {
        return content.as_str().map(|text| text.to_utf8_lossy().into_owned());
    }
    content.elements().find_map(|block| {
        let text = block.get("text").or_else(|| block.get("name"))?.as_str()?;
        Some(text.to_utf8_lossy().into_owned())
    })
}
