//! Objects of an answer, made from the JSON of lines. Values that the query does not ask for are skipped.

use std::{borrow::Cow, fmt};

use async_graphql::{Name, PathSegment, Value, indexmap::IndexMap};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    budget::Budget,
    plan::{FoundSlot, OutputSource, Plan, PlannedValue, Slots},
    scalar::scalar,
};

/// Maximum number of errors that one list reports. Each has a path, and a catalog may have one in each value.
const FAULTS_MAX: usize = 20;

/// State of the walk through the values of one list.
#[derive(Debug)]
pub(crate) struct Walk<'b> {
    pub(crate) budget: &'b Budget,
    /// Path of the current value.
    pub(crate) path: Vec<PathSegment>,
    /// Paths of values that are no lists where the type is one.
    pub(crate) faults: Vec<Vec<PathSegment>>,
}

impl<'b> Walk<'b> {
    pub(crate) fn new(budget: &'b Budget, root: &str) -> Self {
        Self {
            budget,
            path: vec![PathSegment::Field(root.to_owned())],
            faults: Vec::new(),
        }
    }

    fn fault(&mut self) -> Value {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(self.path.clone());
        }
        Value::Null
    }

    fn charge<E: Error>(&self, bytes: usize) -> Result<(), E> {
        match self.budget.charge(bytes) {
            true => Ok(()),
            // The budget remembers it, and tells the client in its own words.
            false => Err(E::custom("over budget")),
        }
    }
}

/// Makes the object of one line.
///
/// # Errors
/// The line is no JSON, or the budget is exceeded.
pub(crate) fn object(line: &str, plan: &mut Plan, walk: &mut Walk<'_>) -> Result<Value, serde_json::Error> {
    read(line, ObjectSeed { plan, walk })
}

fn read<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Result<S::Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut deserializer)
}

/// Reads an object. Null is null, and any other value an object whose fields are all null.
struct ObjectSeed<'a, 'b> {
    plan: &'a mut Plan,
    walk: &'a mut Walk<'b>,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values: Vec<Option<(&RawValue, bool)>> = vec![None; self.plan.slots.len()];
        while let Some(found) = map.next_key_seed(KeySeed(&mut self.plan.slots))? {
            let Some(FoundSlot { at, is_exact }) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value()?;
            // Several keys may have one name. catalogd takes any of them.
            if values[at].is_none() || is_exact {
                values[at] = Some((value, is_exact));
            }
        }
        outputs(self.plan, self.walk, |at| values[at].map(|(value, _)| value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        outputs(self.plan, self.walk, |_| None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        outputs(self.plan, self.walk, |_| None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        outputs(self.plan, self.walk, |_| None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
        outputs(self.plan, self.walk, |_| None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        outputs(self.plan, self.walk, |_| None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Value, E> {
        outputs(self.plan, self.walk, |_| None)
    }
}

fn outputs<'de, E: Error>(
    plan: &mut Plan,
    walk: &mut Walk<'_>,
    values: impl Fn(usize) -> Option<&'de RawValue>,
) -> Result<Value, E> {
    let mut fields: IndexMap<Name, Value> = IndexMap::with_capacity(plan.outputs.len());
    for output in &mut plan.outputs {
        walk.charge(output.key.len())?;
        let value = match &mut output.source {
            OutputSource::TypeName => Value::from(plan.type_name.as_str()),
            OutputSource::Slot(at, planned) => match values(*at) {
                Some(raw) => {
                    walk.path.push(PathSegment::Field(output.key.to_string()));
                    let value = planned.read(raw, walk).map_err(E::custom)?;
                    walk.path.pop();
                    value
                }
                None => Value::Null,
            },
        };
        fields.insert(output.key.clone(), value);
    }
    Ok(Value::Object(fields))
}

impl PlannedValue {
    fn read(&mut self, raw: &RawValue, walk: &mut Walk<'_>) -> Result<Value, serde_json::Error> {
        let first = raw.get().bytes().next();
        match (self, first) {
            (Self::Scalar(of), _) => {
                walk.charge(raw.get().len())?;
                Ok(scalar(raw, *of))
            }
            (_, Some(b'n')) => Ok(Value::Null),
            (Self::Scalars(of), Some(b'[')) => {
                let each = |raw: &RawValue, walk: &mut Walk<'_>| {
                    walk.charge(raw.get().len())?;
                    Ok(scalar(raw, *of))
                };
                read(raw.get(), ListSeed { each, walk })
            }
            (Self::Objects(plan), Some(b'[')) => {
                let each = |raw: &RawValue, walk: &mut Walk<'_>| read(raw.get(), ObjectSeed { plan, walk });
                read(raw.get(), ListSeed { each, walk })
            }
            (Self::Scalars(_) | Self::Objects(_), _) => Ok(walk.fault()),
        }
    }
}

/// Reads a list.
struct ListSeed<'a, 'b, F> {
    each: F,
    walk: &'a mut Walk<'b>,
}

impl<'de, F> DeserializeSeed<'de> for ListSeed<'_, '_, F>
where
    F: FnMut(&'de RawValue, &mut Walk<'_>) -> Result<Value, serde_json::Error>,
{
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F> Visitor<'de> for ListSeed<'_, '_, F>
where
    F: FnMut(&'de RawValue, &mut Walk<'_>) -> Result<Value, serde_json::Error>,
{
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(raw) = list.next_element::<&RawValue>()? {
            self.walk.charge(0)?;
            self.walk.path.push(PathSegment::Index(values.len()));
            values.push((self.each)(raw, self.walk).map_err(A::Error::custom)?);
            self.walk.path.pop();
        }
        Ok(Value::List(values))
    }
}

/// Finds the slot of a key without a copy of the key.
struct KeySeed<'a>(&'a mut Slots);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Option<FoundSlot>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Option<FoundSlot>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(key))
    }
}

/// Splits chunks of lines and makes an object of each line.
#[derive(Debug)]
pub(crate) struct MetaReader<'b> {
    pub(crate) walk: Walk<'b>,
    plan: Plan,
    /// Start of a line whose end is in a later chunk.
    partial: Vec<u8>,
    objects: Vec<Value>,
}

impl<'b> MetaReader<'b> {
    pub(crate) fn new(plan: Plan, walk: Walk<'b>) -> Self {
        Self {
            walk,
            plan,
            partial: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// Reads the next chunk.
    ///
    /// # Errors
    /// As [`object`].
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), serde_json::Error> {
        let mut rest = chunk;
        while let Some(at) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = (&rest[..at], &rest[at + 1..]);
            rest = after;
            if self.partial.is_empty() {
                self.line(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.line(&whole)?;
            }
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), serde_json::Error> {
        let text: Cow<'_, str> = String::from_utf8_lossy(line);
        self.walk.path.push(PathSegment::Index(self.objects.len()));
        let object = object(&text, &mut self.plan, &mut self.walk)?;
        self.walk.path.pop();
        self.objects.push(object);
        Ok(())
    }

    /// Returns all objects. A last line without its end is not one of them.
    pub(crate) fn finish(self) -> (Value, Vec<Vec<PathSegment>>) {
        (Value::List(self.objects), self.walk.faults)
    }
}
