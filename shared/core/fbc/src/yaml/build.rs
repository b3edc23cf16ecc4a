//! Builds one document from its parts, by the rules of go-yaml.
//!
//! Nothing is kept as a tree: an alias and a merge key read the parts of a value again.

use crate::canon::text::{float, quote};
use crate::canon::{Container, LineBuilder};
use crate::{FbcLimits, canon::memory::Text, error::FbcErrorKind};

use super::anchors::{AliasBudget, Tape};
use super::error::YamlError;
use super::resolve::{ScalarValue, float_key, resolve};
use super::source::{Scalar, YamlPart, YamlSource};

/// Open container and the part that comes next in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// An array; a value comes next.
    Array,
    /// An object. `merged` is true if its entries go into the object around it, `key` if a key
    /// comes next.
    Object { merged: bool, key: bool },
    /// Values of a merge key, of which so many are left; a mapping or a list of them comes next.
    Merge(usize),
    /// The list of a merge key, with this number of open containers in it. It is kept, and read
    /// again from its last item to its first, because earlier ones take precedence.
    MergeList(usize),
}

/// Builder of one document from its parts.
pub(super) struct DocumentBuilder<'c, 's> {
    builder: &'c mut LineBuilder,
    frames: Vec<Frame>,
    tape: Tape<'s>,
    budget: AliasBudget,
    /// Place of each item of the list of a merge key.
    items: Vec<usize>,
    null: bool,
    /// Largest number of frames so far.
    levels: usize,
}

impl<'c, 's> DocumentBuilder<'c, 's> {
    pub(super) fn new(builder: &'c mut LineBuilder, limits: &FbcLimits) -> Self {
        Self {
            builder,
            frames: Vec::new(),
            tape: Tape::default(),
            budget: AliasBudget::new(limits.alias_bytes),
            items: Vec::new(),
            null: false,
            levels: 0,
        }
    }

    /// Builds one document. Returns false if it is null.
    pub(super) fn build(mut self, source: &mut YamlSource<'s>) -> Result<bool, YamlError> {
        while let Some(part) = self.tape.next(source, self.builder.memory())? {
            self.step(part).map_err(|kind| source.error(kind))?;
        }
        let held = self.levels * LEVEL_BYTES
            + self.items.capacity() * size_of::<usize>()
            + self.tape.memory();
        self.builder.memory().give_back(held);
        Ok(!self.null)
    }

    /// Reads one part, and counts what it takes and what it adds.
    fn step(&mut self, part: YamlPart<'s>) -> Result<(), FbcErrorKind> {
        let held = part.memory();
        if held > 0 && !self.builder.memory().take(held) {
            return Err(self.builder.memory().error());
        }
        let is_aliased = self.tape.is_aliased();
        let before = self.builder.len();
        match self.frames.last() {
            None => self.root(part),
            Some(Frame::Object { key: true, .. }) => self.key(part),
            Some(Frame::Merge(_)) => self.merge(&part),
            Some(Frame::MergeList(depth)) => self.merge_item(&part, *depth),
            Some(Frame::Array | Frame::Object { .. }) => self.value(part),
        }?;
        self.builder.check_memory()?;
        if is_aliased {
            self.budget.add_bytes(self.builder.len() - before)?;
        }
        self.builder.memory().give_back(held);
        Ok(())
    }

    /// Reads the start of the document: an object, or null.
    fn root(&mut self, part: YamlPart<'s>) -> Result<(), FbcErrorKind> {
        let what = match part {
            YamlPart::Begin(Container::Object) => return self.value(part),
            YamlPart::Begin(Container::Array) => "a list",
            YamlPart::Scalar(scalar) => match resolve(scalar)? {
                ScalarValue::Null => {
                    self.null = true;
                    return Ok(());
                }
                ScalarValue::Bool(_) => "a boolean",
                ScalarValue::String(_) => "a string",
                ScalarValue::Int(_) | ScalarValue::Big(_) | ScalarValue::Float(_) => "a number",
            },
            YamlPart::End | YamlPart::Alias(_) => "an alias",
        };
        Err(FbcErrorKind::NotAnObject(what))
    }

    /// Reads a key of the open object, or the end of the object.
    fn key(&mut self, part: YamlPart<'s>) -> Result<(), FbcErrorKind> {
        let scalar = match part {
            YamlPart::End => {
                self.end();
                return Ok(());
            }
            YamlPart::Scalar(scalar) if is_merge(&scalar) => {
                self.turn();
                self.push(Frame::Merge(1));
                return Ok(());
            }
            YamlPart::Scalar(scalar) => scalar,
            YamlPart::Alias(id) => {
                self.node()?;
                match self.tape.first(id)? {
                    YamlPart::Scalar(scalar) => scalar.clone(),
                    _ => return Err(no_key("a mapping or sequence")),
                }
            }
            YamlPart::Begin(_) => return Err(no_key("a mapping or sequence")),
        };
        self.node()?;
        match resolve(scalar)? {
            ScalarValue::String(key) => self.builder.key(&key),
            ScalarValue::Bool(key) => self.builder.key(if key { "true" } else { "false" }),
            ScalarValue::Float(key) => self.builder.key(&float_key(key)),
            ScalarValue::Int(key) if i64::try_from(key).is_ok() => {
                self.builder.key(&key.to_string());
            }
            ScalarValue::Int(_) | ScalarValue::Big(_) => return Err(no_key("so large an integer")),
            ScalarValue::Null => return Err(no_key("null")),
        }
        self.turn();
        Ok(())
    }

    /// Counts the last part as a node.
    fn node(&mut self) -> Result<(), FbcErrorKind> {
        self.budget.node(self.tape.is_aliased())
    }

    /// Ends a value: the next one of a merge key comes next, else the object around it turns
    /// between key and value.
    fn turn(&mut self) {
        if let Some(Frame::Merge(left)) = self.frames.last_mut() {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.frames.pop();
        }
        if let Some(Frame::Object { key, .. }) = self.frames.last_mut() {
            *key = !*key;
        }
    }

    /// Reads a value, or the end of an array.
    fn value(&mut self, part: YamlPart<'s>) -> Result<(), FbcErrorKind> {
        match part {
            YamlPart::Scalar(scalar) => {
                self.node()?;
                write(&resolve(scalar)?, self.builder.value())?;
                self.turn();
            }
            YamlPart::Begin(kind) => {
                self.node()?;
                self.builder.begin(kind)?;
                self.push(match kind {
                    Container::Array => Frame::Array,
                    Container::Object => Frame::Object {
                        merged: false,
                        key: true,
                    },
                });
            }
            YamlPart::Alias(id) => {
                self.node()?;
                self.alias(id)?;
            }
            YamlPart::End => self.end(),
        }
        Ok(())
    }

    /// Reads the value that an alias refers to next.
    fn alias(&mut self, id: usize) -> Result<(), FbcErrorKind> {
        let parts = self.tape.value(id)?;
        self.tape.replay(parts, true, self.builder.memory());
        Ok(())
    }

    fn push(&mut self, frame: Frame) {
        self.frames.push(frame);
        if self.frames.len() > self.levels {
            self.levels = self.frames.len();
            self.builder.memory().take(LEVEL_BYTES);
        }
    }

    /// Ends the innermost container.
    fn end(&mut self) {
        match self.frames.pop() {
            Some(Frame::Object { merged: true, .. }) | None => {}
            Some(_) => self.builder.end(),
        }
        self.turn();
    }

    /// Reads a mapping whose entries go into the open object, or the start of a list of them.
    fn merge(&mut self, part: &YamlPart<'s>) -> Result<(), FbcErrorKind> {
        match part {
            YamlPart::Begin(Container::Array) => {
                self.tape.keeps = true;
                self.items.clear();
                self.push(Frame::MergeList(0));
            }
            YamlPart::Begin(Container::Object) => {
                self.node()?;
                self.push(Frame::Object {
                    merged: true,
                    key: true,
                });
            }
            YamlPart::Alias(id) if self.is_object(*id)? => {
                self.node()?;
                self.alias(*id)?;
            }
            YamlPart::Alias(_) | YamlPart::Scalar(_) | YamlPart::End => return Err(no_merge()),
        }
        Ok(())
    }

    /// Returns true if an alias refers to an object.
    fn is_object(&self, id: usize) -> Result<bool, FbcErrorKind> {
        Ok(matches!(
            self.tape.first(id)?,
            YamlPart::Begin(Container::Object)
        ))
    }

    /// Notes one part in the list of a merge key, whose items are mappings.
    fn merge_item(&mut self, part: &YamlPart<'s>, depth: usize) -> Result<(), FbcErrorKind> {
        let is_item = match part {
            YamlPart::End if depth == 0 => return self.end_merge_list(),
            YamlPart::Begin(Container::Object) => true,
            YamlPart::Alias(id) if depth == 0 => self.is_object(*id)?,
            _ => false,
        };
        if depth == 0 {
            if !is_item {
                return Err(no_merge());
            }
            self.builder.memory().push(&mut self.items, self.tape.at);
        }
        if let Some(Frame::MergeList(depth)) = self.frames.last_mut() {
            match part {
                YamlPart::Begin(_) => *depth += 1,
                YamlPart::End => *depth -= 1,
                YamlPart::Scalar(_) | YamlPart::Alias(_) => {}
            }
        }
        Ok(())
    }

    /// Reads the items of the list again, from the last to the first.
    fn end_merge_list(&mut self) -> Result<(), FbcErrorKind> {
        self.tape.keeps = false;
        self.frames.pop();
        if let Some(Frame::Merge(left)) = self.frames.last_mut() {
            // The list itself is one.
            *left += self.items.len();
        }
        let ends = self.items.iter().skip(1).copied().chain([self.tape.at]);
        for (start, end) in self.items.iter().copied().zip(ends) {
            self.tape.replay(start..end, false, self.builder.memory());
        }
        self.turn();
        Ok(())
    }
}

const MERGE_KEY: &str = "<<";

/// Memory that the parser and this builder take for one level of nesting, in bytes.
const LEVEL_BYTES: usize = 256;

fn no_key(what: &str) -> FbcErrorKind {
    FbcErrorKind::Malformed(format!("{what} cannot be a key"))
}

fn no_merge() -> FbcErrorKind {
    FbcErrorKind::malformed("a merge key needs a mapping or a sequence of mappings")
}

fn is_merge(scalar: &Scalar<'_>) -> bool {
    let implicit = scalar.plain && scalar.tag.is_none();
    scalar.value == MERGE_KEY && (implicit || matches!(scalar.tag, Some("!!merge" | "!")))
}

fn write(value: &ScalarValue<'_>, out: &mut Text) -> Result<(), FbcErrorKind> {
    match value {
        ScalarValue::String(string) => quote(string, out),
        ScalarValue::Null => out.extend_from_slice(b"null"),
        ScalarValue::Bool(true) => out.extend_from_slice(b"true"),
        ScalarValue::Bool(false) => out.extend_from_slice(b"false"),
        ScalarValue::Int(int) => out.extend_from_slice(int.to_string().as_bytes()),
        ScalarValue::Big(digits) => out.extend_from_slice(digits.as_bytes()),
        ScalarValue::Float(value) if value.is_nan() => {
            return Err(FbcErrorKind::malformed("NaN has no form in JSON"));
        }
        ScalarValue::Float(value) if value.is_infinite() => {
            return Err(FbcErrorKind::malformed("infinity has no form in JSON"));
        }
        ScalarValue::Float(value) => float(*value, out),
    }
    Ok(())
}
