use std::io::Read;

use work::Budget;

use crate::buffer::{Buffer, PEEK, newlines};
use crate::error::{FbcError, FbcErrorKind};
use crate::stream::{self, Decoder, Mode};
use crate::{ChunkBuffers, FbcLimits, canon::LineBuilder, json, meta::Meta, yaml};

/// Splits a file into chunks of whole documents, so that a file of any size needs little memory.
///
/// ```
/// use fbc::{Chunks, FbcLimits};
///
/// let file = "schema: olm.package\nname: db\n---\n{\"package\": \"db\", \"schema\": \"olm.bundle\"}\n";
/// let limits = FbcLimits::default();
/// let mut lines = String::new();
/// for chunk in Chunks::new(file.as_bytes(), limits, 4 << 20) {
///     chunk?.metas(&limits, &mut |meta| lines += &String::from_utf8_lossy(meta.line))?;
/// }
/// assert_eq!(lines, "{\"name\":\"db\",\"schema\":\"olm.package\"}\n{\"package\":\"db\",\"schema\":\"olm.bundle\"}\n");
/// # Ok::<(), fbc::FbcError>(())
/// ```
#[derive(Debug)]
pub struct Chunks<R> {
    reader: R,
    limits: FbcLimits,
    target: usize,
    buffer: Buffer,
    /// True if the last chunk or an error was returned.
    done: bool,
    /// Format of the next document; `None` at the start of the file.
    mode: Option<Mode>,
    documents: usize,
    lines: usize,
    /// True if the start of the buffer is known to be JSON, as far as a chunk goes.
    is_json: bool,
    budget: Budget,
}

/// End of a document in YAML.
const SEPARATOR: &[u8] = b"\n---";

/// Result of the search for a place to cut the buffer.
enum Cut {
    /// Cut after this many bytes; they hold this many documents.
    At(usize, usize),
    /// The first document is not complete yet; it starts at this offset.
    More(usize),
    /// YAML starts after this many bytes of white space.
    Yaml(usize),
    /// The buffer is malformed. The parser of the chunk reports the error.
    Rest,
}

impl<R: Read> Chunks<R> {
    /// Creates an iterator over chunks of about `target` bytes. A document larger than that makes a
    /// larger chunk.
    pub fn new(reader: R, limits: FbcLimits, target: usize) -> Self {
        Self {
            reader,
            limits,
            target,
            buffer: Buffer::default(),
            done: false,
            mode: None,
            documents: 0,
            lines: 0,
            is_json: false,
            budget: Budget::default(),
        }
    }

    /// Takes the memory of chunks from `buffers`. Those of at most twice the target give it back.
    pub fn reusing(mut self, buffers: &ChunkBuffers) -> Self {
        self.buffer = Buffer::reusing(buffers);
        self
    }

    /// Makes the iterator and its chunks fail once the work of `budget` is stopped.
    pub fn within(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    fn advance(&mut self) -> Result<Option<Chunk>, FbcError> {
        // The format is decided by the first bytes, so the first chunk must hold all of them.
        let mut size = self.target.max(PEEK);
        loop {
            let filled = self.buffer.fill(&mut self.reader, size);
            let is_full =
                filled.map_err(|error| FbcError::new(0, None, FbcErrorKind::Read(error)))?;
            if !is_full {
                return Ok(self.rest());
            }
            match self.cut() {
                Cut::At(at, documents) => return Ok(Some(self.take(at, documents))),
                Cut::Rest => return Ok(self.rest()),
                Cut::Yaml(space) => {
                    self.lines += newlines(&self.buffer[..space]);
                    self.buffer.skip(space);
                    self.mode = Some(Mode::Yaml);
                }
                Cut::More(start) => {
                    self.check_size(start)?;
                    // Growth in proportion keeps the work linear: every byte is searched a constant
                    // number of times. By the root of two, so that documents of four times the size
                    // end at the same point of a step.
                    let grown = self.buffer.len() + self.buffer.len() / 128 * 53;
                    // No more than shows that the document is too large.
                    let most = self
                        .limits
                        .document_bytes
                        .min(self.limits.memory_document_bytes());
                    size = grown.min(most.saturating_add(start + SEPARATOR.len() + 1));
                }
            }
        }
    }

    fn rest(&mut self) -> Option<Chunk> {
        self.done = true;
        self.is_json = false;
        // The number of documents does not matter any more: this is the last chunk.
        (!self.buffer.is_empty()).then(|| self.take(self.buffer.len(), 0))
    }

    /// Cuts the first `at` bytes off the buffer and returns them as a chunk.
    fn take(&mut self, at: usize, documents: usize) -> Chunk {
        let mode = self.mode();
        let rest = self.buffer.split_off(at);
        // A value that was cut by its brackets may be YAML only if its document ends there.
        let is_json =
            std::mem::take(&mut self.is_json) && !rest.trim_ascii_start().starts_with(b"---");
        let mut bytes = std::mem::replace(&mut self.buffer, rest);
        bytes.shrink(self.target.saturating_mul(2));
        let chunk = Chunk {
            bytes,
            mode,
            is_json,
            documents: self.documents,
            lines: self.lines,
            budget: self.budget.clone(),
        };
        self.documents += documents;
        self.lines += newlines(&chunk.bytes);
        chunk
    }

    /// Refuses a document that is too large before it is read to its end.
    fn check_size(&self, start: usize) -> Result<(), FbcError> {
        // The last bytes of the buffer may belong to the next separator.
        let size = self.buffer.len().saturating_sub(start + SEPARATOR.len());
        self.limits.check_document(size).map_err(|kind| {
            let line = self.lines + newlines(&self.buffer[..start]) + 1;
            FbcError::new(self.documents + 1, Some(line), kind)
        })
    }

    fn mode(&mut self) -> Mode {
        *self.mode.get_or_insert_with(|| stream::guess(&self.buffer))
    }

    fn cut(&mut self) -> Cut {
        match self.mode() {
            Mode::Json => self.cut_json(),
            Mode::Yaml => self.cut_yaml(),
        }
    }

    /// Cuts after the last separator before the target, or else after the first one.
    fn cut_yaml(&self) -> Cut {
        let mut at = 0;
        let mut documents = 0;
        while at <= self.target {
            match yaml::split::document(&self.buffer, at) {
                Ok(piece) if piece.separated && self.buffer[piece.next - 1] == b'\n' => {
                    at = piece.next;
                    documents += 1;
                }
                Err(_) if documents == 0 => return Cut::Rest,
                _ => break,
            }
        }
        self.cut_at(at, documents)
    }

    /// Cuts after the last JSON value before the target, or else after the first one.
    fn cut_json(&mut self) -> Cut {
        let mut at = 0;
        let mut documents = 0;
        // Go's decoder decides between JSON and YAML for each of the first two values, so these are
        // parsed. The later ones are JSON for certain: their brackets are enough. They also are for
        // a value that is JSON for the length of a chunk and goes on: to parse more of it would
        // take memory that is meant for its parser.
        if self.documents < 2 && !self.is_json {
            let head = &self.buffer[..self.buffer.len().min(self.target.max(PEEK))];
            let mut builder = LineBuilder::new(&self.limits, head.len(), &self.budget);
            let text = json::JsonText::new(head);
            while self.documents + documents < 2 {
                builder.clear();
                let start = json::skip_space(head, at);
                match json::parse(text, start, &mut builder) {
                    Ok(end) => at = end,
                    Err(error)
                        if documents == 0
                            && error.kind.may_go_on(head.len() < self.buffer.len()) =>
                    {
                        self.is_json = true;
                        break;
                    }
                    Err(error) if documents > 0 || matches!(error.kind, FbcErrorKind::JsonEnd) => {
                        return self.cut_at(at, documents);
                    }
                    Err(error) if error.kind.is_final() => return Cut::Rest,
                    Err(_) => return self.cut_space(),
                }
                documents += 1;
            }
        }
        while at <= self.target {
            let Some(end) = json::value_end(&self.buffer, at) else {
                break;
            };
            at = end;
            documents += 1;
        }
        if self.is_json && stream::is_space(&self.buffer[at..]) {
            // What follows decides if the value may be YAML.
            documents = 0;
        }
        self.cut_at(at, documents)
    }

    /// Cuts the white space before a document that is not JSON: YAML may start after it.
    fn cut_space(&self) -> Cut {
        match stream::yaml_start(&self.buffer, 0) {
            Some(space) => Cut::Yaml(space),
            None if stream::is_space(&self.buffer) => Cut::More(0),
            None => Cut::Rest,
        }
    }

    fn cut_at(&self, at: usize, documents: usize) -> Cut {
        match (documents, self.mode) {
            (0, Some(Mode::Json)) => Cut::More(json::skip_space(&self.buffer, 0)),
            (0, _) => Cut::More(0),
            _ => Cut::At(at, documents),
        }
    }
}

impl<R: Read> Iterator for Chunks<R> {
    type Item = Result<Chunk, FbcError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance();
        self.done |= next.is_err();
        next.transpose()
    }
}

/// Whole documents of one file. A chunk can be parsed on any thread.
#[derive(Debug)]
pub struct Chunk {
    pub(crate) bytes: Buffer,
    pub(crate) mode: Mode,
    /// True if no part of it may be YAML.
    pub(crate) is_json: bool,
    /// Number of documents in the file before this chunk.
    pub(crate) documents: usize,
    /// Number of lines in the file before this chunk.
    pub(crate) lines: usize,
    pub(crate) budget: Budget,
}

impl Chunk {
    /// Returns the size of the chunk in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Passes everything that the Metas depend on, besides the limits, to `hash`.
    pub fn hash_with(&self, mut hash: impl FnMut(&[u8])) {
        hash(&self.bytes);
        // At most the second JSON value may still be followed by YAML.
        hash(&[match self.mode {
            Mode::Yaml => 3,
            Mode::Json if self.is_json => 2,
            Mode::Json => self.documents.min(2) as u8,
        }]);
    }

    /// Parses the documents and calls `sink` with each Meta, in the order of the file.
    ///
    /// # Errors
    /// Stops at the first document that is malformed or exceeds a limit.
    pub fn metas(
        &self,
        limits: &FbcLimits,
        sink: &mut dyn FnMut(Meta<'_>),
    ) -> Result<(), FbcError> {
        Decoder::run(self, limits, sink)
    }
}
