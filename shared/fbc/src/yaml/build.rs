use crate::canon::number::float;
use crate::canon::text::quote;
use crate::canon::{Canon, Kind};
use crate::error::Problem;
use crate::limits::Limits;

use super::Fault;
use super::budget::Budget;
use super::float as float_key;
use super::replay::Replay;
use super::resolve::{Value, resolve};
use super::source::{Part, Scalar, Source, Tag};

/// What is open, and what comes next in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Array,
    /// An object; `merged` into the one around it or not. A key comes next, or its value.
    Object {
        merged: bool,
        key: bool,
    },
}

/// A sequence whose mappings are to be merged, as far as it is read.
#[derive(Debug, Default)]
struct Collected<'a> {
    parts: Vec<Part<'a>>,
    items: Vec<usize>,
    depth: usize,
}

/// Puts the parts of a document together, by the rules of go-yaml.
pub(super) struct Builder<'c, 'a> {
    canon: &'c mut Canon,
    frames: Vec<Frame>,
    replay: Replay<'a>,
    budget: Budget,
    /// Whether the next value is merged into the open object.
    merging: bool,
    collected: Option<Collected<'a>>,
    null: bool,
}

impl<'c, 'a> Builder<'c, 'a> {
    pub(super) fn new(canon: &'c mut Canon, limits: &Limits) -> Self {
        Self {
            canon,
            frames: Vec::new(),
            replay: Replay::default(),
            budget: Budget::new(limits.alias_bytes),
            merging: false,
            collected: None,
            null: false,
        }
    }

    /// Builds one document; false if it is null.
    pub(super) fn build(mut self, source: &mut Source<'a>) -> Result<bool, Fault> {
        loop {
            let replayed = self.replay.next();
            let aliased = replayed.is_some() && self.replay.aliased();
            let part = match replayed {
                Some(part) => part,
                None => match source.part()? {
                    None => return Ok(!self.null),
                    Some((part, anchor)) => {
                        self.replay.record(&part, anchor);
                        part
                    }
                },
            };
            self.step(part)
                .and_then(|()| self.budget.bytes(self.canon.len(), aliased))
                .map_err(|problem| source.fault(problem))?;
        }
    }

    fn step(&mut self, part: Part<'a>) -> Result<(), Problem> {
        if self.collected.is_some() {
            return self.collect(part);
        }
        match self.frames.last() {
            None => self.root(part),
            Some(Frame::Object { key: true, .. }) => self.key(part),
            Some(_) if self.merging => self.merge(&part),
            Some(_) => self.value(part),
        }
    }

    /// The document itself: an object or nothing.
    fn root(&mut self, part: Part<'a>) -> Result<(), Problem> {
        let what = match part {
            Part::Begin(Kind::Object) => return self.value(part),
            Part::Begin(Kind::Array) => "a list",
            Part::Scalar(scalar) => match resolve(scalar)? {
                Value::Null => {
                    self.null = true;
                    return Ok(());
                }
                Value::Bool(_) => "a boolean",
                Value::String(_) => "a string",
                Value::Int(_) | Value::Big(_) | Value::Float(_) => "a number",
            },
            Part::End | Part::Alias(_) | Part::Merge => "an alias",
        };
        Err(Problem::NotAnObject(what))
    }

    fn key(&mut self, part: Part<'a>) -> Result<(), Problem> {
        match part {
            Part::End => {
                if let Some(Frame::Object { merged: false, .. }) = self.frames.pop() {
                    self.canon.end();
                }
                self.turn();
                return Ok(());
            }
            Part::Merge => self.merging = true,
            Part::Scalar(scalar) if is_merge(&scalar) => self.merging = true,
            Part::Scalar(scalar) => self.write_key(scalar)?,
            Part::Alias(id) => match self.replay.target(id)?.clone() {
                Part::Scalar(scalar) => {
                    self.budget.node(self.replay.aliased())?;
                    self.write_key(scalar)?;
                }
                _ => return Err(Problem::Key("a mapping or sequence")),
            },
            Part::Begin(_) => return Err(Problem::Key("a mapping or sequence")),
        }
        self.turn();
        Ok(())
    }

    /// After a key comes its value, after a value a key.
    fn turn(&mut self) {
        if let Some(Frame::Object { key, .. }) = self.frames.last_mut() {
            *key = !*key;
        }
    }

    fn value(&mut self, part: Part<'a>) -> Result<(), Problem> {
        match part {
            Part::Scalar(scalar) => {
                self.budget.node(self.replay.aliased())?;
                write(&resolve(scalar)?, self.canon)?;
                self.turn();
            }
            Part::Begin(kind) => {
                self.budget.node(self.replay.aliased())?;
                self.canon.begin(kind)?;
                let (merged, key) = (false, true);
                self.frames.push(match kind {
                    Kind::Array => Frame::Array,
                    Kind::Object => Frame::Object { merged, key },
                });
            }
            Part::Alias(id) => {
                self.budget.node(self.replay.aliased())?;
                self.replay.alias(id)?;
            }
            Part::End => {
                self.frames.pop();
                self.canon.end();
                self.turn();
            }
            Part::Merge => {}
        }
        Ok(())
    }

    /// A value after a merge key: its entries go into the open object.
    fn merge(&mut self, part: &Part<'a>) -> Result<(), Problem> {
        self.merging = false;
        if matches!(part, Part::Begin(Kind::Array)) {
            self.collected = Some(Collected::default());
            return Ok(());
        }
        self.replay.check_mapping(part)?;
        self.budget.node(self.replay.aliased())?;
        if let Part::Alias(id) = part {
            self.replay.alias(*id)?;
            self.merging = true;
        } else {
            let (merged, key) = (true, true);
            self.frames.push(Frame::Object { merged, key });
        }
        Ok(())
    }

    /// Reads a sequence to be merged to its end. Its mappings are merged from the last to the
    /// first, because earlier ones take precedence.
    fn collect(&mut self, part: Part<'a>) -> Result<(), Problem> {
        let Some(list) = &mut self.collected else {
            return Ok(());
        };
        if list.depth == 0 {
            if matches!(part, Part::End) {
                self.replay_collected();
                return Ok(());
            }
            self.replay.check_mapping(&part)?;
            list.items.push(list.parts.len());
        }
        match part {
            Part::Begin(_) => list.depth += 1,
            Part::End => list.depth -= 1,
            _ => {}
        }
        list.parts.push(part);
        Ok(())
    }

    fn replay_collected(&mut self) {
        let Some(mut list) = self.collected.take() else {
            return;
        };
        self.turn();
        let mut tail = Vec::new();
        while let Some(start) = list.items.pop() {
            let mut item = vec![Part::Merge];
            item.extend(list.parts.drain(start..));
            tail.push(item);
        }
        // What is put on last is replayed first.
        for item in tail.into_iter().rev() {
            self.replay.list(item);
        }
    }

    fn write_key(&mut self, scalar: Scalar<'a>) -> Result<(), Problem> {
        self.budget.node(self.replay.aliased())?;
        match resolve(scalar)? {
            Value::String(key) => self.canon.key(&key),
            Value::Bool(key) => self.canon.key(if key { "true" } else { "false" }),
            Value::Float(key) => self.canon.key(&float_key::key(key)),
            Value::Int(key) if i64::try_from(key).is_ok() => self.canon.key(&key.to_string()),
            Value::Int(_) | Value::Big(_) => return Err(Problem::Key("so large an integer")),
            Value::Null => return Err(Problem::Key("null")),
        }
        Ok(())
    }
}

fn is_merge(scalar: &Scalar<'_>) -> bool {
    let implicit = scalar.plain && scalar.tag == Tag::None;
    scalar.value == "<<" && (implicit || matches!(scalar.tag, Tag::Merge | Tag::Bang))
}

fn write(value: &Value<'_>, canon: &mut Canon) -> Result<(), Problem> {
    let out = canon.value();
    match value {
        Value::String(string) => quote(string, out),
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(int) => out.extend_from_slice(int.to_string().as_bytes()),
        Value::Big(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::Float(value) if value.is_nan() => return Err(Problem::NotFinite("NaN")),
        Value::Float(value) if value.is_infinite() => return Err(Problem::NotFinite("infinity")),
        Value::Float(value) => float(*value, out),
    }
    Ok(())
}
