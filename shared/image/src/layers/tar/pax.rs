//! What extended headers say about the entry that follows them.

use super::Sparse;
use super::header::{Header, text};

/// Everything known of an entry before its own header.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) path: Option<Vec<u8>>,
    pub(super) target: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) sparse: Option<Sparse>,
    has_pax: bool,
    has_long_path: bool,
    has_long_target: bool,
}

impl Extras {
    pub(super) fn is_empty(&self) -> bool {
        !self.has_pax && !self.has_long_path && !self.has_long_target
    }

    /// Adds the content of an extended header. Two of a kind contradict each other, and readers differ in which they take.
    pub(super) fn add(&mut self, header: &Header, content: &[u8]) -> Result<(), &'static str> {
        const TWICE: &str = "an entry is described twice";
        let once = |seen: &mut bool| {
            if std::mem::replace(seen, true) {
                Err(TWICE)
            } else {
                Ok(())
            }
        };
        match header.kind() {
            b'g' => global(content),
            b'L' => {
                once(&mut self.has_long_path)?;
                self.path = Some(text(content).to_owned());
                Ok(())
            }
            b'K' => {
                once(&mut self.has_long_target)?;
                self.target = Some(text(content).to_owned());
                Ok(())
            }
            _ => {
                once(&mut self.has_pax)?;
                self.pax(content)
            }
        }
    }

    /// Of records with the same key the last one counts; an empty value leaves what the header says.
    fn pax(&mut self, content: &[u8]) -> Result<(), &'static str> {
        let (mut path, mut target) = (None, None);
        for (key, value) in records(content)? {
            match key {
                b"path" => path = name(value)?,
                b"linkpath" => target = name(value)?,
                b"size" => self.size = size(value)?,
                b"GNU.sparse.name" => self.sparse.get_or_insert_default().path = name(value)?,
                key if key.starts_with(b"GNU.sparse.") => {
                    self.sparse.get_or_insert_default();
                }
                _ => {}
            }
        }
        // The long names of GNU come first, wherever they stand.
        if !self.has_long_path {
            self.path = path;
        }
        if !self.has_long_target {
            self.target = target;
        }
        Ok(())
    }
}

/// Go passes over what is said about all entries, other tools apply it.
fn global(content: &[u8]) -> Result<(), &'static str> {
    let matters = |key: &[u8]| matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(b"GNU.sparse.");
    if records(content)?.iter().any(|(key, _)| matters(key)) {
        return Err("a global header renames or resizes all entries");
    }
    Ok(())
}

fn name(value: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    if value.contains(&0) {
        return Err("a PAX record has a name with a zero byte");
    }
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

fn size(value: &[u8]) -> Result<Option<u64>, &'static str> {
    let digits = std::str::from_utf8(value).unwrap_or_default();
    if value.is_empty() {
        return Ok(None);
    }
    let size = digits.parse::<i64>().ok().and_then(|size| u64::try_from(size).ok());
    size.map(Some).ok_or("a PAX record has a malformed size")
}

/// A key and its value.
type Record<'a> = (&'a [u8], &'a [u8]);

/// Records are `LENGTH KEY=VALUE\n`, the length being that of all of it. A value may hold anything, also line feeds.
fn records(mut content: &[u8]) -> Result<Vec<Record<'_>>, &'static str> {
    let mut found = Vec::new();
    while !content.is_empty() {
        let (record, rest) = record(content).ok_or("a PAX record is malformed")?;
        found.push(record);
        content = rest;
    }
    Ok(found)
}

fn record(content: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let space = content.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&content[..space]).ok()?.parse().ok()?;
    let (whole, rest) = content.split_at_checked(length)?;
    let line = whole.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|byte| *byte == b'=')?;
    (equals > 0).then(|| ((&line[..equals], &line[equals + 1..]), rest))
}
