use std::io::{self, Read};

use crate::canon::Canon;
use crate::chunk::Chunk;
use crate::error::{Error, Problem};
use crate::limits::Limits;
use crate::stream::{self, Mode, PEEK, newlines, too_large};
use crate::{json, yaml};

/// Splits a file into chunks of whole documents, so that a huge file is never held whole.
#[derive(Debug)]
pub struct Chunks<R> {
    reader: R,
    limits: Limits,
    target: usize,
    buffer: Vec<u8>,
    /// Whether the reader is at its end, and whether all is said.
    end: bool,
    done: bool,
    mode: Mode,
    documents: usize,
    lines: usize,
}

/// What can be cut off the front of the buffer.
#[derive(Debug)]
enum Cut {
    /// So many bytes, which hold so many documents.
    At(usize, usize),
    /// Nothing yet: the first document is not complete. Here is where it starts.
    More(usize),
    /// So many bytes of white space before YAML.
    Yaml(usize),
    /// What is in the buffer is wrong, which is for the parser to say.
    Rest,
}

impl<R: Read> Chunks<R> {
    /// Chunks of about `target` bytes; a larger document makes a larger chunk.
    pub fn new(reader: R, limits: Limits, target: usize) -> Self {
        Self {
            reader,
            limits,
            target,
            buffer: Vec::new(),
            end: false,
            done: false,
            mode: Mode::Unknown,
            documents: 0,
            lines: 0,
        }
    }

    fn advance(&mut self) -> Result<Option<Chunk>, Error> {
        let mut size = self.target.max(PEEK);
        loop {
            self.fill(size)
                .map_err(|error| Error::new(0, None, Problem::Read(error)))?;
            if self.end {
                return Ok(self.rest());
            }
            match self.cut() {
                Cut::At(at, documents) => return Ok(Some(self.take(at, documents))),
                Cut::Rest => return Ok(self.rest()),
                Cut::Yaml(space) => {
                    self.lines += newlines(&self.buffer[..space]);
                    self.buffer.drain(..space);
                    self.mode = Mode::Yaml;
                }
                Cut::More(start) => {
                    self.check_size(start)?;
                    size = self.buffer.len() * 2;
                }
            }
        }
    }

    /// Reads until the buffer holds `size` bytes or the file ends.
    fn fill(&mut self, size: usize) -> io::Result<()> {
        let missing = size.saturating_sub(self.buffer.len());
        let mut reader = self.reader.by_ref().take(missing as u64);
        self.end = reader.read_to_end(&mut self.buffer)? < missing;
        Ok(())
    }

    fn rest(&mut self) -> Option<Chunk> {
        self.done = true;
        (!self.buffer.is_empty()).then(|| self.take(self.buffer.len(), 0))
    }

    /// Cuts the first `at` bytes off the buffer.
    fn take(&mut self, at: usize, documents: usize) -> Chunk {
        let rest = self.buffer.split_off(at);
        let chunk = Chunk {
            bytes: std::mem::replace(&mut self.buffer, rest),
            mode: self.mode,
            documents: self.documents,
            lines: self.lines,
        };
        self.documents += documents;
        self.lines += newlines(&chunk.bytes);
        if let Mode::Json(count) = &mut self.mode {
            *count += documents;
        }
        chunk
    }

    /// A document that is too large is found out before it is read to its end.
    fn check_size(&self, start: usize) -> Result<(), Error> {
        // The last bytes may already belong to the separator.
        let size = self.buffer.len().saturating_sub(start + b"\n---".len());
        if size > self.limits.document_bytes {
            let line = self.lines + newlines(&self.buffer[..start]) + 1;
            let problem = too_large(&self.limits);
            return Err(Error::new(self.documents + 1, Some(line), problem));
        }
        Ok(())
    }

    fn cut(&mut self) -> Cut {
        if self.mode == Mode::Unknown {
            self.mode = stream::guess(&self.buffer);
        }
        match self.mode {
            Mode::Json(count) => self.cut_json(count),
            _ => self.cut_yaml(),
        }
    }

    /// Cuts after the last separator before the target, or else after the first one.
    fn cut_yaml(&self) -> Cut {
        let (mut at, mut documents) = (0, 0);
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

    /// Cuts after a value. The first two are parsed, because YAML may follow if one is no JSON.
    fn cut_json(&self, count: usize) -> Cut {
        let (mut at, mut documents) = (0, 0);
        if count < 2 {
            let text = json::text(&self.buffer);
            let mut canon = Canon::new(self.limits.depth);
            while count + documents < 2 {
                canon.clear();
                let start = json::skip_space(text.as_bytes(), at);
                match json::parse(&text, start, &mut canon) {
                    Ok(end) => at = end,
                    Err(fault) if documents > 0 || matches!(fault.problem, Problem::JsonEnd) => {
                        return self.cut_at(json::raw_offset(&self.buffer, at), documents);
                    }
                    Err(fault) if fault.problem.is_final() => return Cut::Rest,
                    Err(_) => return self.cut_space(),
                }
                documents += 1;
            }
            at = json::raw_offset(&self.buffer, at);
        }
        while at <= self.target {
            let Some(end) = json::value_end(&self.buffer, at) else {
                break;
            };
            at = end;
            documents += 1;
        }
        self.cut_at(at, documents)
    }

    /// The next document is no JSON: YAML may start after white space.
    fn cut_space(&self) -> Cut {
        match stream::yaml_start(&self.buffer, 0) {
            Some(space) => Cut::Yaml(space),
            None if stream::is_space(&self.buffer) => Cut::More(0),
            None => Cut::Rest,
        }
    }

    fn cut_at(&self, at: usize, documents: usize) -> Cut {
        match (documents, self.mode) {
            (0, Mode::Json(_)) => Cut::More(json::skip_space(&self.buffer, 0)),
            (0, _) => Cut::More(0),
            _ => Cut::At(at, documents),
        }
    }
}

impl<R: Read> Iterator for Chunks<R> {
    type Item = Result<Chunk, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance();
        self.done |= next.is_err();
        next.transpose()
    }
}
