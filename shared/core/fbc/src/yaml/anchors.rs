//! Keeps the parts of anchored values, to read them again where an alias or a merge key needs them.

use std::{collections::HashMap, ops::Range};

use crate::{canon::memory::MemoryMeter, error::FbcErrorKind};

use super::error::YamlError;
use super::source::{YamlPart, YamlSource};

/// Memory that the parser takes for the name of an anchor, and [`Tape`] for its place, in bytes:
/// entries of trees and tables that are half empty.
const ANCHOR_BYTES: usize = 160;

/// Anchored object or array that is being read.
struct OpenAnchor {
    id: usize,
    /// Number of open objects and arrays around the value.
    level: usize,
}

/// Parts that are read again.
struct Replay {
    parts: Range<usize>,
    /// True if an alias asked for them, or for what they are in.
    is_aliased: bool,
}

/// Parts of one document. Those of anchored values and of the lists of merge keys are kept.
#[derive(Default)]
pub(super) struct Tape<'a> {
    parts: Vec<YamlPart<'a>>,
    /// Parts of the value of each anchor; an empty range while it is being read.
    anchors: HashMap<usize, Range<usize>>,
    open: Vec<OpenAnchor>,
    /// Number of open objects and arrays.
    level: usize,
    /// True if parts are kept although they have no anchor.
    pub(super) keeps: bool,
    replays: Vec<Replay>,
    /// Place of the last part, if it is kept.
    pub(super) at: usize,
}

impl<'a> Tape<'a> {
    /// Returns the next part: one that is read again, else one of the source.
    #[inline]
    pub(super) fn next(
        &mut self,
        source: &mut YamlSource<'a>,
        memory: &mut MemoryMeter,
    ) -> Result<Option<YamlPart<'a>>, YamlError> {
        while let Some(replay) = self.replays.last_mut() {
            if let Some(at) = replay.parts.next() {
                self.at = at;
                return Ok(Some(self.parts[at].clone()));
            }
            self.replays.pop();
        }
        let Some((part, anchor)) = source.part()? else {
            return Ok(None);
        };
        if anchor > 0 || self.keeps || !self.open.is_empty() {
            self.keep(&part, anchor, memory);
            memory.check().map_err(|kind| source.error(kind))?;
        }
        match part {
            YamlPart::Begin(_) => self.level += 1,
            YamlPart::End => {
                self.level = self.level.saturating_sub(1);
                if let Some(open) = self.open.pop_if(|open| open.level == self.level) {
                    self.end(open.id);
                }
            }
            YamlPart::Scalar(_) | YamlPart::Alias(_) => {}
        }
        Ok(Some(part))
    }

    fn keep(&mut self, part: &YamlPart<'a>, id: usize, memory: &mut MemoryMeter) {
        self.at = self.parts.len();
        memory.take(part.memory());
        memory.push(&mut self.parts, part.clone());
        if id > 0 && memory.take(ANCHOR_BYTES) {
            self.anchors.insert(id, self.at..self.at);
            match part {
                YamlPart::Begin(_) => self.open.push(OpenAnchor {
                    id,
                    level: self.level,
                }),
                _ => self.end(id),
            }
        }
    }

    /// Ends the value of an anchor behind the last part.
    fn end(&mut self, id: usize) {
        if let Some(parts) = self.anchors.get_mut(&id) {
            parts.end = self.parts.len();
        }
    }

    /// Returns the parts of the value that an alias refers to.
    pub(super) fn value(&self, id: usize) -> Result<Range<usize>, FbcErrorKind> {
        let value = self
            .anchors
            .get(&id)
            .filter(|parts| !parts.is_empty())
            .cloned();
        value.ok_or_else(|| FbcErrorKind::malformed("an alias refers to the value that it is in"))
    }

    /// Returns the first part of the value that an alias refers to.
    pub(super) fn first(&self, id: usize) -> Result<&YamlPart<'a>, FbcErrorKind> {
        Ok(&self.parts[self.value(id)?.start])
    }

    /// Reads kept parts again before what comes next: for an alias, or for the list of a merge key.
    pub(super) fn replay(
        &mut self,
        parts: Range<usize>,
        is_aliased: bool,
        memory: &mut MemoryMeter,
    ) {
        let is_aliased = is_aliased || self.is_aliased();
        memory.push(&mut self.replays, Replay { parts, is_aliased });
    }

    /// Returns true if the last part is read again because of an alias.
    pub(super) fn is_aliased(&self) -> bool {
        self.replays.last().is_some_and(|replay| replay.is_aliased)
    }

    /// Returns the memory for the parts and anchors, in bytes.
    pub(super) fn memory(&self) -> usize {
        let texts: usize = self.parts.iter().map(YamlPart::memory).sum();
        let lists = self.parts.capacity() * size_of::<YamlPart<'_>>()
            + self.replays.capacity() * size_of::<Replay>();
        lists + texts + self.anchors.len() * ANCHOR_BYTES
    }
}

/// Up to this number of nodes, aliases may make up 99 % of a document (go-yaml, `decode.go`).
const LOW: f64 = 400_000.0;
/// From this number of nodes on, aliases may make up 10 % of a document. Between the two the share
/// falls evenly.
const HIGH: f64 = 4_000_000.0;

/// Counter of the bytes and nodes that aliases add.
pub(super) struct AliasBudget {
    limit: usize,
    /// Number of canonical bytes that aliases have added.
    spent: usize,
    nodes: usize,
    aliased: usize,
}

impl AliasBudget {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            spent: 0,
            // The document counts as a node.
            nodes: 1,
            aliased: 0,
        }
    }

    /// Counts one node. Fails if aliases make up too large a part of the document.
    #[inline]
    pub(super) fn node(&mut self, is_aliased: bool) -> Result<(), FbcErrorKind> {
        self.nodes += 1;
        self.aliased += usize::from(is_aliased);
        // As in go-yaml, small documents may consist of aliases.
        if self.aliased > 100 && self.nodes > 1000 && self.excessive() {
            return Err(FbcErrorKind::AliasRatio);
        }
        Ok(())
    }

    /// Counts bytes that an alias has added. Fails if aliases add too many.
    pub(super) fn add_bytes(&mut self, bytes: usize) -> Result<(), FbcErrorKind> {
        self.spent = self.spent.saturating_add(bytes);
        if self.spent > self.limit {
            return Err(FbcErrorKind::limit("aliasBytes", self.limit));
        }
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a document has far less than 2^52 nodes"
    )]
    fn excessive(&self) -> bool {
        let nodes = self.nodes as f64;
        let part = ((nodes - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
        self.aliased as f64 / nodes > 0.99 - 0.89 * part
    }
}
