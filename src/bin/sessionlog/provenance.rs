//! `provenance`: where an event comes from and what became of it.

use serde::Serialize;

use crate::failure::{Ended, Outcome};
use crate::output::Output;
use crate::stores::Stores;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    seq: u64,
    sources: &'a [u64],
    derived: &'a [u64],
    shadows: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    shadowed_by: Option<u64>,
}

pub(crate) fn run(stores: &Stores, id: &str, seq: u64, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let found = store.open(id)?.provenance(seq)?;
    if out.json {
        out.json(&Shown {
            seq,
            sources: &found.sources,
            derived: &found.derived,
            shadows: &found.shadows,
            shadowed_by: found.shadowed_by,
        })?;
        return Ok(Outcome::Fine);
    }
    out.line(format_args!("event {seq}"))?;
    out.line(format_args!("  made from    {}", runs(&found.sources)))?;
    out.line(format_args!("  source of    {}", runs(&found.derived)))?;
    out.line(format_args!("  shadows      {}", runs(&found.shadows)))?;
    let by = found.shadowed_by.map_or_else(|| "-".to_owned(), |by| by.to_string());
    out.line(format_args!("  shadowed by  {by}"))?;
    Ok(Outcome::Fine)
}

/// Sequence numbers for people: `3, 5-9`.
pub(crate) fn runs(seqs: &[u64]) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for seq in seqs {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*seq) => *last = *seq,
            _ => parts.push((*seq, *seq)),
        }
    }
    if parts.is_empty() {
        return "-".to_owned();
    }
    let shown = parts.iter().map(
        |(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        },
    );
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(runs(&[]), "-");
        assert_eq!(runs(&[3, 5, 6, 7, 9, 8]), "3, 5-7, 9, 8");
        assert_eq!(runs(&[u64::MAX, 0]), format!("{}, 0", u64::MAX));
    }
}
