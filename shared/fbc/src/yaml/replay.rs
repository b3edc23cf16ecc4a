//! Anchors and aliases: what an anchor names is recorded, and an alias plays it again.

use std::collections::HashMap;

use crate::canon::Kind;
use crate::error::Problem;

use super::source::Part;

/// A value that can be referred to.
#[derive(Debug)]
struct Anchor {
    /// Where it starts on the tape.
    start: usize,
    /// Where it ends; not known while it is being read.
    end: Option<usize>,
    /// Whether it is being replayed.
    active: bool,
}

/// Where replayed parts come from.
#[derive(Debug)]
enum Track<'a> {
    Anchor { id: usize, at: usize, end: usize },
    List(std::vec::IntoIter<Part<'a>>),
}

/// Records anchors and replays them.
#[derive(Debug, Default)]
pub(super) struct Replay<'a> {
    tape: Vec<Part<'a>>,
    anchors: HashMap<usize, Anchor>,
    /// The anchors that are being read, and how deep in the document they are.
    recording: Vec<(usize, usize)>,
    depth: usize,
    tracks: Vec<Track<'a>>,
    aliased: usize,
}

impl<'a> Replay<'a> {
    /// Takes note of a part that was read from the source.
    pub(super) fn record(&mut self, part: &Part<'a>, anchor: usize) {
        if anchor > 0 {
            let start = self.tape.len();
            let (end, active) = (None, false);
            self.anchors.insert(anchor, Anchor { start, end, active });
            self.recording.push((anchor, self.depth));
        }
        if !self.recording.is_empty() {
            self.tape.push(part.clone());
        }
        match part {
            Part::Begin(_) => {
                self.depth += 1;
                return;
            }
            Part::End => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        while let Some((anchor, _)) = self.recording.pop_if(|(_, depth)| *depth == self.depth) {
            if let Some(anchor) = self.anchors.get_mut(&anchor) {
                anchor.end = Some(self.tape.len());
            }
        }
    }

    /// Whether the next part is inside of an alias.
    pub(super) fn aliased(&self) -> bool {
        self.aliased > 0
    }

    /// The first part of what an alias refers to.
    pub(super) fn target(&self, id: usize) -> Result<&Part<'a>, Problem> {
        match self.anchors.get(&id) {
            Some(Anchor {
                start,
                end: Some(_),
                active: false,
            }) => Ok(&self.tape[*start]),
            _ => Err(Problem::AliasCycle),
        }
    }

    /// Only a mapping can be merged.
    pub(super) fn check_mapping(&self, part: &Part<'a>) -> Result<(), Problem> {
        let part = match part {
            Part::Alias(id) => self.target(*id)?,
            part => part,
        };
        match part {
            Part::Begin(Kind::Object) => Ok(()),
            _ => Err(Problem::Merge),
        }
    }

    /// Plays what an alias refers to.
    pub(super) fn alias(&mut self, id: usize) -> Result<(), Problem> {
        match self.anchors.get_mut(&id) {
            Some(Anchor {
                start,
                end: Some(end),
                active,
            }) if !*active => {
                *active = true;
                self.aliased += 1;
                let (at, end) = (*start, *end);
                self.tracks.push(Track::Anchor { id, at, end });
                Ok(())
            }
            _ => Err(Problem::AliasCycle),
        }
    }

    /// Plays a list; of several, the last one comes first.
    pub(super) fn list(&mut self, parts: Vec<Part<'a>>) {
        self.tracks.push(Track::List(parts.into_iter()));
    }

    /// The next part to be replayed, if any.
    pub(super) fn next(&mut self) -> Option<Part<'a>> {
        loop {
            let next = match self.tracks.last_mut()? {
                Track::Anchor { at, end, .. } if *at < *end => {
                    *at += 1;
                    Some(self.tape[*at - 1].clone())
                }
                Track::Anchor { .. } => None,
                Track::List(parts) => parts.next(),
            };
            if next.is_some() {
                return next;
            }
            if let Some(Track::Anchor { id, .. }) = self.tracks.pop() {
                self.aliased -= 1;
                if let Some(anchor) = self.anchors.get_mut(&id) {
                    anchor.active = false;
                }
            }
        }
    }
}
