use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

/// Value that is written as a JSON object. A derived deserialiser also accepts an array of the values, which other programs
/// refuse.
#[derive(Debug)]
pub(crate) struct JsonObject<T>(pub(crate) T);

/// Reads a JSON object and requires that all of the input is valid JSON (RFC 8259).
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    // The library does not check what it skips, such as texts that are not UTF-8. Another program that reads all of it
    // would see something else than what was verified.
    serde_json::from_slice::<Value>(bytes)?;
    serde_json::from_slice(bytes).map(|JsonObject(value)| value)
}

/// Reads the object in a field.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    JsonObject::deserialize(deserializer).map(|JsonObject(value)| value)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData))
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, members: M) -> Result<Self::Value, M::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(JsonObject)
    }
}
