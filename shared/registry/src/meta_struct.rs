use std::{collections::BTreeMap, fmt};

use prost_types::{ListValue, Struct, Value, value::Kind};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::RegistryError;

/// Returns the line of a Meta as a message. Numbers become floating point, as in every `google.protobuf.Struct`.
///
/// # Errors
/// Fails if the line is no object, or nested deeper than 128 levels.
pub fn meta_struct(line: &[u8]) -> Result<Struct, RegistryError> {
    let error = |reason: String| RegistryError::Bundle {
        bundle: "custom schema".to_owned(),
        reason,
    };
    let JsonValue(value) = serde_json::from_slice(line).map_err(|parse| error(parse.to_string()))?;
    match value.kind {
        Some(Kind::StructValue(object)) => Ok(object),
        _ => Err(error("the line is no object".to_owned())),
    }
}

struct JsonValue(Value);

impl<'de> Deserialize<'de> for JsonValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = deserializer.deserialize_any(JsonKind)?;
        Ok(Self(Value { kind: Some(kind) }))
    }
}

struct JsonKind;

impl<'de> Visitor<'de> for JsonKind {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Kind, E> {
        Ok(Kind::NullValue(0))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::BoolValue(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::NumberValue(value as f64))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::NumberValue(value as f64))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::NumberValue(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::StringValue(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Kind, A::Error> {
        let mut values = Vec::new();
        while let Some(JsonValue(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Kind::ListValue(ListValue { values }))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((key, JsonValue(value))) = map.next_entry::<String, _>()? {
            fields.insert(key, value);
        }
        Ok(Kind::StructValue(Struct { fields }))
    }
}
