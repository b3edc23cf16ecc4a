use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// Maximum length of all different names of fields of a Snapshot, in bytes: a hundred times those of a large real catalog.
const NAMES_MAX: usize = 1 << 20;

/// Fields of the Metas of a Snapshot, by which GraphQL types them. Equal fields of several Shards are kept once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogFields {
    /// Different fields of one schema in one Shard.
    pub schemas: Vec<SchemaFields>,
    /// Positions in `schemas` of the schemas of each Shard, in the order of the Snapshot.
    pub shards: Vec<Vec<u32>>,
}

/// Fields of the Metas of one schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SchemaFields {
    /// Schema, such as `olm.bundle`.
    pub schema: String,
    /// Fields by their names in GraphQL, such as `defaultChannel`.
    pub fields: BTreeMap<String, FieldType>,
}

/// Type of a field, by the first value that it has in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FieldType {
    /// Type of the value, or of the elements of a list.
    #[serde(rename = "type")]
    pub value: ValueType,
    /// True for a list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub list: bool,
    /// Fields of the objects in a list. If there are any, they are the type, whatever the first value was. Their types have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, FieldType>,
}

/// Scalar type of GraphQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// Text; also an object or a list within a list, as JSON text, and null.
    String,
    /// Truth value.
    Boolean,
    /// Number without a fraction.
    Int,
    /// Any other number.
    Float,
}

/// Collector of the fields of a Snapshot, Shard by Shard.
#[derive(Debug, Default)]
pub struct FieldsCollector {
    positions: HashMap<Arc<SchemaFields>, u32>,
    shards: Vec<Vec<u32>>,
    /// Length of all names in `positions`, in bytes.
    names: usize,
}

impl FieldsCollector {
    /// Adds the fields of the next Shard.
    pub fn push(&mut self, shard: &[Arc<SchemaFields>]) {
        let mut positions = Vec::with_capacity(shard.len());
        for schema in shard {
            let next = u32::try_from(self.positions.len()).unwrap_or(u32::MAX);
            let position = self.positions.get(schema).copied().unwrap_or(next);
            if position == next {
                self.names += schema.names();
                if self.names > NAMES_MAX {
                    return;
                }
                self.positions.insert(Arc::clone(schema), next);
            }
            positions.push(position);
        }
        self.shards.push(positions);
    }

    /// Returns the fields; `None` if they are too many.
    pub fn finish(self) -> Option<CatalogFields> {
        if self.names > NAMES_MAX {
            return None;
        }
        let mut schemas: Vec<(u32, Arc<SchemaFields>)> = self
            .positions
            .into_iter()
            .map(|(schema, position)| (position, schema))
            .collect();
        schemas.sort_unstable_by_key(|(position, _)| *position);
        Some(CatalogFields {
            schemas: schemas
                .into_iter()
                .map(|(_, schema)| Arc::unwrap_or_clone(schema))
                .collect(),
            shards: self.shards,
        })
    }
}

impl CatalogFields {
    /// Returns the fields of all Shards together, by schema. Fails with a position that `schemas` does not have.
    ///
    /// # Errors
    /// The position.
    pub fn merged(&self) -> Result<BTreeMap<&str, SchemaFields>, u32> {
        let mut merged: BTreeMap<&str, SchemaFields> = BTreeMap::new();
        let mut is_merged = vec![false; self.schemas.len()];
        for &at in self.shards.iter().flatten() {
            let schema = self.schemas.get(at as usize).ok_or(at)?;
            // What came before wins, so that the same fields change nothing a second time.
            if std::mem::replace(&mut is_merged[at as usize], true) {
                continue;
            }
            match merged.get_mut(schema.schema.as_str()) {
                Some(known) => known.merge(schema),
                None => drop(merged.insert(&schema.schema, schema.clone())),
            }
        }
        Ok(merged)
    }
}

impl SchemaFields {
    /// Returns the length of the names of the schema and of all fields, in bytes.
    pub fn names(&self) -> usize {
        let fields = self.fields.iter();
        let inner = fields
            .clone()
            .flat_map(|(_, field)| field.fields.keys().map(String::len));
        self.schema.len() + fields.map(|(name, _)| name.len()).sum::<usize>() + inner.sum::<usize>()
    }

    /// Adds the fields of later Metas. A known field keeps its type, and gets the fields of objects that it lacks.
    pub fn merge(&mut self, later: &Self) {
        for (name, field) in &later.fields {
            match self.fields.get_mut(name) {
                Some(known) => {
                    for (name, inner) in &field.fields {
                        known.fields.entry(name.clone()).or_insert_with(|| inner.clone());
                    }
                }
                None => drop(self.fields.insert(name.clone(), field.clone())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(value: ValueType) -> FieldType {
        FieldType {
            value,
            list: false,
            fields: BTreeMap::new(),
        }
    }

    fn list(fields: &[(&str, ValueType)]) -> FieldType {
        FieldType {
            value: ValueType::String,
            list: true,
            fields: fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), scalar(*value)))
                .collect(),
        }
    }

    fn schema(name: &str, fields: &[(&str, FieldType)]) -> SchemaFields {
        SchemaFields {
            schema: name.to_owned(),
            fields: fields
                .iter()
                .map(|(name, field)| ((*name).to_owned(), field.clone()))
                .collect(),
        }
    }

    #[test]
    fn collector_keeps_equal_fields_once() {
        let [a, b] = ["a", "b"].map(|name| Arc::new(schema(name, &[("x", scalar(ValueType::Int))])));
        let mut collector = FieldsCollector::default();
        collector.push(&[a.clone(), b.clone()]);
        collector.push(&[]);
        collector.push(std::slice::from_ref(&b));
        let fields = collector.finish().unwrap();
        assert_eq!(fields.schemas, [(*a).clone(), (*b).clone()]);
        assert_eq!(fields.shards, [vec![0, 1], vec![], vec![1]]);
    }

    #[test]
    fn collector_has_nothing_if_the_names_are_too_many() {
        let mut collector = FieldsCollector::default();
        for at in 0..NAMES_MAX / 1000 + 2 {
            let name = format!("{at:01000}");
            collector.push(&[Arc::new(schema("a", &[(&name, scalar(ValueType::Int))]))]);
        }
        assert_eq!(collector.finish(), None);
    }

    #[test]
    fn merged_keeps_the_first_type_and_all_fields_of_objects() {
        let fields = CatalogFields {
            schemas: vec![
                schema(
                    "a",
                    &[("x", scalar(ValueType::Int)), ("l", list(&[("p", ValueType::String)]))],
                ),
                schema("b", &[("x", scalar(ValueType::Float))]),
                schema(
                    "a",
                    &[("x", scalar(ValueType::String)), ("y", scalar(ValueType::Boolean))],
                ),
                schema("a", &[("l", list(&[("p", ValueType::Int), ("q", ValueType::Int)]))]),
            ],
            shards: vec![vec![0, 1], vec![2], vec![0], vec![3]],
        };
        let merged = fields.merged().unwrap();
        assert_eq!(merged.keys().collect::<Vec<_>>(), [&"a", &"b"]);
        let expected = [
            ("x", scalar(ValueType::Int)),
            ("l", list(&[("p", ValueType::String), ("q", ValueType::Int)])),
            ("y", scalar(ValueType::Boolean)),
        ];
        assert_eq!(merged["a"], schema("a", &expected));
        let damaged = CatalogFields {
            shards: vec![vec![4]],
            ..fields
        };
        assert_eq!(damaged.merged(), Err(4));
    }
}
