//! The text inside LOCK: who holds it. Always: information for people; the lock itself is the kernel's (D5). Never: a
//! reason to believe that somebody does or does not hold it.

use std::fmt;

/// Process and host of the writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockInfo {
    pub(crate) pid: u32,
    pub(crate) host: String,
}

/// Longest host name that is kept, in characters.
const MAX_HOST: usize = 255;

impl LockInfo {
    pub(crate) fn new(pid: u32, host: &str) -> Self {
        let host = host.chars().filter(|c| !c.is_control()).take(MAX_HOST).collect();
        Self { pid, host }
    }

    /// Two lines: `pid N`, `host NAME`.
    pub(crate) fn to_text(&self) -> String {
        format!("pid {}\nhost {}\n", self.pid, self.host)
    }

    /// Reads what [`to_text`](Self::to_text) wrote; anything else is no information.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let pid = lines.next()?.strip_prefix("pid ")?.parse().ok()?;
        let host = lines.next()?.strip_prefix("host ")?;
        Some(Self::new(pid, host))
    }
}

impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on host {}", self.pid, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::LockInfo;

    #[test]
    fn comes_back_without_control_characters() {
        let info = LockInfo::new(42, "build\n-01");
        assert_eq!(info.to_text(), "pid 42\nhost build-01\n");
        assert_eq!(LockInfo::parse(&info.to_text()), Some(info.clone()));
        assert_eq!(info.to_string(), "process 42 on host build-01");
    }

    #[test]
    fn other_text_is_no_information() {
        for text in ["", "pid x\nhost a\n", "pid 1", "host a\npid 1\n", "pid 99999999999\nhost a\n"] {
            assert_eq!(LockInfo::parse(text), None, "{text:?}");
        }
    }
}
