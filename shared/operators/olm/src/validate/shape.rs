//! Decoding of JSON as Go's `encoding/json` does it: `null` fits every type and changes nothing,
//! names of fields match in any case, and a value of the wrong type does not keep the other fields
//! from being read.

use std::{borrow::Cow, fmt};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Rule;
use super::schemas::property_shape;
use super::value::{Value, ValueBudget};

/// Maximum number of wrong types reported for one line. A list may have any number of them.
const ERRORS_MAX: usize = 10;

/// Type of a JSON value.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Any value; it is skipped.
    Any,
    /// A string.
    Text,
    /// True or false.
    Bool,
    /// Integer of 32 or 64 bits, with a sign.
    Integer(u32),
    /// Bytes in base64, or as a list of numbers.
    Bytes,
    /// List of values of one type.
    List(&'static Shape),
    /// Object with any keys.
    Map(&'static Shape),
    /// Object with these fields.
    Object(Fields),
    /// Value of a property, whose shape the first field of the property decides.
    PropertyValue,
}

/// Field of an object.
#[derive(Debug, Clone, Copy)]
pub struct ShapeField {
    /// Name of the field.
    pub name: &'static str,
    /// Type of its value.
    pub shape: Shape,
    /// True if Go does not write the field when it is empty (`omitempty`).
    pub omit_empty: bool,
}

pub(crate) type Fields = &'static [ShapeField];

/// A decoded line, and the rules that its values break, each with a detail: the path of the value,
/// such as `entries[3].skips`, and the type that it should have. The value is absent if the line
/// cannot be decoded, for which there is one rule.
pub(crate) type Decoded<'a> = (Value<'a>, Vec<(Rule, String)>);

/// Decodes a line, and takes the values that it has from the budget.
pub(crate) fn decode<'a>(
    line: &'a [u8],
    shape: &'static Shape,
    budget: &mut ValueBudget,
) -> Decoded<'a> {
    budget.is_exceeded = false;
    let mut state = State {
        path: Vec::new(),
        errors: Vec::new(),
        keep: true,
        rule: Rule::FieldType,
        budget,
    };
    // A parser of text does not check each string again.
    let read = std::str::from_utf8(line)
        .map_err(de::Error::custom)
        .and_then(|line| {
            let mut parser = serde_json::Deserializer::from_str(line);
            let state = &mut state;
            let value = Decode { shape, state }.deserialize(&mut parser)?;
            parser.end().map(|()| value)
        });
    match read {
        Ok(value) => (value, state.errors),
        Err(_) if state.budget.is_exceeded => {
            let detail = format!("the line has {} bytes", line.len());
            (Value::Absent, vec![(Rule::TooComplex, detail)])
        }
        // A canonical line is JSON.
        Err(error) => (Value::Absent, vec![(Rule::FieldType, error.to_string())]),
    }
}

struct State<'b> {
    path: Vec<Step>,
    errors: Vec<(Rule, String)>,
    /// False inside values that are only checked. They can be large.
    keep: bool,
    /// Rule that a value of the wrong type breaks.
    rule: Rule,
    budget: &'b mut ValueBudget,
}

enum Step {
    Field(&'static str),
    Index(usize),
}

impl State<'_> {
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => path.extend([".", name]),
                Step::Index(at) => path.push_str(&format!("[{at}]")),
            }
        }
        path
    }
}

/// The recursion is as deep as the shape: [`Shape::Any`] is skipped without one.
struct Decode<'s, 'b> {
    shape: &'static Shape,
    state: &'s mut State<'b>,
}

impl<'de> DeserializeSeed<'de> for Decode<'_, '_> {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        match self.shape {
            Shape::Any => deserializer
                .deserialize_ignored_any(IgnoredAny)
                .map(|_| Value::Present),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl Decode<'_, '_> {
    fn wrong<'a>(self) -> Value<'a> {
        let expected = match self.shape {
            Shape::Any | Shape::PropertyValue => "any value",
            Shape::Text => "a string",
            Shape::Bool => "true or false",
            Shape::Integer(_) => "an integer in range",
            Shape::Bytes => "base64",
            Shape::List(_) => "a list",
            Shape::Map(_) | Shape::Object(_) => "an object",
        };
        let state = self.state;
        if state.errors.len() < ERRORS_MAX {
            let detail = format!("{}: must be {expected}", state.path());
            state.errors.push((state.rule, detail));
        }
        Value::Absent
    }

    fn child<'de, A: MapAccess<'de>>(
        &mut self,
        step: Step,
        shape: &'static Shape,
        map: &mut A,
    ) -> Result<Value<'de>, A::Error> {
        self.state.path.push(step);
        let state = &mut *self.state;
        let value = map.next_value_seed(Decode { shape, state });
        self.state.path.pop();
        value
    }

    fn object<'de, A: MapAccess<'de>>(
        mut self,
        fields: Fields,
        mut map: A,
    ) -> Result<Value<'de>, A::Error> {
        // Empty until a field is known: a list may have millions of `{}`.
        let mut values = Vec::new();
        while let Some(FieldKey(key)) = map.next_key()? {
            let names = fields.iter().map(|field| field.name);
            let Some(at) = field_position(names, &key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let ShapeField { name, shape, .. } = &fields[at];
            let value = match shape {
                Shape::PropertyValue => self.property_value(values.first(), &mut map)?,
                shape => self.child(Step::Field(name), shape, &mut map)?,
            };
            if self.state.keep && values.is_empty() {
                self.state.budget.take(fields.len())?;
                values.resize(fields.len(), Value::Absent);
            }
            // After a key that differs only in case, a null empties a list and keeps any other
            // value.
            let keeps =
                matches!(value, Value::Absent) && !matches!(shape, Shape::List(_) | Shape::Bytes);
            if let Some(slot) = values.get_mut(at)
                && !keeps
            {
                *slot = value;
            }
        }
        Ok(Value::Object(fields, values))
    }

    fn map<'de, A: MapAccess<'de>>(
        mut self,
        shape: &'static Shape,
        mut map: A,
    ) -> Result<Value<'de>, A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            self.child(Step::Field("*"), shape, &mut map)?;
        }
        Ok(Value::Present)
    }

    /// Reads the value of a property of this type. Canonical lines have the type first.
    fn property_value<'de, A: MapAccess<'de>>(
        &mut self,
        kind: Option<&Value<'de>>,
        map: &mut A,
    ) -> Result<Value<'de>, A::Error> {
        let (shape, keep) = property_shape(kind.map_or("", Value::as_text));
        self.state.rule = Rule::PropertyInvalid;
        self.state.keep = keep;
        let read = self.child(Step::Field("value"), shape, map);
        self.state.keep = true;
        self.state.rule = Rule::FieldType;
        Ok(match read? {
            // Present, although it is null or wrong: only a missing value is an error by itself.
            Value::Absent => Value::Present,
            read => read,
        })
    }

    fn bytes<'a>(self, text: &str) -> Value<'a> {
        let decoded = matches!(self.shape, Shape::Bytes).then(|| decode_base64(text).ok());
        decoded.flatten().map_or_else(|| self.wrong(), Value::Bytes)
    }

    fn integer<'a>(self, value: Option<i64>) -> Value<'a> {
        match *self.shape {
            Shape::Integer(64) if value.is_some() => Value::Present,
            Shape::Integer(32) if value.is_some_and(|value| i32::try_from(value).is_ok()) => {
                Value::Present
            }
            _ => self.wrong(),
        }
    }
}

/// Decodes base64 as Go does: without line ends, and whatever the unused bits of the last character
/// are.
///
/// # Errors
/// Fails for any other character, and for a wrong length.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    if text.contains(['\r', '\n']) {
        return ENGINE.decode(text.replace(['\r', '\n'], ""));
    }
    ENGINE.decode(text)
}

impl<'de> Visitor<'de> for Decode<'_, '_> {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(match self.shape {
            Shape::Text => Value::Text(Cow::Borrowed(text)),
            _ => self.bytes(text),
        })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(match self.shape {
            Shape::Text if self.state.keep => Value::Text(Cow::Owned(text.to_owned())),
            Shape::Text => Value::Present,
            _ => self.bytes(text),
        })
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(match self.shape {
            Shape::Bool => Value::Present,
            _ => self.wrong(),
        })
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.integer(Some(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.integer(i64::try_from(value).ok()))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(self.wrong())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Value::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let shape = match self.shape {
            Shape::List(shape) => shape,
            Shape::Bytes => {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element::<Option<u8>>()? {
                    bytes.push(byte.unwrap_or_default());
                }
                return Ok(Value::Bytes(bytes));
            }
            _ => {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(self.wrong());
            }
        };
        let mut list = Vec::new();
        for at in 0.. {
            self.state.path.push(Step::Index(at));
            let state = &mut *self.state;
            let element = seq.next_element_seed(Decode { shape, state });
            self.state.path.pop();
            match element? {
                Some(element) if self.state.keep => {
                    self.state.budget.take(1)?;
                    list.push(element);
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match self.shape {
            Shape::Object(fields) => self.object(fields, map),
            Shape::Map(shape) => self.map(shape, map),
            _ => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(self.wrong())
            }
        }
    }
}

/// Key of an object. It is borrowed where it has no escapes.
#[derive(Deserialize)]
struct FieldKey<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the position of the field that a key means, as Go reads JSON: the equal one, else one
/// that differs only in case.
pub fn field_position<'n>(
    mut names: impl Iterator<Item = &'n str> + Clone,
    key: &str,
) -> Option<usize> {
    let exact = names.clone().position(|name| name == key);
    exact.or_else(|| names.position(|name| folds_to(name, key)))
}

/// Compares as Go's `encoding/json` does. Two letters outside of ASCII are forms of `k` and `s`.
fn folds_to(name: &str, key: &str) -> bool {
    name.chars().map(fold).eq(key.chars().map(fold))
}

fn fold(char: char) -> char {
    match char {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        char => char.to_ascii_lowercase(),
    }
}
