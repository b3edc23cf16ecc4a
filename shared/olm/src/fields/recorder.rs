use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use model::{FieldType, SchemaFields, ValueType, text::LineBuffer};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::field_name;

/// Number of elements of a list by which its type is known, as in catalogd.
const ELEMENTS_MAX: usize = 10;

/// Maximum length of all names of the fields of one Shard, in bytes: a hundred times those of a real one.
const NAMES_MAX: usize = 256 << 10;

/// Records which fields the Metas of one Shard have, by their schemas. The lines may come in chunks of any size.
///
/// A field has the type of its first value; a list of objects has the fields of all their lists (catalogd, `internal/catalogd/graphql`).
///
/// ```
/// use catalog_mirror_olm::FieldsRecorder;
/// use model::ValueType;
///
/// let mut recorder = FieldsRecorder::default();
/// recorder.push(b"{\"default_channel\":\"stable\",\"schema\":\"olm.package\"}\n");
/// let fields = recorder.finish().expect("they are few");
/// assert_eq!(fields[0].schema, "olm.package");
/// assert_eq!(fields[0].fields["defaultChannel"].value, ValueType::String);
/// ```
#[derive(Debug, Default)]
pub struct FieldsRecorder {
    lines: LineBuffer,
    schemas: BTreeMap<String, SchemaFields>,
    /// Length of the names in `schemas`, in bytes.
    names: usize,
}

impl FieldsRecorder {
    /// Adds the next bytes.
    pub fn push(&mut self, chunk: &[u8]) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |line| self.line(line));
        self.lines = lines;
    }

    /// Returns the fields of each schema, in byte order of the schemas; `None` if they are too many.
    pub fn finish(mut self) -> Option<Vec<SchemaFields>> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(|line| self.line(line));
        (self.names <= NAMES_MAX).then(|| self.schemas.into_values().collect())
    }

    fn line(&mut self, line: &[u8]) {
        // What is recorded so far is bounded by the length of one line more.
        if self.names > NAMES_MAX {
            return;
        }
        // Canonical lines are objects. Another one has no fields.
        let mut reader = serde_json::Deserializer::from_slice(line);
        let Ok(Some(found)) = reader.deserialize_map(MetaVisitor) else {
            return;
        };
        match self.schemas.entry(found.schema.clone()) {
            Entry::Vacant(entry) => {
                self.names += found.names();
                entry.insert(found);
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                // Most Metas have the fields of those before them, and counting all names of all Metas would take time.
                let before = count(known);
                known.merge(&found);
                if count(known) > before {
                    self.names += found.names();
                }
            }
        }
    }
}

fn count(schema: &SchemaFields) -> usize {
    schema.fields.values().map(|field| 1 + field.fields.len()).sum()
}

/// Reads the fields of one Meta; `None` if it has no schema.
struct MetaVisitor;

impl<'de> Visitor<'de> for MetaVisitor {
    type Value = Option<SchemaFields>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut schema = String::new();
        let mut fields = BTreeMap::new();
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let found = if key == "schema" {
                schema = map.next_value()?;
                SeenType::of(ValueType::String)
            } else {
                map.next_value_seed(ValueSeed { depth: 0 })?
            };
            // Of two keys with one name, the first counts.
            fields.entry(field_name(&key)).or_insert_with(|| found.into_field());
        }
        Ok((!schema.is_empty()).then_some(SchemaFields { schema, fields }))
    }
}

/// Type of one value.
struct SeenType {
    /// Scalar type; `None` for null.
    value: Option<ValueType>,
    kind: Kind,
    is_list: bool,
    fields: BTreeMap<String, FieldType>,
}

/// Kind of a JSON value, by which catalogd tells elements apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Text,
    Boolean,
    Number,
    Object,
    List,
}

impl SeenType {
    const fn of(value: ValueType) -> Self {
        let kind = match value {
            ValueType::String => Kind::Text,
            ValueType::Boolean => Kind::Boolean,
            ValueType::Int | ValueType::Float => Kind::Number,
        };
        Self {
            value: Some(value),
            kind,
            is_list: false,
            fields: BTreeMap::new(),
        }
    }

    const fn null() -> Self {
        Self {
            value: None,
            kind: Kind::Null,
            is_list: false,
            fields: BTreeMap::new(),
        }
    }

    fn into_field(self) -> FieldType {
        FieldType {
            value: self.value.unwrap_or(ValueType::String),
            list: self.is_list,
            fields: self.fields,
        }
    }
}

/// Reads the type of a value that lies in `depth` lists or objects of its Meta's field.
#[derive(Clone, Copy)]
struct ValueSeed {
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = SeenType;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SeenType, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed {
    type Value = SeenType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<SeenType, E> {
        Ok(SeenType::null())
    }

    fn visit_bool<E>(self, _: bool) -> Result<SeenType, E> {
        Ok(SeenType::of(ValueType::Boolean))
    }

    fn visit_i64<E>(self, _: i64) -> Result<SeenType, E> {
        Ok(SeenType::of(ValueType::Int))
    }

    fn visit_u64<E>(self, number: u64) -> Result<SeenType, E> {
        Ok(SeenType::of(number_type(number as f64)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<SeenType, E> {
        Ok(SeenType::of(number_type(number)))
    }

    fn visit_str<E>(self, _: &str) -> Result<SeenType, E> {
        Ok(SeenType::of(ValueType::String))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SeenType, A::Error> {
        let mut fields = BTreeMap::new();
        // Only the fields of objects in a list have types. Deeper values are JSON text.
        if self.depth == 1 {
            let inner = Self { depth: 2 };
            while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                let found = map.next_value_seed(inner)?;
                fields.entry(field_name(&key)).or_insert_with(|| found.into_field());
            }
        } else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        Ok(SeenType {
            kind: Kind::Object,
            fields,
            ..SeenType::of(ValueType::String)
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<SeenType, A::Error> {
        let mut list = SeenType {
            kind: Kind::List,
            is_list: true,
            ..SeenType::of(ValueType::String)
        };
        if self.depth > 0 {
            // Within an object the first element alone tells the type.
            let first = elements.next_element_seed(Self { depth: 3 })?;
            list.value = first
                .filter(|first| first.kind != Kind::List)
                .and_then(|first| first.value);
        } else {
            list = list_type(list, &mut elements)?;
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(list)
    }
}

/// Reads the first elements of a list, and types it by them: by the first one that is not null, with the fields of all objects.
/// Scalars of several kinds are text.
fn list_type<'de, A: SeqAccess<'de>>(mut list: SeenType, elements: &mut A) -> Result<SeenType, A::Error> {
    let mut first = None;
    let mut is_mixed = false;
    let mut has_objects = false;
    for _ in 0..ELEMENTS_MAX {
        let Some(element) = elements.next_element_seed(ValueSeed { depth: 1 })? else {
            break;
        };
        let Some(value) = element.value else {
            continue;
        };
        let (kind, _) = *first.get_or_insert((element.kind, value));
        is_mixed |= kind != element.kind;
        has_objects |= element.kind == Kind::Object;
        for (name, field) in element.fields {
            list.fields.entry(name).or_insert(field);
        }
    }
    list.value = match first {
        Some((Kind::Text | Kind::Boolean | Kind::Number, value)) if !is_mixed || has_objects => Some(value),
        _ => Some(ValueType::String),
    };
    Ok(list)
}

/// Returns the type of a number, which catalogd reads as a 64-bit float.
fn number_type(number: f64) -> ValueType {
    // The largest float below 2^63 is an integer that fits; 2^63 itself does not.
    let is_integer = number.trunc() == number && (-(2_f64.powi(63))..2_f64.powi(63)).contains(&number);
    match is_integer {
        true => ValueType::Int,
        false => ValueType::Float,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn record(lines: &str) -> Vec<SchemaFields> {
        let mut recorder = FieldsRecorder::default();
        recorder.push(lines.as_bytes());
        recorder.finish().unwrap()
    }

    /// Returns the type as GraphQL writes it, with the fields of objects in braces.
    fn written(field: &FieldType) -> String {
        let name = format!("{:?}", field.value);
        let inner: Vec<String> = field
            .fields
            .iter()
            .map(|(name, field)| format!("{name}: {}", written(field)))
            .collect();
        match (field.fields.is_empty(), field.list) {
            (false, _) => format!("[{{{}}}]", inner.join(", ")),
            (true, true) => format!("[{name}]"),
            (true, false) => name,
        }
    }

    #[rstest]
    #[case(&["null"], "String")]
    #[case(&["\"a\""], "String")]
    #[case(&["true"], "Boolean")]
    #[case(&["1"], "Int")]
    #[case(&["1.0"], "Int")]
    #[case(&["1.5"], "Float")]
    #[case(&["9007199254740993"], "Int")]
    #[case(&["9223372036854775807"], "Float")]
    #[case(&["18446744073709551615"], "Float")]
    #[case(&["1e300"], "Float")]
    #[case(&["{\"a\":1}"], "String")]
    #[case(&["[]"], "[String]")]
    #[case(&["[null]"], "[String]")]
    #[case(&["[null,1]"], "[Int]")]
    #[case(&["[1.5,1]"], "[Float]")]
    #[case(&["[1,\"a\"]"], "[String]")]
    #[case(&["[[1]]"], "[String]")]
    #[case(&["[{}]"], "[String]")]
    #[case(&["[1,{}]"], "[Int]")]
    #[case(&["[{\"a\":1},{\"a\":\"x\",\"b\":[]},{\"c\":{}}]"], "[{a: Int, b: [String], c: String}]")]
    #[case(&["[1,{\"a\":[2]}]"], "[{a: [Int]}]")]
    #[case(&["[{\"a\":[null,1]}]"], "[{a: [String]}]")]
    #[case(&["[{\"a\":[[1]]}]"], "[{a: [String]}]")]
    #[case(&["[0,0,0,0,0,0,0,0,0,0,{\"a\":1}]"], "[Int]")]
    // The first value counts, but fields of objects add up.
    #[case(&["1", "\"a\"", "[1]"], "Int")]
    #[case(&["1", "[{\"a\":1}]", "[{\"a\":\"x\",\"b\":1}]"], "[{a: Int, b: Int}]")]
    fn fields_are_typed_as_catalogd_does(#[case] values: &[&str], #[case] expected: &str) {
        let lines: String = values
            .iter()
            .map(|value| format!("{{\"schema\":\"s\",\"x\":{value}}}\n"))
            .collect();
        let schemas = record(&lines);
        assert_eq!(written(&schemas[0].fields["x"]), expected, "{values:?}");
        assert_eq!(written(&schemas[0].fields["schema"]), "String");
    }

    #[test]
    fn schemas_are_apart_and_metas_without_one_have_no_fields() {
        let schemas =
            record("{\"a\":1,\"schema\":\"y\"}\n{\"b\":1}\n{\"c\":1,\"schema\":\"x\"}\n{\"a\":1,\"schema\":\"\"}");
        let found: Vec<(&str, Vec<&str>)> = schemas
            .iter()
            .map(|schema| (&*schema.schema, schema.fields.keys().map(String::as_str).collect()))
            .collect();
        assert_eq!(found, [("x", vec!["c", "schema"]), ("y", vec!["a", "schema"])]);
    }

    #[test]
    fn too_many_fields_are_none() {
        let mut recorder = FieldsRecorder::default();
        for at in 0..NAMES_MAX {
            recorder.push(format!("{{\"field{at}\":1,\"schema\":\"s\"}}\n").as_bytes());
        }
        assert!(recorder.names < NAMES_MAX + 100, "{}", recorder.names);
        assert_eq!(recorder.finish(), None);
    }
}
