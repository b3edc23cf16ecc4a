//! Grammar of YAML documents with anchors, aliases, merges and flow collections.

use arbitrary::{Result, Unstructured};

/// Size to which one part of a document may be repeated, in bytes. Limits on memory apply from 512 KiB on.
const LARGE: usize = 600 << 10;
/// Maximum number of levels.
const DEPTH: usize = 6;

/// Scalars, with a comma between.
const SCALARS: &str = "a,1,~,yes,1e3,.inf,0x1F,'','a b',\"\\u00e9\",!!binary aGk=,!!str 1,? a,<<,,2001-12-14";
const KEYS: [&str; 10] = ["a", "b", "c", "schema", "\"d\\n\"", "1", "yes", "? e", "!!str f", "~"];
const BLOCKS: [&str; 4] = ["|\n  a\n   b\n", ">-\n  a\n\n  b\n", "|+2\n   a\n\n", "'a\n\n  b'\n"];

/// Returns the document that the choices describe. Any bytes describe one.
pub(crate) fn yaml(choices: &[u8]) -> String {
    let mut choices = Unstructured::new(choices);
    // Large documents take a hundred times as long as small ones, so they are rare.
    let is_large = choices.ratio(1, 32).unwrap_or(false);
    let mut document = Yaml {
        choices,
        out: String::new(),
        anchors: 0,
        repeated: !is_large,
    };
    // It fails if the choices end, which ends the document too.
    let _ = document.entries();
    document.out
}

struct Yaml<'a> {
    choices: Unstructured<'a>,
    out: String,
    /// Number of anchors so far. Their names are numbers.
    anchors: usize,
    /// True if no part may be repeated any more. Only one is, so that a document does not become too large.
    repeated: bool,
}

impl Yaml<'_> {
    fn more(&mut self) -> Result<bool> {
        Ok(!self.choices.is_empty() && self.choices.ratio(3, 4)?)
    }

    fn add(&mut self, texts: &[&str]) -> Result<()> {
        let text = self.choices.choose(texts)?;
        self.out.push_str(text);
        Ok(())
    }

    /// Adds the entries of the document.
    fn entries(&mut self) -> Result<()> {
        while !self.choices.is_empty() {
            let start = self.out.len();
            match self.choices.int_in_range(0..=9)? {
                0 => self.out.push_str("# comment"),
                1 => self.merged(1)?,
                2 => {
                    self.add(&KEYS)?;
                    self.out.push_str(":\n- ");
                    self.value(1)?;
                }
                3 => {
                    self.add(&KEYS)?;
                    self.out.push_str(": ");
                    self.anchor()?;
                    self.add(&BLOCKS)?;
                }
                4 => self.add(&["---", "...", "--- {}\n---", "%TAG !a! b\n---", "- a"])?,
                _ => {
                    self.add(&KEYS)?;
                    self.out.push_str(": ");
                    self.value(1)?;
                }
            }
            self.out.push('\n');
            self.repeat(start, "")?;
        }
        Ok(())
    }

    /// Repeats what was added since `start`, if that is chosen.
    fn repeat(&mut self, start: usize, between: &str) -> Result<()> {
        if self.repeated || !self.choices.ratio(1, 8)? || self.out.len() == start {
            return Ok(());
        }
        self.repeated = true;
        let part = [between, &self.out[start..]].concat();
        self.out.push_str(&part.repeat(LARGE / part.len()));
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<()> {
        self.anchor()?;
        match self.choices.int_in_range(0..=9)? {
            0 | 1 => self.alias(),
            2..=4 if depth < DEPTH => self.list(depth + 1),
            5..=7 if depth < DEPTH => self.object(depth + 1),
            _ => self.add(&SCALARS.split(',').collect::<Vec<_>>()),
        }
    }

    fn anchor(&mut self) -> Result<()> {
        if self.choices.ratio(1, 4)? {
            self.anchors += 1;
            self.out.push_str(&format!("&{} ", self.anchors));
        }
        Ok(())
    }

    /// Adds an alias of one of the last anchors, also of one that is still open.
    fn alias(&mut self) -> Result<()> {
        let back = self.choices.int_in_range(0..=3)?;
        self.out.push_str(&format!("*{} ", self.anchors.saturating_sub(back)));
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Result<()> {
        self.out.push('[');
        while self.more()? {
            let start = self.out.len();
            self.value(depth)?;
            self.repeat(start, ",")?;
            self.out.push(',');
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<()> {
        self.out.push('{');
        while self.more()? {
            let start = self.out.len();
            if self.choices.ratio(1, 4)? {
                self.merged(depth)?;
            } else {
                self.add(&KEYS)?;
                self.out.push_str(": ");
                self.value(depth)?;
            }
            self.repeat(start, ",")?;
            self.out.push(',');
        }
        self.out.push('}');
        Ok(())
    }

    /// Adds a merge key and its value.
    fn merged(&mut self, depth: usize) -> Result<()> {
        self.out.push_str("<<: ");
        self.anchor()?;
        match self.choices.int_in_range(0..=3)? {
            0 => self.alias(),
            1 if depth < DEPTH => self.object(depth + 1),
            _ if depth < DEPTH => self.list(depth + 1),
            _ => self.alias(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::yaml;
    use crate::seeds::noise;

    #[test]
    fn yaml_reaches_every_part_of_the_grammar() {
        let mut all = String::new();
        for seed in 0..200 {
            all += &yaml(&noise(seed));
        }
        for part in "<<: [,<<: {,<<: *,&1 [,*1 ,&2 {,|+2,---,!!binary".split(',') {
            assert!(all.contains(part), "{part:?} is missing");
        }
        assert!(all.len() > super::LARGE, "nothing is repeated");
    }
}
