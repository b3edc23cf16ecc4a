//! Fields that a query asks for, so that everything else of a line is skipped.

use std::collections::HashMap;

use async_graphql::{Name, SelectionField, indexmap::IndexMap};
use model::ValueType;
use olm::field_name;

use crate::types::{FieldShape, ObjectShape};

/// Maximum number of keys whose names are remembered. Metas of one schema share their keys; a hostile catalog may have another
/// one in each line.
const KEYS_MAX: usize = 256;

/// Fields of an object that a query asks for.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) type_name: String,
    /// Fields of the answer, in its order.
    pub(crate) outputs: Vec<Output>,
    pub(crate) slots: Slots,
}

/// A field of the answer.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) key: Name,
    pub(crate) source: OutputSource,
}

/// Origin of a field of the answer.
#[derive(Debug)]
pub(crate) enum OutputSource {
    TypeName,
    /// The value in a slot.
    Slot(usize, PlannedValue),
}

/// Type of a value, with the fields that are asked for.
#[derive(Debug)]
pub(crate) enum PlannedValue {
    Scalar(ValueType),
    Scalars(ValueType),
    Objects(Plan),
}

/// Values of an object that are needed, found by the keys of its JSON.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    names: Vec<String>,
    by_key: HashMap<Box<str>, Option<FoundSlot>>,
}

/// Slot for a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSlot {
    pub(crate) at: usize,
    /// True if the key is the name of the field. It wins over other keys of this name.
    pub(crate) is_exact: bool,
}

impl Plan {
    /// Plans the fields of one or more selections of one object.
    pub(crate) fn new(selected: &[SelectionField<'_>], shape: &ObjectShape) -> Self {
        // Fields of one key are one field, whose selections are merged.
        let mut merged: IndexMap<&str, Vec<SelectionField<'_>>> = IndexMap::new();
        for field in selected.iter().flat_map(SelectionField::selection_set) {
            merged
                .entry(field.alias().unwrap_or(field.name()))
                .or_default()
                .push(field);
        }
        let mut slots = Slots::default();
        let outputs = merged.into_iter().filter_map(|(key, fields)| {
            Some(Output {
                key: Name::new(key),
                source: source(&fields, shape, &mut slots)?,
            })
        });
        Self {
            type_name: shape.name.clone(),
            outputs: outputs.collect(),
            slots,
        }
    }
}

fn source(fields: &[SelectionField<'_>], shape: &ObjectShape, slots: &mut Slots) -> Option<OutputSource> {
    let name = fields.first()?.name();
    if name == "__typename" {
        return Some(OutputSource::TypeName);
    }
    // Validation has refused other fields.
    let planned = match shape.fields.get(name)? {
        FieldShape::Scalar(of) => PlannedValue::Scalar(*of),
        FieldShape::Scalars(of) => PlannedValue::Scalars(*of),
        FieldShape::Objects(inner) => PlannedValue::Objects(Plan::new(fields, inner)),
    };
    Some(OutputSource::Slot(slots.of_name(name), planned))
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    fn of_name(&mut self, name: &str) -> usize {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// Returns the slot for the value of a key.
    pub(crate) fn find(&mut self, key: &str) -> Option<FoundSlot> {
        if let Some(&found) = self.by_key.get(key) {
            return found;
        }
        let name = field_name(key);
        let at = self.names.iter().position(|known| *known == name);
        let is_exact = name == key;
        let found = at.map(|at| FoundSlot { at, is_exact });
        if self.by_key.len() < KEYS_MAX {
            self.by_key.insert(key.into(), found);
        }
        found
    }
}
