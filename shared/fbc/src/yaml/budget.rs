//! Limits the part of a document that may come from aliases.

use crate::error::FbcErrorKind;

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
