//! A catalog in memory, with fields made by hand.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use catalog_mirror_graphql::{
    AnswerForm, CatalogData, CatalogTypes, DataError, GraphQlRequest, LineStream, MetaPage, QueryLimits,
};
use futures_util::{StreamExt, stream};
use model::{FieldType, SchemaFields, ValueType};
use serde_json::Value;

/// Lines of a catalog, in its order.
pub(crate) struct MemoryCatalog(pub(crate) Vec<String>);

#[async_trait]
impl CatalogData for MemoryCatalog {
    fn total(&self, schema: &str) -> u64 {
        self.matching(schema).count() as u64
    }

    async fn lines(&self, page: &MetaPage) -> Result<LineStream, DataError> {
        let is = |meta: &Value, key: &str, wanted: &Option<String>| {
            wanted
                .as_deref()
                .is_none_or(|wanted| meta[key].as_str() == Some(wanted))
        };
        let package = if page.schema == "olm.package" {
            "name"
        } else {
            "package"
        };
        let found = self
            .matching(&page.schema)
            .filter(|(_, meta)| is(meta, package, &page.package) && is(meta, "name", &page.name))
            .skip(usize::try_from(page.offset).unwrap_or(usize::MAX))
            .take(usize::try_from(page.limit).unwrap());
        let text: String = found.map(|(line, _)| format!("{line}\n")).collect();
        if text.contains("broken") {
            return Err("the store is broken".into());
        }
        // Chunks that end anywhere.
        let chunks: Vec<_> = text.into_bytes().chunks(7).map(Bytes::copy_from_slice).collect();
        Ok(stream::iter(chunks.into_iter().map(Ok)).boxed())
    }
}

impl MemoryCatalog {
    fn matching(&self, schema: &str) -> impl Iterator<Item = (&String, Value)> {
        // What is no number for the library is none of the keys that matter here.
        let parse = |line: &String| serde_json::from_str(&line.replace(&"9".repeat(400), "0")).unwrap_or_default();
        let parsed = self.0.iter().map(move |line| (line, parse(line)));
        parsed.filter(move |(_, meta): &(_, Value)| meta["schema"].as_str() == Some(schema))
    }
}

/// Parses a field such as `Int`, `[String]`, or `{a: Int, b: [String]}` for a list of objects.
pub(crate) fn field(text: &str) -> FieldType {
    let scalar = |name: &str| match name {
        "Int" => ValueType::Int,
        "Float" => ValueType::Float,
        "Boolean" => ValueType::Boolean,
        _ => ValueType::String,
    };
    let mut fields = BTreeMap::new();
    if let Some(inner) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        for (name, inner) in inner.split(", ").filter_map(|pair| pair.split_once(": ")) {
            fields.insert(name.to_owned(), field(inner));
        }
    }
    FieldType {
        value: scalar(text.trim_matches(['[', ']'])),
        list: text.starts_with(['[', '{']),
        fields,
    }
}

pub(crate) fn schema(name: &str, fields: &[(&str, &str)]) -> SchemaFields {
    SchemaFields {
        schema: name.to_owned(),
        fields: fields
            .iter()
            .map(|(name, text)| ((*name).to_owned(), field(text)))
            .collect(),
    }
}

pub(crate) fn types(schemas: &[SchemaFields]) -> CatalogTypes {
    let fields = schemas
        .iter()
        .map(|schema| (schema.schema.as_str(), schema.clone()))
        .collect();
    CatalogTypes::new(&fields).unwrap()
}

/// A catalog of two packages with a few bundles.
pub(crate) fn demo() -> (CatalogTypes, MemoryCatalog) {
    let types = types(&[
        schema(
            "olm.package",
            &[("schema", "String"), ("name", "String"), ("defaultChannel", "String")],
        ),
        schema(
            "olm.bundle",
            &[
                ("schema", "String"),
                ("name", "String"),
                ("package", "String"),
                ("properties", "{type: String, value: String}"),
                ("relatedImages", "{image: String, name: String}"),
            ],
        ),
    ]);
    let package = |name: &str| format!(r#"{{"defaultChannel":"stable","name":"{name}","schema":"olm.package"}}"#);
    let bundle = |package: &str, version: u32| {
        format!(
            r#"{{"name":"{package}.v{version}","package":"{package}","properties":[{{"type":"olm.package","value":{{"packageName":"{package}","version":"{version}.0.0"}}}},{{"type":"x","value":"<text>"}}],"relatedImages":[],"schema":"olm.bundle"}}"#
        )
    };
    let mut lines = Vec::new();
    for name in ["a", "b"] {
        lines.push(package(name));
        lines.extend((0..60).map(|version| bundle(name, version)));
    }
    (types, MemoryCatalog(lines))
}

pub(crate) async fn ask(
    catalog: (CatalogTypes, MemoryCatalog),
    request: &GraphQlRequest,
    limits: QueryLimits,
) -> Value {
    let (types, data) = catalog;
    let answer = types
        .answer(request, Arc::new(data), limits, AnswerForm::NullData)
        .await
        .unwrap();
    serde_json::from_slice(&answer).unwrap()
}

/// Answers a query without variables in the demo catalog.
pub(crate) async fn answer(query: &str) -> Value {
    let request = GraphQlRequest::from_parameters(query, "", "").unwrap();
    ask(demo(), &request, QueryLimits::default()).await
}
