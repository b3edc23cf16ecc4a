//! Cost of introspection: how many values a query about the types asks for. Types name each other, so a short query can ask
//! for millions.

use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};

/// Maximum number of values that one query may ask for about the types. The query that tools send asks for 30,000 in a catalog
/// of 400 fields.
const VALUES_MAX: u64 = 300_000;

/// Arguments of a field, directives and values of an enumeration: the longest of these lists is that of locations.
const SHORT_LIST: u64 = 20;

/// Sizes of the lists that introspection can return.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IntrospectionCost {
    /// Number of types.
    pub(crate) types: u64,
    /// Number of fields of all types.
    pub(crate) all_fields: u64,
    /// Number of fields of the type that has most.
    pub(crate) most_fields: u64,
}

impl IntrospectionCost {
    /// Checks the number of values. The fragments of `document` must have been expanded within limits before.
    ///
    /// # Errors
    /// A message for the client.
    pub(crate) fn check(self, document: &ExecutableDocument) -> Result<(), String> {
        let mut values: u64 = 0;
        for (_, operation) in document.operations.iter() {
            self.add(
                document,
                &operation.node.selection_set.node,
                Place::Root,
                1,
                &mut values,
            );
        }
        if values > VALUES_MAX {
            return Err(format!(
                "query asks for more than {VALUES_MAX} values about the types; ask for one type with __type"
            ));
        }
        Ok(())
    }

    fn add(self, document: &ExecutableDocument, set: &SelectionSet, place: Place, times: u64, values: &mut u64) {
        for selection in &set.items {
            match &selection.node {
                Selection::Field(field) => {
                    let name = field.node.name.node.as_str();
                    if place == Place::Root && !is_introspection(name) {
                        continue;
                    }
                    let (inner, length) = self.list(name, place);
                    *values = values.saturating_add(times);
                    let set = &field.node.selection_set.node;
                    self.add(document, set, inner, times.saturating_mul(length), values);
                }
                Selection::InlineFragment(inline) => {
                    self.add(document, &inline.node.selection_set.node, place, times, values);
                }
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = document.fragments.get(&spread.node.fragment_name.node) {
                        self.add(document, &fragment.node.selection_set.node, place, times, values);
                    }
                }
            }
        }
    }

    fn list(self, name: &str, place: Place) -> (Place, u64) {
        match (name, place) {
            ("types", Place::Inside) => (Place::AllTypes, self.types),
            // The fields of all types together, and not the longest list for each of them.
            ("fields", Place::AllTypes) => (Place::Inside, self.all_fields / self.types.max(1) + 1),
            ("fields", _) => (Place::Inside, self.most_fields),
            (
                "args" | "inputFields" | "enumValues" | "possibleTypes" | "interfaces" | "directives" | "locations",
                _,
            ) => (Place::Inside, SHORT_LIST),
            _ => (Place::Inside, 1),
        }
    }
}

/// Returns true for the fields of the root type that describe the types.
pub(crate) fn is_introspection(field: &str) -> bool {
    matches!(field, "__schema" | "__type")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Inside,
    AllTypes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str) -> Result<(), String> {
        let cost = IntrospectionCost {
            types: 40,
            all_fields: 400,
            most_fields: 50,
        };
        cost.check(&async_graphql::parser::parse_query(query).unwrap())
    }

    #[test]
    fn check_takes_the_query_of_tools() {
        assert_eq!(check(include_str!("../tests/introspection.graphql")), Ok(()));
    }

    #[test]
    fn check_refuses_lists_within_lists() {
        let deep = "{__schema{types{fields{type{fields{type{fields{type{name}}}}}}}}}";
        assert!(check(deep).is_err());
        let through_fragments = "{__schema{types{...f}}} fragment f on __Type {fields{type{...g}}} \
             fragment g on __Type {fields{type{fields{args{type{name}}}}}}";
        assert!(check(through_fragments).is_err());
    }

    #[test]
    fn check_ignores_the_fields_of_catalogs() {
        assert_eq!(check("{types{types{fields{fields{fields{fields}}}}}}"), Ok(()));
    }
}
