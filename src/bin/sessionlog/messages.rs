//! `messages`: what a model would get.
//!
//! What is never done: printing what is left of a session that lost events to damage. A lost replacement would bring
//! back what it replaced, and a program would take it for the whole. The holes are named on standard error instead.

use crate::failure::{Ended, Outcome};
use crate::holes::{ends_in_doubt, explained};
use crate::output::{Output, printable};
use crate::stores::Stores;
use sessionlog::event::{JsonRef, Message};

pub(crate) fn run(stores: &Stores, id: &str, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let session = store.open(id)?;
    for message in session.derive_messages().map_err(|error| explained(&session, error))? {
        print(&message, out)?;
    }
    Ok(Outcome::findings_if(ends_in_doubt(&session)?))
}

/// One message: `{"role","content"}`, or lines for people.
pub(crate) fn print(message: &Message, out: &mut Output) -> std::io::Result<()> {
    if out.json {
        return out.line(message.to_line());
    }
    out.line(format_args!("{}:", printable(&message.role())))?;
    for block in message.content().elements() {
        for line in shown(block).lines() {
            out.line(format_args!("    {}", printable(line)))?;
        }
    }
    Ok(())
}

/// A content block as text.
fn shown(block: JsonRef<'_>) -> String {
    let text = |block: JsonRef<'_>, key: &str| {
        block.get(key).and_then(|text| text.as_str()).map(|text| text.to_utf8_lossy().into_owned())
    };
    let kind = text(block, "type").unwrap_or_default();
    match kind.as_str() {
        "text" => text(block, "text").unwrap_or_default(),
        "tool-call" => {
            let name = text(block, "name").unwrap_or_default();
            format!("[calls {name} {}]", text(block, "arguments").unwrap_or_default())
        }
        "tool-result" => {
            let id = text(block, "toolCallId").unwrap_or_default();
            let texts = block.get("content").map(|content| {
                content.elements().filter_map(|inner| text(inner, "text")).collect::<Vec<_>>().join("\n")
            });
            let failed = block.get("isError").and_then(|flag| flag.as_bool()) == Some(true);
            format!(
                "[result of {id}{}] {}",
                if failed { ", an error" } else { "" },
                texts.unwrap_or_default()
            )
        }
        "reasoning" => format!("[reasons] {}", text(block, "text").unwrap_or_default()),
        _ => format!("[{kind}]"),
    }
}
