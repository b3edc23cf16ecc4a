//! Objects of an answer, made from the JSON of lines. Values that the query does not ask for are skipped.

use std::{borrow::Cow, fmt};

use async_graphql::{Name, PathSegment, Value, indexmap::IndexMap};
use model::{ValueType, text::LineBuffer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    budget::AnswerBudget,
    go::without_huge_numbers,
    plan::{FoundSlot, Output, OutputSource, PlannedValue, SelectionPlan, Slots},
    scalar::scalar,
};

/// Maximum number of errors that one list reports. Each has a path, and a catalog may have one in each value.
const FAULTS_MAX: usize = 20;

/// State of the walk through the values of one list.
#[derive(Debug)]
pub(crate) struct ValueWalk<'b> {
    pub(crate) budget: &'b AnswerBudget,
    /// Path of the current value.
    pub(crate) path: Vec<PathSegment>,
    /// Paths of values that are no lists where the type is one.
    pub(crate) faults: Vec<Vec<PathSegment>>,
}

impl<'b> ValueWalk<'b> {
    pub(crate) fn new(budget: &'b AnswerBudget, root: &str) -> Self {
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
pub(crate) fn object(
    line: &str,
    plan: &mut SelectionPlan,
    walk: &mut ValueWalk<'_>,
) -> Result<Value, serde_json::Error> {
    read(line, ObjectSeed { plan, walk })
}

fn read<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Result<S::Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut deserializer)
}

/// Reads an object. Null is null, and any other value an object whose fields are all null.
struct ObjectSeed<'a, 'b> {
    plan: &'a mut SelectionPlan,
    walk: &'a mut ValueWalk<'b>,
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
        let mut found: Vec<Option<FoundValue<'de>>> = (0..self.plan.slots.len()).map(|_| None).collect();
        while let Some(slot) = map.next_key_seed(KeySeed(&mut self.plan.slots))? {
            // Several keys may have one name. catalogd takes any of them.
            let Some(slot) = slot.filter(|slot| slot.is_exact || found[slot.at].is_none()) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            found[slot.at] = Some(match self.plan.only_output(slot.at) {
                Some(output) => FoundValue::Made(map.next_value_seed(output.seed(self.walk))?),
                None => FoundValue::Raw(map.next_value()?),
            });
        }
        outputs(self.plan, self.walk, &mut found)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        outputs(self.plan, self.walk, &mut [])
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        outputs(self.plan, self.walk, &mut [])
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        outputs(self.plan, self.walk, &mut [])
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
        outputs(self.plan, self.walk, &mut [])
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        outputs(self.plan, self.walk, &mut [])
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Value, E> {
        outputs(self.plan, self.walk, &mut [])
    }
}

/// Value of a slot.
enum FoundValue<'de> {
    /// The value for the only field of the answer that takes it.
    Made(Value),
    /// The JSON, for several fields.
    Raw(&'de RawValue),
}

fn outputs<'de, E: Error>(
    plan: &mut SelectionPlan,
    walk: &mut ValueWalk<'_>,
    found: &mut [Option<FoundValue<'de>>],
) -> Result<Value, E> {
    let mut fields: IndexMap<Name, Value> = IndexMap::with_capacity(plan.outputs.len());
    for output in &mut plan.outputs {
        walk.charge(output.key.len())?;
        let value = match &output.source {
            OutputSource::TypeName => Value::from(plan.type_name.as_str()),
            OutputSource::Slot(at, _) => match found.get_mut(*at) {
                Some(Some(FoundValue::Made(value))) => std::mem::take(value),
                Some(Some(FoundValue::Raw(raw))) => read(raw.get(), output.seed(walk)).map_err(E::custom)?,
                Some(None) | None => Value::Null,
            },
        };
        fields.insert(output.key.clone(), value);
    }
    Ok(Value::Object(fields))
}

impl Output {
    /// Returns what reads the value of the field.
    fn seed<'a, 'b>(&'a mut self, walk: &'a mut ValueWalk<'b>) -> ValueSeed<'a, 'b> {
        ValueSeed {
            key: &self.key,
            planned: match &mut self.source {
                OutputSource::TypeName => None,
                OutputSource::Slot(_, planned) => Some(planned),
            },
            walk,
        }
    }
}

/// Reads the value of a field as its type says.
struct ValueSeed<'a, 'b> {
    key: &'a Name,
    planned: Option<&'a mut PlannedValue>,
    walk: &'a mut ValueWalk<'b>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let walk = self.walk;
        match self.planned {
            None => IgnoredAny::deserialize(deserializer).map(|_| Value::Null),
            Some(PlannedValue::Scalar(of)) => scalar_of(deserializer, *of, walk),
            Some(list) => {
                walk.path.push(PathSegment::Field(self.key.to_string()));
                let value = deserializer.deserialize_any(ListVisitor { list, walk })?;
                walk.path.pop();
                Ok(value)
            }
        }
    }
}

fn scalar_of<'de, D: Deserializer<'de>>(
    deserializer: D,
    of: ValueType,
    walk: &mut ValueWalk<'_>,
) -> Result<Value, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    walk.charge(raw.get().len())?;
    Ok(scalar(raw, of))
}

/// Reads a list. Null is null, and any other value an error.
struct ListVisitor<'a, 'b> {
    list: &'a mut PlannedValue,
    walk: &'a mut ValueWalk<'b>,
}

impl<'de> Visitor<'de> for ListVisitor<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let (mut values, walk) = (Vec::new(), self.walk);
        loop {
            walk.charge(0)?;
            walk.path.push(PathSegment::Index(values.len()));
            let planned = &mut *self.list;
            let next = list.next_element_seed(ElementSeed { planned, walk })?;
            walk.path.pop();
            match next {
                Some(value) => values.push(value),
                None => return Ok(Value::List(values)),
            }
        }
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.walk.fault())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(self.walk.fault())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(self.walk.fault())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(self.walk.fault())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(self.walk.fault())
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(self.walk.fault())
    }
}

/// Reads an element of a list.
struct ElementSeed<'a, 'b> {
    planned: &'a mut PlannedValue,
    walk: &'a mut ValueWalk<'b>,
}

impl<'de> DeserializeSeed<'de> for ElementSeed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let walk = self.walk;
        match self.planned {
            PlannedValue::Objects(plan) => ObjectSeed { plan, walk }.deserialize(deserializer),
            PlannedValue::Scalar(of) | PlannedValue::Scalars(of) => scalar_of(deserializer, *of, walk),
        }
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
    pub(crate) walk: ValueWalk<'b>,
    plan: SelectionPlan,
    lines: LineBuffer,
    objects: Vec<Value>,
}

impl<'b> MetaReader<'b> {
    pub(crate) fn new(plan: SelectionPlan, walk: ValueWalk<'b>) -> Self {
        Self {
            walk,
            plan,
            lines: LineBuffer::default(),
            objects: Vec::new(),
        }
    }

    /// Reads the next chunk.
    ///
    /// # Errors
    /// As [`object`].
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), serde_json::Error> {
        let mut read = Ok(());
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |line| {
            // A list ends with its first error.
            if read.is_ok() {
                read = self.line(line);
            }
        });
        self.lines = lines;
        read
    }

    fn line(&mut self, line: &[u8]) -> Result<(), serde_json::Error> {
        let text: Cow<'_, str> = String::from_utf8_lossy(line);
        let (depth, index) = (self.walk.path.len(), PathSegment::Index(self.objects.len()));
        self.walk.path.push(index.clone());
        let object = match object(&text, &mut self.plan, &mut self.walk) {
            Err(_) if !self.walk.budget.is_exceeded() => {
                // An integer may have more digits than float64 can hold.
                self.walk.path.truncate(depth);
                self.walk.path.push(index);
                object(&without_huge_numbers(&text), &mut self.plan, &mut self.walk)?
            }
            result => result?,
        };
        self.walk.path.truncate(depth);
        self.objects.push(object);
        Ok(())
    }

    /// Returns all objects. A last line without its end is not one of them.
    pub(crate) fn finish(self) -> (Value, Vec<Vec<PathSegment>>) {
        (Value::List(self.objects), self.walk.faults)
    }
}
