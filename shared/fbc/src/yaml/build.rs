//! Builds one document from its parts, by the rules of go-yaml.
//!
//! Nothing is kept as a tree: the value of an anchor is a part of the text that was written, an alias copies that text, and
//! a merge key copies the entries of an object.

use crate::FbcLimits;
use crate::canon::memory::Text;
use crate::canon::text::{float, quote};
use crate::canon::{Container, LineBuilder, TextRange};
use crate::error::FbcErrorKind;

use super::YamlError;
use super::anchors::{AliasBudget, AnchorValue, AnchoredContainer, Anchors, OpenAnchor};
use super::resolve::{ScalarValue, float_key, resolve};
use super::source::{Scalar, ScalarTag, YamlPart, YamlSource};

/// Open container and the part that comes next in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// An array; a value comes next.
    Array,
    /// An object. `merged` is true if its entries go into the object around it, `key` if a key comes next.
    Object { merged: bool, key: bool },
    /// The list of a merge key; a mapping comes next. Its first item has this index.
    MergeList(usize),
}

/// Builder of one document from its parts.
pub(super) struct DocumentBuilder<'c> {
    builder: &'c mut LineBuilder,
    frames: Vec<Frame>,
    anchors: Anchors,
    budget: AliasBudget,
    /// True if the next value is merged into the open object.
    merging: bool,
    /// Offset of each mapping in the open lists of merge keys.
    items: Vec<u32>,
    null: bool,
    /// Largest number of frames so far.
    levels: usize,
}

impl<'c> DocumentBuilder<'c> {
    pub(super) fn new(builder: &'c mut LineBuilder, limits: &FbcLimits) -> Self {
        Self {
            builder,
            frames: Vec::new(),
            anchors: Anchors::default(),
            budget: AliasBudget::new(limits.alias_bytes),
            merging: false,
            items: Vec::new(),
            null: false,
            levels: 0,
        }
    }

    /// Builds one document. Returns false if it is null.
    pub(super) fn build(mut self, source: &mut YamlSource<'_>) -> Result<bool, YamlError> {
        while let Some((part, anchor)) = source.part()? {
            let held = part.memory();
            if held > 0 && !self.builder.memory().take(held) {
                return Err(source.error(self.builder.memory().error()));
            }
            self.step(part, anchor)
                .and_then(|()| self.builder.check_memory())
                .map_err(|kind| source.error(kind))?;
            self.builder.memory().give_back(held);
        }
        self.builder.memory().give_back(self.levels * LEVEL_BYTES);
        Ok(!self.null)
    }

    fn step(&mut self, part: YamlPart<'_>, anchor: usize) -> Result<(), FbcErrorKind> {
        match self.frames.last() {
            None => self.root(part, anchor),
            Some(Frame::Object { key: true, .. }) => self.key(part, anchor),
            Some(Frame::MergeList(_)) => self.merge_item(part, anchor),
            Some(_) if self.merging => self.merge(&part, anchor),
            Some(_) => self.value(part, anchor),
        }
    }

    /// Reads the start of the document: an object, or null.
    fn root(&mut self, part: YamlPart<'_>, anchor: usize) -> Result<(), FbcErrorKind> {
        let what = match part {
            YamlPart::Begin(Container::Object) => return self.value(part, anchor),
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
    fn key(&mut self, part: YamlPart<'_>, anchor: usize) -> Result<(), FbcErrorKind> {
        match part {
            YamlPart::End => {
                self.end();
                return Ok(());
            }
            YamlPart::Scalar(scalar) if is_merge(&scalar) => {
                self.merging = true;
                let memory = self.builder.memory();
                self.anchors.set(anchor, || AnchorValue::MergeKey, memory);
            }
            YamlPart::Scalar(scalar) => {
                self.budget.node();
                self.write_key(&resolve(scalar)?, anchor)?;
            }
            YamlPart::Alias(id) => {
                self.budget.node();
                self.alias_key(id)?;
            }
            YamlPart::Begin(_) => return Err(FbcErrorKind::Key("a mapping or sequence")),
        }
        self.turn();
        Ok(())
    }

    /// Switches between key and value of the open object.
    fn turn(&mut self) {
        if let Some(Frame::Object { key, .. }) = self.frames.last_mut() {
            *key = !*key;
        }
    }

    /// Reads a value, or the end of an array.
    fn value(&mut self, part: YamlPart<'_>, anchor: usize) -> Result<(), FbcErrorKind> {
        match part {
            YamlPart::Scalar(scalar) => {
                self.budget.node();
                let value = resolve(scalar)?;
                let start = self.write(&value)?;
                let range = TextRange::new(start, self.builder.len());
                let memory = self.builder.memory();
                self.anchors.set(anchor, || AnchorValue::scalar(&value, range), memory);
                self.turn();
            }
            YamlPart::Begin(kind) => {
                let nodes = self.budget.nodes();
                self.budget.node();
                let deepest = self.deepest(anchor);
                let start = self.builder.begin(kind)?;
                self.begin_anchor(anchor, Some(kind), start, nodes, deepest);
                let (merged, key) = (false, true);
                self.push(match kind {
                    Container::Array => Frame::Array,
                    Container::Object => Frame::Object { merged, key },
                });
            }
            YamlPart::Alias(id) => {
                self.budget.node();
                self.alias(id)?;
                self.turn();
            }
            YamlPart::End => self.end(),
        }
        Ok(())
    }

    fn push(&mut self, frame: Frame) {
        self.frames.push(frame);
        if self.frames.len() > self.levels {
            self.levels = self.frames.len();
            self.builder.memory().take(LEVEL_BYTES);
        }
    }

    /// Returns the depth that [`Self::begin_anchor`] needs, taken before the value starts.
    fn deepest(&mut self, anchor: usize) -> usize {
        if anchor > 0 { self.builder.reset_deepest() } else { 0 }
    }

    /// Starts the value of an anchor, if there is one. Its frame is not open yet.
    fn begin_anchor(&mut self, id: usize, kind: Option<Container>, start: usize, nodes: usize, deepest: usize) {
        let open = OpenAnchor {
            id,
            level: self.frames.len(),
            kind,
            start,
            nodes,
            deepest,
        };
        self.anchors.begin(open, self.builder.memory());
    }

    /// Ends the innermost container.
    fn end(&mut self) {
        match self.frames.pop() {
            Some(Frame::Object { merged: true, .. }) | None => {}
            Some(_) => self.builder.end(),
        }
        let nodes = self.budget.nodes();
        self.anchors.end(self.frames.len(), self.builder, nodes);
        self.turn();
    }

    /// Writes the value that an alias refers to.
    fn alias(&mut self, id: usize) -> Result<(), FbcErrorKind> {
        let before = self.builder.len();
        match self.anchors.get(id)? {
            AnchorValue::Container(AnchoredContainer {
                kind,
                range,
                nodes,
                depth,
            }) => {
                self.budget.aliased(nodes, range.len())?;
                if kind.is_some() {
                    return self.builder.repeat_value(range, depth);
                }
                self.builder.begin(Container::Object)?;
                self.builder.repeat_entries(range, depth)?;
                self.builder.end();
                return Ok(());
            }
            AnchorValue::String(range) | AnchorValue::Big(range) => {
                self.budget.aliased(1, range.len())?;
                return self.builder.repeat_value(range, 0);
            }
            AnchorValue::Null => self.write(&ScalarValue::Null)?,
            AnchorValue::Bool(value) => self.write(&ScalarValue::Bool(value))?,
            AnchorValue::Int(int) => self.write(&ScalarValue::Int(int.into()))?,
            AnchorValue::Unsigned(int) => self.write(&ScalarValue::Int(int.into()))?,
            AnchorValue::Float(value) => self.write(&ScalarValue::Float(value))?,
            AnchorValue::MergeKey => self.write(&ScalarValue::String(MERGE_KEY.into()))?,
            AnchorValue::Open => return Err(FbcErrorKind::AliasCycle),
        };
        self.budget.aliased(1, self.builder.len() - before)
    }

    /// Writes the key that an alias refers to.
    fn alias_key(&mut self, id: usize) -> Result<(), FbcErrorKind> {
        self.budget.node();
        let value = match self.anchors.get(id)? {
            AnchorValue::String(range) => ScalarValue::String(self.builder.string_at(range).into()),
            AnchorValue::MergeKey => ScalarValue::String(MERGE_KEY.into()),
            AnchorValue::Null => ScalarValue::Null,
            AnchorValue::Bool(value) => ScalarValue::Bool(value),
            AnchorValue::Int(int) => ScalarValue::Int(int.into()),
            AnchorValue::Unsigned(int) => ScalarValue::Int(int.into()),
            AnchorValue::Float(value) => ScalarValue::Float(value),
            AnchorValue::Big(_) => ScalarValue::Big(String::new()),
            AnchorValue::Container(_) => return Err(FbcErrorKind::Key("a mapping or sequence")),
            AnchorValue::Open => return Err(FbcErrorKind::AliasCycle),
        };
        self.write_key(&value, 0)
    }

    /// Reads the value of a merge key: its entries go into the open object.
    fn merge(&mut self, part: &YamlPart<'_>, anchor: usize) -> Result<(), FbcErrorKind> {
        self.merging = false;
        let nodes = self.budget.nodes();
        match part {
            YamlPart::Begin(Container::Array) => {
                let deepest = self.deepest(anchor);
                let start = self.builder.begin_aside()?;
                self.begin_anchor(anchor, Some(Container::Array), start, nodes, deepest);
                self.push(Frame::MergeList(self.items.len()));
            }
            YamlPart::Begin(Container::Object) => {
                self.budget.node();
                let deepest = self.deepest(anchor);
                let start = self.builder.len();
                self.begin_anchor(anchor, None, start, nodes, deepest);
                let (merged, key) = (true, true);
                self.push(Frame::Object { merged, key });
            }
            YamlPart::Alias(id) => {
                self.budget.node();
                match self.anchors.get(*id)? {
                    AnchorValue::Container(value) if value.kind != Some(Container::Array) => {
                        self.budget.aliased(value.nodes, value.range.len())?;
                        self.builder.repeat_entries(value.range, value.depth)?;
                    }
                    _ => return Err(FbcErrorKind::Merge),
                }
                self.turn();
            }
            YamlPart::Scalar(_) | YamlPart::End => return Err(FbcErrorKind::Merge),
        }
        Ok(())
    }

    /// Reads one mapping in the list of a merge key, or the end of the list.
    fn merge_item(&mut self, part: YamlPart<'_>, anchor: usize) -> Result<(), FbcErrorKind> {
        match &part {
            YamlPart::End => return self.end_merge_list(),
            YamlPart::Begin(Container::Object) => {}
            YamlPart::Alias(id) if self.anchors.get(*id)?.is_mapping() => {}
            _ => return Err(FbcErrorKind::Merge),
        }
        // A comma comes before all items but the first.
        let first = matches!(self.frames.last(), Some(Frame::MergeList(first)) if *first == self.items.len());
        let start = self.builder.len() + usize::from(!first);
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        self.builder.memory().push(&mut self.items, start);
        self.value(part, anchor)
    }

    /// Copies the entries of the mappings from the last to the first, because earlier ones take precedence.
    fn end_merge_list(&mut self) -> Result<(), FbcErrorKind> {
        let Some(Frame::MergeList(first)) = self.frames.pop() else {
            return Ok(());
        };
        self.builder.end_aside();
        let nodes = self.budget.nodes();
        self.anchors.end(self.frames.len(), self.builder, nodes);
        while self.items.len() > first
            && let Some(start) = self.items.pop()
        {
            let range = self.builder.value_at(start);
            // Its depth was checked when the item was read.
            self.builder.repeat_entries(range, 0)?;
        }
        self.turn();
        Ok(())
    }

    /// Writes a value and returns its offset.
    fn write(&mut self, value: &ScalarValue<'_>) -> Result<usize, FbcErrorKind> {
        let out = self.builder.value();
        let start = out.len();
        write(value, out)?;
        Ok(start)
    }

    fn write_key(&mut self, value: &ScalarValue<'_>, anchor: usize) -> Result<(), FbcErrorKind> {
        let start = match value {
            ScalarValue::String(key) => self.builder.key(key),
            ScalarValue::Bool(key) => self.builder.key(if *key { "true" } else { "false" }),
            ScalarValue::Float(key) => self.builder.key(&float_key(*key)),
            ScalarValue::Int(key) if i64::try_from(*key).is_ok() => self.builder.key(&key.to_string()),
            ScalarValue::Int(_) | ScalarValue::Big(_) => return Err(FbcErrorKind::Key("so large an integer")),
            ScalarValue::Null => return Err(FbcErrorKind::Key("null")),
        };
        // Without the colon.
        let range = TextRange::new(start, self.builder.len().saturating_sub(1));
        let memory = self.builder.memory();
        self.anchors.set(anchor, || AnchorValue::scalar(value, range), memory);
        Ok(())
    }
}

const MERGE_KEY: &str = "<<";

/// Memory that the parser and this builder take for one level of nesting, in bytes.
const LEVEL_BYTES: usize = 256;

fn is_merge(scalar: &Scalar<'_>) -> bool {
    let implicit = scalar.plain && scalar.tag == ScalarTag::None;
    scalar.value == MERGE_KEY && (implicit || matches!(scalar.tag, ScalarTag::Merge | ScalarTag::Bang))
}

fn write(value: &ScalarValue<'_>, out: &mut Text) -> Result<(), FbcErrorKind> {
    match value {
        ScalarValue::String(string) => quote(string, out),
        ScalarValue::Null => out.extend_from_slice(b"null"),
        ScalarValue::Bool(true) => out.extend_from_slice(b"true"),
        ScalarValue::Bool(false) => out.extend_from_slice(b"false"),
        ScalarValue::Int(int) => out.extend_from_slice(int.to_string().as_bytes()),
        ScalarValue::Big(digits) => out.extend_from_slice(digits.as_bytes()),
        ScalarValue::Float(value) if value.is_nan() => return Err(FbcErrorKind::NotFinite("NaN")),
        ScalarValue::Float(value) if value.is_infinite() => return Err(FbcErrorKind::NotFinite("infinity")),
        ScalarValue::Float(value) => float(*value, out),
    }
    Ok(())
}
