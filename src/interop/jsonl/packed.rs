//! Packed rows: one line that stands for a run of chunk events.
//!
//! What always holds: a row is checked whole before its first member is handed out, and members are made one at
//! a time, so a row costs its own size, however many members it has. Texts keep their spelling: they are the
//! bytes between the quotes. What is never done: dropping a member of the row that has no place in a chunk.

use crate::event::{Event, JsonKind, JsonRef};

/// How many times larger than the row its members may be. Rows of one-letter texts with an id of a hundred letters come to
/// forty.
const MAX_EXPANSION: u64 = 1024;

/// A checked row; iterates over its members.
#[derive(Debug)]
pub(crate) struct PackedRow {
    /// `{"turn":…,"step":…,"chunk":{"type":…,"index":…,` and for tool calls id and name.
    head: String,
    /// The member's text: the key it gets.
    text_key: &'static str,
    /// What is left of the array of texts, in raw JSON.
    texts: String,
    texts_at: usize,
    /// What is left of the array of time differences.
    differences: String,
    differences_at: usize,
    seq: u64,
    time: i64,
    members: u64,
    given: u64,
}

/// How a row of a type is expanded.
struct Shape {
    chunk: &'static str,
    list: &'static str,
    text_key: &'static str,
    call: bool,
}

fn shape(event_type: &str) -> Option<Shape> {
    let (chunk, list, text_key, call) = match event_type {
        "text-chunks" => ("text-delta", "texts", "text", false),
        "reasoning-chunks" => ("reasoning-delta", "texts", "text", false),
        "tool-call-chunks" => ("tool-call-delta", "args", "argumentsDelta", true),
        _ => return None,
    };
    Some(Shape { chunk, list, text_key, call })
}

/// Whether lines of this type are packed rows.
pub(crate) fn is_packed_type(event_type: &str) -> bool {
    shape(event_type).is_some()
}

impl PackedRow {
    /// Checks the row and its place `seq`. The error says what is wrong with it.
    pub(crate) fn parse(row: JsonRef<'_>, event_type: &str) -> Result<Self, String> {
        let Some(shape) = shape(event_type) else { return Err(format!("{event_type:?} is no packed type")) };
        no_others(row, &["type", "seq0", "time0", "data"])?;
        let seq = row.get("seq0").and_then(|value| value.as_u64()).ok_or("seq0 is no whole number")?;
        let time = row.get("time0").and_then(|value| value.as_i64()).ok_or("time0 is no whole number")?;
        let data =
            row.get("data").filter(|data| data.kind() == JsonKind::Object).ok_or("data is no object")?;
        let own: &[&str] = if shape.call {
            &["turn", "step", "index", "id", "name", "dt", shape.list]
        } else {
            &["turn", "step", "index", "dt", shape.list]
        };
        no_others(data, own)?;
        let head = head(data, &shape)?;
        let list = data.get(shape.list).filter(|list| list.kind() == JsonKind::Array);
        let list = list.ok_or_else(|| format!("{} is no array", shape.list))?;
        let members = count_texts(list, shape.list)?;
        check_expansion(head.len(), members, row.raw().len())?;
        let differences = data.get("dt").filter(|dt| dt.kind() == JsonKind::Array).ok_or("dt is no array")?;
        check_times(differences, time, members)?;
        seq.checked_add(members).ok_or("seq0 is too large")?;
        Ok(Self {
            head,
            text_key: shape.text_key,
            texts: list.raw().to_owned(),
            texts_at: 0,
            differences: differences.raw().to_owned(),
            differences_at: 0,
            seq,
            time,
            members,
            given: 0,
        })
    }

    /// The sequence number of the first member.
    pub(crate) fn first_seq(&self) -> u64 {
        self.seq - self.given
    }

    /// The next member, or `None` behind the last.
    pub(crate) fn next_member(&mut self) -> Option<crate::Result<Event>> {
        if self.given == self.members {
            return None;
        }
        if self.given > 0 {
            let difference = next_number(&self.differences, &mut self.differences_at);
            // Checked when the row was parsed: every sum fits.
            self.time = self.time.saturating_add(difference.unwrap_or(0));
        }
        let text = next_string(&self.texts, &mut self.texts_at).unwrap_or("\"\"");
        let line = format!(
            "{{\"type\":\"assistant/chunk\",\"seq\":{},\"time\":{},\"data\":{}\"{}\":{}}}}}}}",
            self.seq, self.time, self.head, self.text_key, text
        );
        self.given += 1;
        self.seq += 1;
        Some(Event::parse_line(&line))
    }
}

/// Every member repeats the row's head, so a short row with a long id could fill any disk.
fn check_expansion(head: usize, members: u64, row: usize) -> Result<(), String> {
    let expanded = u64::try_from(head).unwrap_or(u64::MAX).saturating_mul(members);
    let most = u64::try_from(row).unwrap_or(u64::MAX).saturating_mul(MAX_EXPANSION);
    if expanded <= most {
        return Ok(());
    }
    Err(format!(
        "its {members} members would have {expanded} bytes, more than {MAX_EXPANSION} times the row's"
    ))
}

/// An unknown member would be lost in the expansion, so it makes the row unreadable instead.
fn no_others(object: JsonRef<'_>, known: &[&str]) -> Result<(), String> {
    for (key, _) in object.members() {
        if !known.iter().any(|name| key.eq_str(name)) {
            return Err(format!("member \"{}\" has no place in a chunk", key.raw_inner()));
        }
    }
    Ok(())
}

fn head(data: JsonRef<'_>, shape: &Shape) -> Result<String, String> {
    let number = |key: &str| {
        let value = data.get(key).filter(|value| value.kind() == JsonKind::Number);
        value.map(|value| value.raw()).ok_or_else(|| format!("{key} is no number"))
    };
    let (turn, step, index) = (number("turn")?, number("step")?, number("index")?);
    let mut head = format!(
        "{{\"turn\":{turn},\"step\":{step},\"chunk\":{{\"type\":\"{}\",\"index\":{index},",
        shape.chunk
    );
    if shape.call {
        let id = data.get("id").filter(|id| id.kind() == JsonKind::String).ok_or("id is no string")?;
        head.push_str("\"id\":");
        head.push_str(id.raw());
        head.push(',');
        if let Some(name) = data.get("name") {
            if name.kind() != JsonKind::String {
                return Err("name is no string".to_owned());
            }
            head.push_str("\"name\":");
            head.push_str(name.raw());
            head.push(',');
        }
    }
    Ok(head)
}

fn count_texts(list: JsonRef<'_>, key: &str) -> Result<u64, String> {
    let mut members = 0;
    for text in list.elements() {
        if text.kind() != JsonKind::String {
            return Err(format!("{key}[{members}] is no string"));
        }
        members += 1;
    }
    if members == 0 {
        return Err(format!("{key} is empty"));
    }
    Ok(members)
}

fn check_times(differences: JsonRef<'_>, first: i64, members: u64) -> Result<(), String> {
    let mut time = first;
    let mut count: u64 = 0;
    for difference in differences.elements() {
        let value = plain_integer(difference.raw()).ok_or_else(|| format!("dt[{count}] is no integer"))?;
        time = time.checked_add(value).ok_or_else(|| format!("dt[{count}] makes the time overflow"))?;
        count += 1;
    }
    if count.checked_add(1) != Some(members) {
        return Err(format!(
            "dt has {count} entries for {members} members; it needs one fewer than there are members"
        ));
    }
    Ok(())
}

fn plain_integer(raw: &str) -> Option<i64> {
    raw.trim().parse().ok()
}

/// The next number of a checked array of integers.
fn next_number(array: &str, at: &mut usize) -> Option<i64> {
    let rest = array.get(*at..)?;
    let start = rest.find(|c: char| c == '-' || c.is_ascii_digit())?;
    let rest = rest.get(start..)?;
    let length = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
    *at += start + length;
    plain_integer(rest.get(..length)?)
}

/// The next string of a checked array of strings, quotes included.
fn next_string<'a>(array: &'a str, at: &mut usize) -> Option<&'a str> {
    let rest = array.get(*at..)?;
    let start = rest.find('"')?;
    let bytes = rest.as_bytes();
    let mut end = start + 1;
    loop {
        match bytes.get(end)? {
            b'"' => break,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    *at += end + 1;
    rest.get(start..=end)
}
