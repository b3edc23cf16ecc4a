//! Remembers the value of each anchor, as canonical text where it has one.

use crate::{
    canon::{Container, LineBuilder, TextRange, memory::MemoryMeter},
    error::FbcErrorKind,
    yaml::resolve::ScalarValue,
};

/// Memory that the parser takes for the name of an anchor, in bytes: an entry of a B-tree whose nodes are half empty.
const NAME_BYTES: usize = 64;

/// Object or array that an alias can refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnchoredContainer {
    /// Kind of the value; `None` for the entries of a merged object, which have no braces of their own.
    pub(super) kind: Option<Container>,
    pub(super) range: TextRange,
    /// Number of nodes in it, with those of its aliases.
    pub(super) nodes: usize,
    /// Number of containers from it to the innermost one in it.
    pub(super) depth: usize,
}

/// Value that an alias can refer to.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnchorValue {
    /// It is being read: an alias to it is a cycle.
    Open,
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    /// Digits in the text.
    Big(TextRange),
    /// String in the text, with its quotes and escapes.
    String(TextRange),
    /// The string `<<` where it was a merge key.
    MergeKey,
    Container(AnchoredContainer),
}

impl AnchorValue {
    /// Returns the anchor of a scalar that was written to `range`.
    pub(super) fn scalar(value: &ScalarValue<'_>, range: TextRange) -> Self {
        match value {
            ScalarValue::Null => Self::Null,
            ScalarValue::Bool(value) => Self::Bool(*value),
            ScalarValue::Int(int) => match (i64::try_from(*int), u64::try_from(*int)) {
                (Ok(int), _) => Self::Int(int),
                (_, Ok(int)) => Self::Unsigned(int),
                _ => Self::Big(range),
            },
            ScalarValue::Big(_) => Self::Big(range),
            ScalarValue::Float(value) => Self::Float(*value),
            ScalarValue::String(_) => Self::String(range),
        }
    }

    /// Returns true if the value can be merged.
    pub(super) fn is_mapping(&self) -> bool {
        matches!(self, Self::Container(value) if value.kind != Some(Container::Array))
    }
}

/// Anchored object or array that is being read.
#[derive(Debug)]
pub(super) struct OpenAnchor {
    /// Number of the anchor; 0 for a value without one.
    pub(super) id: usize,
    /// Number of open objects and arrays around the value.
    pub(super) level: usize,
    /// Kind of the value; `None` for the entries of a merged object.
    pub(super) kind: Option<Container>,
    /// Offset of the value in the text.
    pub(super) start: usize,
    /// Number of nodes of the document before the value.
    pub(super) nodes: usize,
    /// Result of [`LineBuilder::reset_deepest`] before the value.
    pub(super) deepest: usize,
}

/// Values of the anchors of one document.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    /// Number of the first anchor. The parser counts on from one document to the next.
    first: usize,
    values: Vec<AnchorValue>,
    open: Vec<OpenAnchor>,
}

impl Anchors {
    /// Sets the value of an anchor. `id` is 0 for a value without an anchor.
    #[inline]
    pub(super) fn set(&mut self, id: usize, value: impl FnOnce() -> AnchorValue, memory: &mut MemoryMeter) {
        if id > 0 {
            self.put(id, value(), memory);
        }
    }

    fn put(&mut self, id: usize, value: AnchorValue, memory: &mut MemoryMeter) {
        if self.values.is_empty() {
            self.first = id;
        }
        let Some(at) = id.checked_sub(self.first) else { return };
        // The parser numbers the anchors in the order in which they are read.
        while self.values.len() <= at && memory.take(NAME_BYTES) {
            memory.push(&mut self.values, AnchorValue::Open);
            if memory.check().is_err() {
                return;
            }
        }
        if let Some(place) = self.values.get_mut(at) {
            *place = value;
        }
    }

    /// Starts the value of an anchor, unless it has none.
    #[inline]
    pub(super) fn begin(&mut self, open: OpenAnchor, memory: &mut MemoryMeter) {
        if open.id > 0 {
            self.put(open.id, AnchorValue::Open, memory);
            self.open.push(open);
        }
    }

    /// Ends the values of the anchors that start at this level, now that a value there ends.
    #[inline]
    pub(super) fn end(&mut self, level: usize, builder: &mut LineBuilder, nodes: usize) {
        while let Some(open) = self.open.pop_if(|open| open.level == level) {
            let value = AnchorValue::Container(AnchoredContainer {
                kind: open.kind,
                range: TextRange::new(open.start, builder.len()),
                nodes: nodes.saturating_sub(open.nodes),
                // The entries of a merged object have no braces yet.
                depth: builder.depth_since_reset(open.deepest) + usize::from(open.kind.is_none()),
            });
            self.put(open.id, value, builder.memory());
        }
    }

    /// Returns the value that an alias refers to.
    pub(super) fn get(&self, id: usize) -> Result<AnchorValue, FbcErrorKind> {
        let value = id.checked_sub(self.first).and_then(|at| self.values.get(at));
        match value {
            None | Some(AnchorValue::Open) => Err(FbcErrorKind::AliasCycle),
            Some(value) => Ok(*value),
        }
    }
}

/// Up to this number of nodes, aliases may make up 99 % of a document (go-yaml, `decode.go`).
const LOW: f64 = 400_000.0;
/// From this number of nodes on, aliases may make up 10 % of a document. Between the two the share falls evenly.
const HIGH: f64 = 4_000_000.0;

/// Counter of the bytes and nodes that aliases add.
#[derive(Debug)]
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

    /// Returns the number of nodes so far.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Counts one node.
    #[inline]
    pub(super) fn node(&mut self) {
        self.nodes += 1;
    }

    /// Counts what an alias adds, before it is added. Fails if aliases add too many bytes, or make up too large a part of the
    /// document.
    pub(super) fn aliased(&mut self, nodes: usize, bytes: usize) -> Result<(), FbcErrorKind> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.aliased = self.aliased.saturating_add(nodes);
        // As in go-yaml, small documents may consist of aliases.
        if self.aliased > 100 && self.nodes > 1000 && self.excessive() {
            return Err(FbcErrorKind::AliasRatio);
        }
        self.spent = self.spent.saturating_add(bytes);
        if self.spent > self.limit {
            return Err(FbcErrorKind::Limit {
                name: "aliasBytes",
                limit: self.limit,
            });
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a document has far less than 2^52 nodes")]
    fn excessive(&self) -> bool {
        let nodes = self.nodes as f64;
        let part = ((nodes - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
        self.aliased as f64 / nodes > 0.99 - 0.89 * part
    }
}
