//! Flow collections, and merges, which mostly hold some.

use super::{DEPTH, Generator};

impl Generator {
    /// Adds the value of a merge key.
    pub(super) fn merged(&mut self, depth: usize) {
        self.out.push(' ');
        match self.random.below(8) {
            0..3 if !self.anchors.is_empty() => self.alias(),
            3 | 4 => {
                self.out.push('[');
                for _ in 0..self.random.below(3) {
                    if self.anchors.is_empty() || self.random.one_in(2) {
                        self.flow_mapping(depth + 1);
                    } else {
                        self.alias();
                    }
                    self.out.push_str(", ");
                }
                self.out.push(']');
            }
            5 if self.random.one_in(4) => self.scalar(0, false),
            _ => {
                if self.random.one_in(2) {
                    self.out.push_str("&m ");
                    self.anchors.push("m");
                }
                self.flow_mapping(depth + 1);
            }
        }
    }

    pub(super) fn flow_sequence(&mut self, depth: usize) {
        self.out.push('[');
        self.flow_items(|this| {
            if this.random.one_in(10) {
                // A pair is a mapping of its own.
                this.out.push_str("k: ");
            }
            this.flow_value(depth);
        });
        self.out.push(']');
    }

    pub(super) fn flow_mapping(&mut self, depth: usize) {
        self.out.push('{');
        self.flow_items(|this| match this.random.below(12) {
            0 => {
                this.out.push_str("<<:");
                this.merged(depth);
            }
            1 => this.add("k¦? k¦? k :¦k :¦\"k\":¦'k':v¦k:v¦:¦: v"),
            _ => {
                this.key();
                this.out.push(' ');
                this.flow_value(depth);
            }
        });
        self.out.push('}');
    }

    /// Adds some items with commas, of which the last one is rare.
    fn flow_items(&mut self, item: impl Fn(&mut Self)) {
        for _ in 0..self.random.below(4) {
            self.space();
            item(self);
            self.space();
            self.out.push(',');
        }
        if !self.random.one_in(4) && self.out.ends_with(',') {
            self.out.pop();
        }
    }

    fn flow_value(&mut self, depth: usize) {
        self.properties();
        match self.random.below(if depth < DEPTH { 10 } else { 8 }) {
            0 if !self.anchors.is_empty() => self.alias(),
            0..8 => self.scalar(0, true),
            8 => self.flow_mapping(depth + 1),
            _ => self.flow_sequence(depth + 1),
        }
    }

    /// Adds white space between parts of a flow collection.
    fn space(&mut self) {
        self.add("¦¦ ¦ ¦ ¦  ");
        if self.random.one_in(40) {
            self.add("\n¦\n  ¦\t¦ # c\n¦\n\t");
        }
    }
}
