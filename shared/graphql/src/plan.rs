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
pub(crate) struct SelectionPlan {
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
    Objects(SelectionPlan),
}

/// Values of an object that are needed, found by the keys of its JSON.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    names: Vec<String>,
    /// For each slot the position of the only field of the answer that takes its value.
    only_output: Vec<Option<usize>>,
    by_key: HashMap<Box<str>, Option<FoundSlot>>,
}

/// Slot for a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSlot {
    pub(crate) at: usize,
    /// True if the key is the name of the field. It wins over other keys of this name.
    pub(crate) is_exact: bool,
}

impl SelectionPlan {
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
        let mut outputs: Vec<Output> = Vec::with_capacity(merged.len());
        for (key, fields) in merged {
            if let Some(source) = source(&fields, shape, &mut slots, outputs.len()) {
                outputs.push(Output {
                    key: Name::new(key),
                    source,
                });
            }
        }
        Self {
            type_name: shape.name.clone(),
            outputs,
            slots,
        }
    }

    /// Returns the field of the answer that alone takes the value of a slot; `None` if there are several.
    pub(crate) fn only_output(&mut self, slot: usize) -> Option<&mut Output> {
        let at = self.slots.only_output[slot]?;
        self.outputs.get_mut(at)
    }
}

fn source(
    fields: &[SelectionField<'_>],
    shape: &ObjectShape,
    slots: &mut Slots,
    output: usize,
) -> Option<OutputSource> {
    let name = fields.first()?.name();
    if name == "__typename" {
        return Some(OutputSource::TypeName);
    }
    // Validation has refused other fields.
    let planned = match shape.fields.get(name)? {
        FieldShape::Scalar(of) => PlannedValue::Scalar(*of),
        FieldShape::Scalars(of) => PlannedValue::Scalars(*of),
        FieldShape::Objects(inner) => PlannedValue::Objects(SelectionPlan::new(fields, inner)),
    };
    Some(OutputSource::Slot(slots.add(name, output), planned))
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the slot of a field for one more field of the answer.
    fn add(&mut self, name: &str, output: usize) -> usize {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            self.only_output[at] = None;
            return at;
        }
        self.names.push(name.to_owned());
        self.only_output.push(Some(output));
        self.names.len() - 1
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
