//! Decoding of JSON and quoting of text as Go does it.
//!
//! Values are skipped and kept as text, so decoding takes no memory for what is not asked for.

use std::{borrow::Cow, fmt};

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Error of a value that does not fit its type.
pub(crate) type Wrong = String;

/// Returns the fields of an object; `None` for those that are absent. Names match in any case. Of several forms of one name the
/// last counts that is not null.
pub(crate) fn fields<'a, const N: usize>(raw: &'a str, names: &[&str; N]) -> Result<[Option<&'a RawValue>; N], Wrong> {
    let mut found = [None; N];
    find_fields(raw, names, &mut found)?;
    Ok(found)
}

/// Puts the fields of an object into `found`, in the order of their names.
pub(crate) fn find_fields<'a>(raw: &'a str, names: &[&str], found: &mut [Option<&'a RawValue>]) -> Result<(), Wrong> {
    entries(raw, |key, value| {
        if let Some(slot) = position(names, &key).and_then(|at| found.get_mut(at)) {
            // Null changes nothing.
            *slot = present(value).or(*slot).or(Some(value));
        }
        Ok(())
    })
}

/// Calls `each` with each element of the list in a field of an object. Null and an absent field have none.
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
    each: impl FnMut(Cow<'a, str>, &'a RawValue) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    struct Entries<F>(F);
    impl<'de, F: FnMut(Cow<'de, str>, &'de RawValue) -> Result<(), Wrong>> Visitor<'de> for Entries<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_unit<E: de::Error>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some(FieldKey(key)) = map.next_key()? {
                (self.0)(key, map.next_value()?).map_err(de::Error::custom)?;
            }
            Ok(())
        }
    }
    let mut parser = serde_json::Deserializer::from_str(raw);
    let read = parser.deserialize_any(Entries(each));
    read.map_err(|error| error.to_string())
}

/// Calls `each` with each element of a list. Null has none.
pub(crate) fn elements<'a>(raw: &'a str, each: impl FnMut(&'a RawValue) -> Result<(), Wrong>) -> Result<(), Wrong> {
    // One at a time: a list of millions of `{}` would take many times its length.
    struct Elements<F>(F);
    impl<'de, F: FnMut(&'de RawValue) -> Result<(), Wrong>> Visitor<'de> for Elements<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_unit<E: de::Error>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
            while let Some(element) = seq.next_element()? {
                (self.0)(element).map_err(de::Error::custom)?;
            }
            Ok(())
        }
    }
    let mut parser = serde_json::Deserializer::from_str(raw);
    let read = parser.deserialize_any(Elements(each));
    read.map_err(|error| error.to_string())
}

/// Returns the text of a string; empty for null and for nothing.
pub(crate) fn text<'a>(raw: Option<&'a RawValue>) -> Result<Cow<'a, str>, Wrong> {
    let raw = raw.and_then(present);
    let Some(raw) = raw else {
        return Ok(Cow::Borrowed(""));
    };
    let FieldKey(text) = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
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

/// Returns the position of the field that a key means: the equal one, else one that differs only in case.
fn position(names: &[&str], key: &str) -> Option<usize> {
    let exact = names.iter().position(|name| *name == key);
    exact.or_else(|| names.iter().position(|name| folds_to(name, key)))
}

/// Compares as Go's `encoding/json` does. Two letters outside of ASCII are forms of `k` and `s`.
fn folds_to(name: &str, key: &str) -> bool {
    let fold = |char: char| match char {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        char => char.to_ascii_lowercase(),
    };
    name.chars().map(fold).eq(key.chars().map(fold))
}

/// A string that is borrowed where it has no escapes.
struct FieldKey<'a>(Cow<'a, str>);

impl<'de> de::Deserialize<'de> for FieldKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Text).map(FieldKey)
    }
}
