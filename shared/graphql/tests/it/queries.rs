use std::sync::Arc;

use catalog_mirror_graphql::{AnswerForm, GraphQlRequest, QueryLimits, is_refusal};
use rstest::rstest;
use serde_json::{Value, json};

use crate::catalog::{MemoryCatalog, answer, ask, demo, schema, types};

#[rstest]
#[case::summary(
    "{summary{totalSchemas schemas{name totalObjects totalFields}}}",
    json!({"summary": {"totalSchemas": 2, "schemas": [
        {"name": "olm.bundle", "totalObjects": 120, "totalFields": 5},
        {"name": "olm.package", "totalObjects": 2, "totalFields": 3},
    ]}})
)]
#[case::page("{olmbundles(limit: 2, offset: 59){name}}", json!({"olmbundles": [{"name": "a.v59"}, {"name": "b.v0"}]}))]
#[case::after_the_last("{olmbundles(offset: 1000){name}}", json!({"olmbundles": []}))]
#[case::negative_offset("{olmbundles(offset: -5, limit: 1){name}}", json!({"olmbundles": [{"name": "a.v0"}]}))]
#[case::package(r#"{olmpackages(package: "b"){name} olmbundles(package: "b", limit: 1){name}}"#,
    json!({"olmpackages": [{"name": "b"}], "olmbundles": [{"name": "b.v0"}]}))]
#[case::name(r#"{olmbundles(name: "b.v7"){package}}"#, json!({"olmbundles": [{"package": "b"}]}))]
#[case::other_package(r#"{olmbundles(name: "b.v7", package: "a"){package}}"#, json!({"olmbundles": []}))]
#[case::nested(r#"{olmbundles(name: "b.v7"){properties{type value} relatedImages{image}}}"#,
    json!({"olmbundles": [{"properties": [
        {"type": "olm.package", "value": r#"{"packageName":"b","version":"7.0.0"}"#},
        {"type": "x", "value": "<text>"},
    ], "relatedImages": []}]}))]
#[case::aliases(r#"{x: olmbundles(limit: 1){n: name name m: name}  y: olmbundles(limit: 1){p: properties{t: type}}}"#,
    json!({"x": [{"n": "a.v0", "name": "a.v0", "m": "a.v0"}],
        "y": [{"p": [{"t": "olm.package"}, {"t": "x"}]}]}))]
#[case::merged("{olmpackages(limit: 1){name} olmpackages(limit: 1){schema}}", json!({"olmpackages": [{"name": "a", "schema": "olm.package"}]}))]
#[case::merged_lists("{olmbundles(limit: 1){properties{type} properties{type}}}",
    json!({"olmbundles": [{"properties": [{"type": "olm.package"}, {"type": "x"}]}]}))]
#[case::fragments("{olmpackages(limit: 1){...f ... on OlmPackage{name} ... {schema}}} fragment f on OlmPackage {defaultChannel}",
    json!({"olmpackages": [{"defaultChannel": "stable", "name": "a", "schema": "olm.package"}]}))]
#[case::root_fragment_twice("{...f ...f} fragment f on Query {olmpackages(limit: 1){name}}", json!({"olmpackages": [{"name": "a"}]}))]
#[case::type_names("{__typename olmbundles(limit: 1){__typename properties{__typename}} summary{__typename}}",
    json!({"__typename": "Query", "olmbundles": [{"__typename": "OlmBundle",
        "properties": [{"__typename": "OlmBundleProperties"}, {"__typename": "OlmBundleProperties"}]}],
        "summary": {"__typename": "CatalogSummary"}}))]
#[case::skipped("{olmpackages(limit: 1){name @skip(if: true) schema @include(if: true)}}", json!({"olmpackages": [{"schema": "olm.package"}]}))]
#[case::all_skipped("{summary @skip(if: true){totalSchemas}}", json!({}))]
#[case::introspection(r#"{__type(name: "OlmPackage"){fields{name type{name}}}}"#, json!({"__type": {"fields": [
    {"name": "defaultChannel", "type": {"name": "String"}},
    {"name": "name", "type": {"name": "String"}},
    {"name": "schema", "type": {"name": "String"}}]}}))]
#[tokio::test]
async fn answer_has_the_data(#[case] query: &str, #[case] data: Value) {
    let found = answer(query).await;
    assert_eq!(found, json!({ "data": data }), "{query}");
    // Also in this order: an equal request has equal bytes.
    assert_eq!(found.to_string(), answer(query).await.to_string());
}

#[rstest]
#[case(0, 100)]
#[case(-1, 100)]
#[case(101, 100)]
#[case(100, 100)]
#[case(99, 99)]
#[case(1, 1)]
#[tokio::test]
async fn limit_is_that_of_catalogd(#[case] limit: i64, #[case] found: usize) {
    let answer = answer(&format!("{{olmbundles(limit: {limit}){{name}}}}")).await;
    assert_eq!(answer["data"]["olmbundles"].as_array().unwrap().len(), found);
}

#[rstest]
#[case::syntax("{")]
#[case::unknown_field("{olmbundles{nothing}}")]
#[case::unknown_root("{nothing}")]
#[case::unknown_argument("{olmbundles(first: 1){name}}")]
#[case::argument_of_another_type("{olmbundles(limit: \"1\"){name}}")]
#[case::no_fields("{olmbundles}")]
#[case::fields_of_a_scalar("{olmbundles{name{a}}}")]
#[case::mutation("mutation {olmbundles{name}}")]
#[case::subscription("subscription {olmbundles{name}}")]
#[case::unknown_variable("{olmbundles(limit: $a){name}}")]
#[case::wrong_fragment("{olmbundles{...f}} fragment f on OlmPackage {name}")]
#[case::unused_fragment("{olmbundles{name}} fragment f on OlmPackage {name}")]
#[case::operations_without_a_name("query a {__typename} query b {__typename}")]
#[case::conflict("{olmbundles{a: name a: package}}")]
#[tokio::test]
async fn errors_have_no_data(#[case] query: &str) {
    let found = answer(query).await;
    assert_eq!(found["data"], Value::Null, "{found}");
    assert!(!found["errors"].as_array().unwrap().is_empty(), "{found}");
    let (types, data) = demo();
    let request = GraphQlRequest::from_parameters(query, "", "").unwrap();
    let form = AnswerForm::NoData;
    let bytes = types
        .answer(&request, Arc::new(data), QueryLimits::default(), form)
        .await;
    assert!(is_refusal(&bytes.unwrap()), "{query}");
}

#[tokio::test]
async fn variables_and_operation_name_choose_what_is_answered() {
    let query = "query a($n: Int = 1, $p: String) {olmbundles(limit: $n, package: $p){name}} query b {__typename}";
    for (variables, operation, data) in [
        (
            r#"{"n": 2, "p": "b"}"#,
            "a",
            json!({"olmbundles": [{"name": "b.v0"}, {"name": "b.v1"}]}),
        ),
        (r#"{"p": null}"#, "a", json!({"olmbundles": [{"name": "a.v0"}]})),
        ("", "b", json!({"__typename": "Query"})),
    ] {
        let request = GraphQlRequest::from_parameters(query, variables, operation).unwrap();
        let found = ask(demo(), &request, QueryLimits::default()).await;
        assert_eq!(found, json!({ "data": data }), "{variables}");
    }
    let request = GraphQlRequest::from_parameters(query, r#"{"n": "x"}"#, "a").unwrap();
    let found = ask(demo(), &request, QueryLimits::default()).await;
    assert_eq!(found["data"], Value::Null, "{found}");
}

/// Values of one Meta, each for a field of each type.
#[tokio::test]
async fn lists_and_keys_are_read_as_their_types_say() {
    let types = types(&[schema(
        "x",
        &[
            ("schema", "String"),
            ("texts", "[String]"),
            ("numbers", "[Int]"),
            ("list", "{a: String, b: [String], fieldC: Int}"),
            ("other", "{a: String}"),
            ("plain", "{a: String}"),
            ("missing", "Int"),
            ("aB", "String"),
        ],
    )]);
    let line = r#"{"a_b":"1","aB":"2","a.b":"3","list":[{"a":1,"b":["x",{"y":"&"}],"c":0,"field_c":7},null,"text",[1],3.5,{}],"numbers":[1,"2",null,2.9,[3]],"other":"text","plain":null,"schema":"x","texts":["a",1,null,[1],{"b":"<"}]}"#;
    let query = "{xs{aB texts numbers list{a b fieldC} other{a} plain{a} missing}}";
    let request = GraphQlRequest::from_parameters(query, "", "").unwrap();
    let catalog = (types, MemoryCatalog(vec![line.to_owned()]));
    let found = ask(catalog, &request, QueryLimits::default()).await;
    let nothing = json!({"a": null, "b": null, "fieldC": null});
    let meta = json!({
        "aB": "2",
        "texts": ["a", "1", null, "[1]", "{\"b\":\"\\u003c\"}"],
        "numbers": [1, 2, null, 2, null],
        "list": [{"a": "1", "b": ["x", "{\"y\":\"\\u0026\"}"], "fieldC": 7}, null, nothing, nothing, nothing, nothing],
        "other": null,
        "plain": null,
        "missing": null,
    });
    assert_eq!(found["data"], json!({"xs": [meta]}));
    assert_eq!(found["errors"].as_array().unwrap().len(), 1);
    assert_eq!(found["errors"][0]["path"], json!(["xs", 0, "other"]));
}

#[tokio::test]
async fn numbers_beyond_float64_are_null() {
    let types = types(&[schema(
        "x",
        &[("list", "{a: Int}"), ("numbers", "[Int]"), ("number", "Int")],
    )]);
    let huge = "9".repeat(400);
    let line = format!(
        r#"{{"list":[{huge},{{"a":{huge}}}],"number":{huge},"numbers":[{huge},1],"other":{huge},"schema":"x"}}"#
    );
    let request = GraphQlRequest::from_parameters("{xs{list{a} numbers number}}", "", "").unwrap();
    let catalog = (types, MemoryCatalog(vec![line]));
    let found = ask(catalog, &request, QueryLimits::default()).await;
    let meta = json!({"list": [null, {"a": null}], "numbers": [null, 1], "number": null});
    assert_eq!(found, json!({"data": {"xs": [meta]}}));
}

#[tokio::test]
async fn answers_above_the_limit_are_an_error_that_says_so() {
    let request = GraphQlRequest::from_parameters("{olmbundles{name} __typename}", "", "").unwrap();
    let size = |value: &Value| value.to_string().len() as u64;
    let all = size(&ask(demo(), &request, QueryLimits::default()).await);
    let found = ask(demo(), &request, QueryLimits { answer: 20 * all }).await;
    assert_eq!(found["errors"], Value::Null);
    let found = ask(demo(), &request, QueryLimits { answer: all }).await;
    assert_eq!(found["data"], json!({"olmbundles": null, "__typename": "Query"}));
    assert!(
        found["errors"][0]["message"].as_str().unwrap().contains("ask for less"),
        "{found}"
    );
}

#[tokio::test]
async fn failures_of_the_store_fail_the_request() {
    let (types, _) = demo();
    for lines in [
        r#"{"schema":"olm.bundle","name":"broken"}"#,
        r#"{"schema":"olm.bundle"}"#,
    ] {
        let data = MemoryCatalog(vec![lines.to_owned()]);
        let request = GraphQlRequest::from_parameters("{olmbundles{name} summary{totalSchemas}}", "", "").unwrap();
        let form = AnswerForm::NullData;
        let answer = types
            .answer(&request, Arc::new(data), QueryLimits::default(), form)
            .await;
        assert_eq!(answer.is_err(), lines.contains("broken"), "{lines}");
    }
}
