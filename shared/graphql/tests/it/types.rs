use std::collections::BTreeMap;

use catalog_mirror_graphql::{CatalogTypes, TypesError};
use model::SchemaFields;
use rstest::rstest;

use crate::catalog::schema;

fn made(schemas: &[SchemaFields]) -> Result<(), TypesError> {
    let fields: BTreeMap<&str, SchemaFields> = schemas
        .iter()
        .map(|schema| (schema.schema.as_str(), schema.clone()))
        .collect();
    CatalogTypes::new(&fields).map(drop)
}

#[rstest]
#[case::type_name(&["my.thing", "my-thing"], "schema \"my-thing\" and schema \"my.thing\" have the same field mythings")]
#[case::only_type_name(&["a.b", "9a.b"], "schema \"9a.b\" is \"9abs\"")]
#[case::type_names(&["a.1", "a.1."], "have the same field a1s")]
#[case::letters(&["ab", "AB"], "schema \"AB\" and schema \"ab\" have the same field abs")]
#[case::root_type(&["query"], "GraphQL's own Query and schema \"query\" have the same type Query")]
#[case::scalar(&["string"], "have the same type String")]
#[case::summary(&["catalog.summary"], "the summary and schema \"catalog.summary\" have the same type CatalogSummary")]
#[case::summary_of_schema(&["schema_summary"], "have the same type SchemaSummary")]
#[case::digit_in_type(&["a", ".1"], "is \"1s\" in GraphQL")]
#[case::unicode(&["名前", "キー"], "have the same field s")]
#[case::nested(&["x", "x.list"], "have the same type XList")]
fn new_refuses_names_that_are_not_unique_or_not_allowed(#[case] schemas: &[&str], #[case] message: &str) {
    let fields = [("name", "String"), ("list", "{a: Int}")];
    let schemas: Vec<_> = schemas.iter().map(|name| schema(name, &fields)).collect();
    let error = made(&schemas).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[rstest]
#[case::introspection("__a")]
#[case::empty("")]
#[case::space("a b")]
#[case::digit("1")]
fn new_refuses_fields_of_damaged_documents(#[case] field: &str) {
    let error = made(&[schema("a", &[(field, "Int")])]).unwrap_err();
    assert!(matches!(error, TypesError::Name { .. }), "{error}");
}

#[test]
fn new_refuses_a_schema_without_fields() {
    let error = made(&[schema("a", &[])]).unwrap_err();
    assert!(matches!(error, TypesError::Invalid(_)), "{error}");
}

#[test]
fn new_takes_a_catalog_without_metas_and_leaves_out_the_empty_schema() {
    assert_eq!(made(&[]), Ok(()));
    assert_eq!(made(&[schema("", &[("a", "Int")])]), Ok(()));
}

#[test]
fn new_takes_exactly_the_numbers_of_schemas_and_fields() {
    let schemas = |count: usize| -> Vec<_> {
        let names = (0..count).map(|at| format!("a{at}"));
        names.map(|name| schema(&name, &[("a", "Int")])).collect()
    };
    assert_eq!(made(&schemas(1_000)), Ok(()));
    let error = made(&schemas(1_001)).unwrap_err();
    assert!(matches!(error, TypesError::TooMany { of: "schemas", .. }), "{error}");
    let fields = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("a{at}")).collect();
        let fields: Vec<_> = names.iter().map(|name| (name.as_str(), "Int")).collect();
        made(&[schema("a", &fields)])
    };
    assert_eq!(fields(10_000), Ok(()));
    let error = fields(10_001).unwrap_err();
    assert!(matches!(error, TypesError::TooMany { of: "fields", .. }), "{error}");
}
