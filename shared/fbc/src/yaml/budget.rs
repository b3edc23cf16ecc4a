//! How much of a document may come from aliases.

use crate::error::Problem;

/// go-yaml's rule: the larger the document, the smaller the part that aliases may make up.
const LOW: f64 = 400_000.0;
const HIGH: f64 = 4_000_000.0;

/// Counts what aliases add.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    /// Bytes that aliases added, and the size of the document when the last part was counted.
    spent: usize,
    seen: usize,
    nodes: usize,
    aliased: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            spent: 0,
            seen: 0,
            // The document counts as a node.
            nodes: 1,
            aliased: 0,
        }
    }

    /// Counts the bytes since the last call.
    #[inline]
    pub(super) fn bytes(&mut self, size: usize, aliased: bool) -> Result<(), Problem> {
        if aliased {
            self.spent += size - self.seen;
            if self.spent > self.limit {
                return Err(Problem::Limit {
                    name: "aliasBytes",
                    limit: self.limit,
                });
            }
        }
        self.seen = size;
        Ok(())
    }

    /// Counts a node.
    #[inline]
    pub(super) fn node(&mut self, aliased: bool) -> Result<(), Problem> {
        self.nodes += 1;
        if aliased {
            self.aliased += 1;
            if self.aliased > 100 && self.nodes > 1000 && self.excessive() {
                return Err(Problem::AliasRatio);
            }
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
