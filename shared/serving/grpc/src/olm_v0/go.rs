//! Decoding of JSON and quoting of text as Go does it.
//!
//! Values are skipped and kept as text, so decoding takes no memory for what is not asked for.

use std::{borrow::Cow, fmt};

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

/// Error of a value that does not fit its type.
pub(crate) type Wrong = String;

/// Returns the fields of an object; `None` for those that are absent. Names match in any case. Of
/// several forms of one name the last counts that is not null.
pub(crate) fn fields<'a, const N: usize>(
    raw: &'a str,
    names: &[&str; N],
) -> Result<[Option<&'a RawValue>; N], Wrong> {
    let mut found = [None; N];
    find_fields(raw, names, &mut found)?;
    Ok(found)
}

/// Puts the fields of an object into `found`, in the order of their names.
pub(crate) fn find_fields<'a>(
    raw: &'a str,
    names: &[&str],
    found: &mut [Option<&'a RawValue>],
) -> Result<(), Wrong> {
    entries(raw, |key, value| {
        if let Some(slot) =
            olm::field_position(names.iter().copied(), &key).and_then(|at| found.get_mut(at))
        {
            // Null changes nothing.
            *slot = present(value).or(*slot).or(Some(value));
        }
        Ok(())
    })
}

/// Calls `each` with each element of the list in a field of an object. Null and an absent field
/// have none.
pub(crate) fn list<'a>(
    raw: &'a str,
    name: &str,
    each: impl FnMut(&'a RawValue) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let [list] = fields(raw, &[name])?;
    elements(list.map_or("null", RawValue::get), each)
}

/// Calls `each` with the key and the value of each field of an object. Null has none.
pub(crate) fn entries<'a>(
    raw: &'a str,
    mut each: impl FnMut(Cow<'a, str>, &'a RawValue) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    parts(raw, "an object", |key, value| {
        each(key.unwrap_or_default(), value)
    })
}

/// Calls `each` with each element of a list. Null has none.
pub(crate) fn elements<'a>(
    raw: &'a str,
    mut each: impl FnMut(&'a RawValue) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    parts(raw, "a list", |_, value| each(value))
}

/// Calls `each` with each part of an object or a list, one at a time: a list of millions of `{}`
/// would take many times its length.
fn parts<'a>(
    raw: &'a str,
    expected: &'static str,
    each: impl FnMut(Option<Cow<'a, str>>, &'a RawValue) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    struct Parts<F>(&'static str, F);
    impl<'de, F: FnMut(Option<Cow<'de, str>>, &'de RawValue) -> Result<(), Wrong>> Visitor<'de>
        for Parts<F>
    {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_unit<E: de::Error>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            if self.0 != "an object" {
                return Err(de::Error::invalid_type(Unexpected::Map, &self));
            }
            while let Some(BorrowedText(key)) = map.next_key()? {
                (self.1)(Some(key), map.next_value()?).map_err(de::Error::custom)?;
            }
            Ok(())
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
            if self.0 != "a list" {
                return Err(de::Error::invalid_type(Unexpected::Seq, &self));
            }
            while let Some(element) = seq.next_element()? {
                (self.1)(None, element).map_err(de::Error::custom)?;
            }
            Ok(())
        }
    }
    let mut parser = serde_json::Deserializer::from_str(raw);
    let read = parser.deserialize_any(Parts(expected, each));
    read.map_err(|error| error.to_string())
}

/// Returns the text of a string; empty for null and for nothing.
pub(crate) fn text<'a>(raw: Option<&'a RawValue>) -> Result<Cow<'a, str>, Wrong> {
    let raw = raw.and_then(present);
    let Some(raw) = raw else {
        return Ok(Cow::Borrowed(""));
    };
    let BorrowedText(text) = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    Ok(text)
}

/// Returns bytes, which are base64 or a list of numbers; none for null.
pub(crate) fn bytes(raw: &RawValue) -> Result<Vec<u8>, Wrong> {
    if raw.get().starts_with('[') {
        let numbers: Result<Vec<Option<u8>>, _> = serde_json::from_str(raw.get());
        let numbers = numbers.map_err(|error| error.to_string())?;
        return Ok(numbers.into_iter().map(Option::unwrap_or_default).collect());
    }
    olm::decode_base64(&text(Some(raw))?).map_err(|error| error.to_string())
}

/// Returns the value if it is not null.
pub(crate) fn present(raw: &RawValue) -> Option<&RawValue> {
    (raw.get() != "null").then_some(raw)
}

/// A string that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);
