//! Extended headers, which describe the entry that follows them.

use std::collections::BTreeMap;

use super::header::{Header, NEGATIVE, text};

/// The content of all extended headers before an entry.
#[derive(Default)]
pub(super) struct EntryExtras {
    long_path: Option<Vec<u8>>,
    long_target: Option<Vec<u8>>,
    pax: Option<PaxHeader>,
}

/// The fields of a header that PAX records replace. A record with an empty value replaces nothing.
#[derive(Default)]
pub(super) struct PaxHeader {
    pub(super) path: Option<Vec<u8>>,
    pub(super) target: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) sparse: Option<Vec<u8>>,
    /// The problem with a number. As in Go, it is an error only when the entry comes.
    fault: Option<&'static str>,
}

impl EntryExtras {
    pub(super) fn is_empty(&self) -> bool {
        self.pax.is_none() && self.long_path.is_none() && self.long_target.is_none()
    }

    /// Returns the fields that replace those of the header. A field without a value replaces
    /// nothing.
    pub(super) fn into_fields(self) -> Result<PaxHeader, &'static str> {
        let mut pax = self.pax.unwrap_or_default();
        if let Some(fault) = pax.fault {
            return Err(fault);
        }
        // GNU's long names win, whatever the order of the headers. Go ignores empty ones.
        let long_path = self.long_path.filter(|name| !name.is_empty());
        let long_target = self.long_target.filter(|name| !name.is_empty());
        pax.path = long_path.or(pax.path);
        pax.target = long_target.or(pax.target);
        Ok(pax)
    }

    /// Adds the content of an extended header. Two of a kind are refused, because readers differ in
    /// which they use.
    pub(super) fn add(&mut self, header: &Header, content: &[u8]) -> Result<(), &'static str> {
        let is_new = match header.kind() {
            b'g' => {
                global(content)?;
                // Go forgets the description here, and other readers apply it to the next entry.
                return match self.is_empty() {
                    true => Ok(()),
                    false => Err("a global header stands between an entry and its description"),
                };
            }
            b'L' => self.long_path.replace(text(content).to_owned()).is_none(),
            b'K' => self.long_target.replace(text(content).to_owned()).is_none(),
            _ => self.pax.replace(PaxHeader::parse(content)?).is_none(),
        };
        if !is_new {
            return Err("an entry is described twice");
        }
        Ok(())
    }
}

impl PaxHeader {
    /// Applies PAX records. The last record of a key counts.
    fn parse(content: &[u8]) -> Result<Self, &'static str> {
        let mut header = Self::default();
        let mut last = BTreeMap::new();
        for record in Records(content) {
            let (key, value) = record?;
            match key {
                b"path" | b"linkpath" | b"size" | b"uid" | b"gid" | b"mtime" | b"atime"
                | b"ctime" => {
                    last.insert(key, value);
                }
                b"GNU.sparse.name" => header.sparse = Some(value.to_owned()),
                key if key.starts_with(b"GNU.sparse.") => {
                    header.sparse.get_or_insert_default();
                }
                _ => {}
            }
        }
        let value = |key: &str| {
            last.get(key.as_bytes())
                .copied()
                .filter(|value| !value.is_empty())
        };
        let mut owners = ["uid", "gid"].into_iter().filter_map(value);
        let mut times = ["mtime", "atime", "ctime"].into_iter().filter_map(value);
        // As Go: no cluster could read an image with other owners or times.
        if !owners.all(|id| integer(id).is_some()) || !times.all(is_time) {
            header.fault = Some("a PAX record has a malformed number");
        }
        match value("size").map(size).transpose() {
            Ok(size) => header.size = size,
            Err(fault) => header.fault = Some(fault),
        }
        header.path = value("path").map(<[u8]>::to_owned);
        header.target = value("linkpath").map(<[u8]>::to_owned);
        Ok(header)
    }
}

/// Checks a global header. Go ignores its names and sizes and other tools apply them, so those are
/// refused.
fn global(content: &[u8]) -> Result<(), &'static str> {
    for record in Records(content) {
        let (key, _) = record?;
        if matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(b"GNU.sparse.") {
            return Err("a global header renames or resizes all entries");
        }
    }
    Ok(())
}

fn size(value: &[u8]) -> Result<u64, &'static str> {
    let size = integer(value).ok_or("a PAX record has a malformed size")?;
    size.try_into().map_err(|_| NEGATIVE)
}

fn integer(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Returns true for seconds since 1970 with an optional fraction.
fn is_time(value: &[u8]) -> bool {
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let seconds = parts.next().unwrap_or_default();
    let fraction = parts.next().unwrap_or_default();
    integer(seconds).is_some() && fraction.iter().all(u8::is_ascii_digit)
}

/// Key and value of a PAX record.
type PaxRecord<'a> = (&'a [u8], &'a [u8]);

/// Splits records of the form `LENGTH KEY=VALUE\n`. The length counts the whole record, so a value
/// may hold line feeds. An iterator, because a list of the shortest records would take six times
/// their bytes.
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Result<PaxRecord<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let found = record(self.0);
        self.0 = found.map_or(&[], |(_, rest)| rest);
        Some(
            found
                .map(|(record, _)| record)
                .ok_or("a PAX record is malformed"),
        )
    }
}

fn record(content: &[u8]) -> Option<(PaxRecord<'_>, &[u8])> {
    let space = content.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&content[..space]).ok()?.parse().ok()?;
    // By the length and not by the line feed: a value with a line feed would else start a record of
    // its choice.
    let (whole, rest) = content.split_at_checked(length)?;
    let line = whole.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|byte| *byte == b'=')?;
    let key = &line[..equals];
    let value = &line[equals + 1..];
    // Go cuts no name at a zero byte here, and C programs do.
    let is_text = match key {
        b"path" | b"linkpath" | b"uname" | b"gname" => !value.contains(&0),
        key => !key.is_empty() && !key.contains(&0),
    };
    is_text.then_some(((key, value), rest))
}
