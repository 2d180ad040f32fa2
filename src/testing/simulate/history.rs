//! What a session is by its lines alone: the naive fold that the engine is compared with.
//!
//! It knows the lines that the simulation itself makes, and closers, and finds their fields by their names. Nothing of
//! the engine is asked: turns, pending calls, surface, messages and closers follow from the text.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::testing::Random;

/// When the event `seq` of any session happened, in milliseconds.
pub(super) fn time_of(seq: usize) -> u64 {
    1_700_000_000_000 + seq as u64
}

#[derive(Debug, Clone)]
struct Pending {
    id: String,
    step: u64,
    /// The seq of its tool/call.
    started: Option<usize>,
}

/// The state behind some lines.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    len: usize,
    last_time: u64,
    turns: u64,
    turn: Option<u64>,
    steps: u64,
    step: Option<u64>,
    pending: Vec<Pending>,
    calls: u64,
    chunks: Vec<usize>,
    /// The seqs of the nodes, head to tail.
    pub(super) surface: Vec<usize>,
}

/// An event as the simulation makes it: what the session is asked to append, and the line that it becomes.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) kind: &'static str,
    pub(super) data: String,
    pub(super) sources: Option<Vec<u64>>,
    pub(super) replaces: Option<(u64, u64)>,
    pub(super) is_message: bool,
    pub(super) time: u64,
    pub(super) line: String,
}

impl History {
    pub(super) fn of(lines: &[Arc<str>]) -> Self {
        let mut history = Self::default();
        lines.iter().for_each(|line| history.take(line));
        history
    }

    /// Takes the next line in.
    pub(super) fn take(&mut self, line: &str) {
        let seq = self.len;
        self.len += 1;
        self.last_time = number(line, "time").unwrap_or(0);
        match text(line, "type").unwrap_or("") {
            "turn/start" => {
                self.turn = number(line, "turn");
                self.turns += 1;
                (self.step, self.steps) = (None, 0);
                self.pending.clear();
            }
            "turn/end" => {
                (self.turn, self.step) = (None, None);
                self.pending.clear();
            }
            "step/start" => {
                self.step = number(line, "step");
                self.steps += 1;
                self.chunks.clear();
            }
            "step/end" => {
                self.step = None;
                self.pending.clear();
            }
            "assistant/chunk" => self.chunks.push(seq),
            "assistant/message" => {
                let step = number(line, "step").unwrap_or(0);
                for part in line.split(r#""type":"tool-call","id":""#).skip(1) {
                    let id = part.split('"').next().unwrap_or("").to_owned();
                    self.calls += 1;
                    self.pending.push(Pending { id, step, started: None });
                }
                self.chunks.clear();
            }
            "tool/call" => {
                let id = text(line, "callId");
                if let Some(call) = self.pending.iter_mut().find(|call| Some(call.id.as_str()) == id) {
                    call.started = Some(seq);
                }
            }
            "tool/result" => {
                let id = text(line, "callId");
                self.pending.retain(|call| Some(call.id.as_str()) != id);
            }
            _ => {}
        }
        self.place(seq, line);
    }

    fn place(&mut self, seq: usize, line: &str) {
        if line.ends_with(r#""surfaceOp":"append"}"#) {
            self.surface.push(seq);
        } else if let Some((start, end)) = replaced(line) {
            let at = |node: u64| self.surface.iter().position(|seq| *seq as u64 == node);
            if let (Some(from), Some(to)) = (at(start), at(end)) {
                self.surface.splice(from..=to, [seq]);
            }
        }
    }

    /// The lines that close what is open (R2).
    pub(super) fn closers(&self) -> Vec<String> {
        let Some(turn) = self.turn else { return Vec::new() };
        let mut lines = Vec::new();
        let front = |kind: &str, seq: usize| {
            format!(r#"{{"type":"{kind}","seq":{seq},"time":{},"data":{{"turn":{turn}"#, self.last_time)
        };
        for call in &self.pending {
            let words = if call.started.is_some() { STARTED } else { NEVER_STARTED };
            let mut line = front("tool/result", self.len + lines.len());
            let id = &call.id;
            // A string takes what is written.
            let _ = write!(
                line,
                r#","step":{},"callId":"{id}","content":[{{"type":"text","text":"{words}"}}],"isError":true,{ERROR}}}"#,
                call.step
            );
            if let Some(seq) = call.started {
                let _ = write!(line, r#","sourceEventSeqs":[{seq}]"#);
            }
            lines.push(line + r#","surfaceOp":"append"}"#);
        }
        if let Some(step) = self.step {
            lines.push(front("step/end", self.len + lines.len()) + &format!(r#","step":{step}}}}}"#));
        }
        lines.push(front("turn/end", self.len + lines.len()) + r#","reason":{"kind":"interrupted"}}}"#);
        lines
    }

    /// The next event of an agent that keeps the rules, `length` letters long, chosen by `random`.
    pub(super) fn next(&self, length: usize, random: &mut Random) -> Made {
        let words = words(length, random);
        let Some(turn) = self.turn else {
            let data = format!(
                r#"{{"turn":{},"trigger":{{"kind":"message","source":{{"kind":"user"}}}}}}"#,
                self.turns + 1
            );
            return self.made("turn/start", data, None, None, false);
        };
        let Some(step) = self.step else {
            return match random.below(6) {
                0..3 => {
                    let data = format!(r#"{{"turn":{turn},"step":{}}}"#, self.steps + 1);
                    self.made("step/start", data, None, None, false)
                }
                3 if self.steps > 0 => {
                    let data = format!(r#"{{"turn":{turn},"reason":{{"kind":"completed"}}}}"#);
                    self.made("turn/end", data, None, None, false)
                }
                4 => self.made("plugin/note", format!(r#"{{"note":"{words}"}}"#), None, None, false),
                _ => self.user(&words, None),
            };
        };
        let named = format!(r#"{{"turn":{turn},"step":{step}"#);
        if let Some(call) = self.pending.iter().find(|call| call.started.is_none()) {
            let data = format!(r#"{named},"callId":"{}","name":"tool","arguments":"{words}"}}"#, call.id);
            return self.made("tool/call", data, None, None, false);
        }
        if let Some(call) = self.pending.first() {
            let data = format!(
                r#"{named},"callId":"{}","content":[{{"type":"text","text":"{words}"}}],"isError":false}}"#,
                call.id
            );
            let sources = call.started.map(|seq| vec![seq as u64]);
            return self.made("tool/result", data, sources, None, true);
        }
        match random.below(8) {
            0 => self.made("step/end", format!("{named}}}"), None, None, false),
            1 => self.assistant(&named, &words, random),
            2 => self.made("plugin/note", format!(r#"{{"note":"{words}"}}"#), None, None, false),
            _ => {
                let data = format!(r#"{named},"chunk":{{"type":"text-delta","index":0,"text":"{words}"}}}}"#);
                self.made("assistant/chunk", data, None, None, false)
            }
        }
    }

    fn assistant(&self, named: &str, words: &str, random: &mut Random) -> Made {
        let mut blocks = vec![format!(r#"{{"type":"text","text":"{words}"}}"#)];
        for more in 1..=random.below(3) {
            let id = format!("call-{}", self.calls + more);
            blocks.push(format!(r#"{{"type":"tool-call","id":"{id}","name":"tool","arguments":"{{}}"}}"#));
        }
        let data = format!(r#"{named},"content":[{}]}}"#, blocks.join(","));
        let sources = self.chunks.iter().map(|seq| *seq as u64).collect();
        self.made("assistant/message", data, Some(sources), None, true)
    }

    fn user(&self, words: &str, replaces: Option<(Vec<u64>, u64, u64)>) -> Made {
        let data =
            format!(r#"{{"content":[{{"type":"text","text":"{words}"}}],"source":{{"kind":"user"}}}}"#);
        let (sources, range) = match replaces {
            Some((sources, start, end)) => (Some(sources), Some((start, end))),
            None => (None, None),
        };
        self.made("user/message", data, sources, range, true)
    }

    /// A compaction of some range of the surface, if there is one and a turn is open.
    pub(super) fn replace(&self, length: usize, random: &mut Random) -> Option<Made> {
        if self.turn.is_none() || self.surface.is_empty() {
            return None;
        }
        let from = random.index(self.surface.len());
        let to = from + random.index(self.surface.len() - from);
        let shadowed: Vec<u64> = self.surface.get(from..=to)?.iter().map(|seq| *seq as u64).collect();
        let (start, end) = (*shadowed.first()?, *shadowed.last()?);
        let words = words(length, random);
        Some(self.user(&words, Some((shadowed, start, end))))
    }

    fn made(
        &self,
        kind: &'static str,
        data: String,
        sources: Option<Vec<u64>>,
        replaces: Option<(u64, u64)>,
        is_message: bool,
    ) -> Made {
        let (seq, time) = (self.len, time_of(self.len));
        let mut line = format!(r#"{{"type":"{kind}","seq":{seq},"time":{time},"data":{data}"#);
        if let Some(sources) = &sources {
            let all: Vec<String> = sources.iter().map(u64::to_string).collect();
            let _ = write!(line, r#","sourceEventSeqs":[{}]"#, all.join(","));
        }
        match replaces {
            Some((start, end)) => {
                let _ = write!(line, r#","surfaceOp":{{"op":"replace","start":{start},"end":{end}}}"#);
            }
            None if is_message => line.push_str(r#","surfaceOp":"append""#),
            None => {}
        }
        line.push('}');
        Made { kind, data, sources, replaces, is_message, time, line }
    }
}

const NEVER_STARTED: &str =
    "This tool call was never started: the session was interrupted first. It is safe to retry.";
const STARTED: &str = "This tool call was started, but the session was interrupted before a result was recorded. Its outcome is unknown: check what it did before you retry it.";
const ERROR: &str = r#""error":{"name":"InterruptedError","code":"interrupted"}"#;

fn words(length: usize, random: &mut Random) -> String {
    let letters = b"abcdefghijklmnopqrstuvwxyz .-";
    let letter = |random: &mut Random| random.pick(letters).map_or('x', |letter| char::from(*letter));
    if length < 64 {
        return (0..length).map(|_| letter(random)).collect();
    }
    // Long ones are one piece over and over: cheap, and no two are the same.
    let piece: String = (0..32).map(|_| letter(random)).collect();
    piece.chars().cycle().take(length).collect()
}

/// The member behind `"name":`, wherever it first stands.
fn behind<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = line;
    loop {
        let at = rest.find(name)?;
        let found = rest.get(at + name.len()..)?;
        if rest.get(..at)?.ends_with('"')
            && let Some(value) = found.strip_prefix("\":")
        {
            return Some(value);
        }
        rest = found;
    }
}

fn number(line: &str, name: &str) -> Option<u64> {
    let value = behind(line, name)?;
    value.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

fn text<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    behind(line, name)?.strip_prefix('"')?.split('"').next()
}

fn replaced(line: &str) -> Option<(u64, u64)> {
    let (_, op) = line.rsplit_once(r#""surfaceOp":{"op":"replace""#)?;
    Some((number(op, "start")?, number(op, "end")?))
}

/// The messages for a model that these lines make (M).
pub(super) fn messages(lines: &[Arc<str>]) -> Vec<Value> {
    let history = History::of(lines);
    let mut messages = Vec::new();
    for seq in &history.surface {
        let Some(event) = lines.get(*seq).and_then(|line| serde_json::from_str::<Value>(line).ok()) else {
            continue;
        };
        let member = |path: &str| event.pointer(path).cloned().unwrap_or_default();
        let (kind, content) = (member("/type"), member("/data/content"));
        messages.push(match kind.as_str().unwrap_or("") {
            "assistant/message" => json!({ "role": "assistant", "content": content }),
            "tool/result" => json!({ "role": "user", "content": [{
                "type": "tool-result",
                "toolCallId": member("/data/callId"),
                "content": content,
                "isError": member("/data/isError"),
            }] }),
            _ => json!({ "role": "user", "content": content }),
        });
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RepairState;
    use crate::event::check;
    use crate::event::{Event, Surface, derive_message};

    fn lines(seed: u64, count: usize) -> Vec<Arc<str>> {
        let mut random = Random::new(seed);
        let mut history = History::default();
        let mut lines: Vec<Arc<str>> = Vec::new();
        while lines.len() < count {
            let replaces = random.chance(1, 12).then(|| history.replace(9, &mut random)).flatten();
            let made = replaces.unwrap_or_else(|| history.next(random.index(90), &mut random));
            history.take(&made.line);
            lines.push(made.line.into());
        }
        lines
    }

    /// The naive fold and the domain's own agree on what the simulation makes, and it makes sessions that keep all rules.
    #[test]
    fn the_fold_agrees_with_the_domain() {
        let mut closed = 0;
        for seed in 0..60 {
            let lines = lines(seed, 60);
            for count in 0..lines.len() {
                let lines = &lines[..count];
                let events: Vec<Event> = lines.iter().map(|line| Event::parse_line(line).unwrap()).collect();
                assert!(check(&events).is_empty(), "{:?}", check(&events));
                assert!(events.iter().zip(lines).all(|(event, line)| event.to_line() == **line));
                let (mut repair, mut surface) = (RepairState::default(), Surface::default());
                for event in &events {
                    repair.observe(event);
                    if let Some(op) = event.surface_op() {
                        surface.apply(event.seq(), &op).unwrap();
                    }
                }
                let history = History::of(lines);
                let nodes: Vec<u64> = surface.nodes().map(|node| node.seq).collect();
                assert_eq!(nodes, history.surface.iter().map(|seq| *seq as u64).collect::<Vec<_>>());
                let Some(last) = events.last() else { continue };
                let closers = repair.closers(events.len() as u64, last.time());
                let closers: Vec<String> = closers.iter().map(Event::to_line).collect();
                assert_eq!(closers, history.closers());
                closed += closers.len();
                let derived: Vec<Value> = nodes
                    .iter()
                    .filter_map(|seq| derive_message(&events[usize::try_from(*seq).unwrap()]))
                    .map(|message| serde_json::from_str(&message.to_line()).unwrap())
                    .collect();
                assert_eq!(derived, messages(lines));
            }
        }
        assert!(closed > 1000);
    }
}
