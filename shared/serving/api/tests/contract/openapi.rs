//! `/openapi.json`, and every answer of the other tests as it is described there. The table of
//! routes is compared with it in `routes/mod.rs`.

use std::{collections::BTreeSet, sync::LazyLock};

use api::{is_probe, refuse};
use http::{Method, StatusCode};
use model::{Key, Kind};
use serde_json::{Value, json};
use testkit::Answer;

use crate::world::World;

const TEXT: &str = include_str!("../../openapi.json");

/// The description, whose paths are those of all routes.
pub(crate) static CONTRACT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap());

/// Compares an answer with its description: status, media type, and a JSON document with its
/// schema.
pub(crate) fn check(method: &Method, uri: &str, answer: &Answer) {
    let path = uri.split('?').next().unwrap_or_default();
    let Some(item) = item(path) else { return };
    let operation = match *method {
        Method::GET | Method::HEAD => &item["get"],
        // OPTIONS is alike on all routes, and not described.
        _ => {
            return assert_eq!(
                answer.status,
                StatusCode::METHOD_NOT_ALLOWED,
                "{method} {uri}"
            );
        }
    };
    let status = answer.status;
    let response = resolved(&operation["responses"][status.as_str()]);
    assert!(
        response.is_object(),
        "{method} {uri}: {status} is not described"
    );
    let is_whole = answer.body.is_some()
        && *method != Method::HEAD
        && answer.status != StatusCode::PARTIAL_CONTENT;
    let Some(content) = response["content"].as_object().filter(|_| is_whole) else {
        return;
    };
    let media = answer.header("content-type");
    let described = content.get(media);
    let described = described.unwrap_or_else(|| panic!("{method} {uri}: {media} is not described"));
    if media.ends_with("json") && described["schema"]["format"].is_null() {
        let document: Value = serde_json::from_slice(&answer.decoded()).unwrap();
        fits(&document, &described["schema"], uri);
    }
}

/// Returns the description of the path that shares most segments with this one.
fn item(path: &str) -> Option<&'static Value> {
    let segments: Vec<&str> = path.split('/').collect();
    let shared = |described: &str| {
        let described: Vec<&str> = described.split('/').collect();
        let fits = |(own, other): (&&str, &&str)| {
            own == other || (other.starts_with('{') && !own.is_empty())
        };
        let mut pairs = segments.iter().zip(&described);
        let all_fit = segments.len() == described.len() && pairs.clone().all(fits);
        all_fit.then(|| pairs.by_ref().filter(|(own, other)| own == other).count())
    };
    let paths = CONTRACT["paths"].as_object().unwrap().iter();
    let (found, item) = paths.max_by_key(|(described, _)| shared(described))?;
    // Other folders hold no objects.
    let is_key = !found.starts_with("/{kind}") || Key::parse(path.strip_prefix('/')?).is_some();
    (shared(found).is_some() && is_key).then_some(item)
}

fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => CONTRACT.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}

/// Checks a document as far as the schemas of the contract go. A property that is not described is
/// an error.
fn fits(value: &Value, schema: &'static Value, at: &str) {
    let schema = resolved(schema);
    if let Some(either) = schema["oneOf"].as_array() {
        assert_eq!(either[1], json!({"type": "null"}), "{at}");
        if !value.is_null() {
            fits(value, &either[0], at);
        }
        return;
    }
    if let Some(expected) = schema.get("const") {
        assert_eq!(value, expected, "{at}");
    }
    if let Some(known) = schema["enum"].as_array() {
        assert!(known.contains(value), "{at}: {value}");
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind =
        |described: &Value| *described == kind || (*described == "number" && kind == "integer");
    let is_described = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is_kind),
        one => is_kind(one),
    };
    assert!(is_described, "{at}: {value}");
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        fits(item, &schema["items"], &format!("{at}/{number}"));
    }
    if let (Some(part), Some(parts)) = (schema.get("additionalProperties"), value.as_object()) {
        for (name, value) in parts {
            fits(value, part, &format!("{at}/{name}"));
        }
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(
            value.get(required.as_str().unwrap()).is_some(),
            "{at} lacks {required}"
        );
    }
    if let (Some(described), Some(found)) = (schema.get("properties"), value.as_object()) {
        for (name, value) in found {
            let property = described.get(name);
            let property = property.unwrap_or_else(|| panic!("{at}: {name} is not described"));
            fits(value, property, &format!("{at}/{name}"));
        }
    }
}

#[tokio::test]
async fn description_is_served_and_has_no_dangling_references() {
    let world = World::new().await;
    assert_eq!(world.get("/openapi.json", &[]).await.text(), TEXT);
    assert_eq!(CONTRACT["openapi"], "3.1.0");
    assert_eq!(CONTRACT["info"]["version"], env!("CARGO_PKG_VERSION"));
    let references = TEXT.split("\"$ref\": \"#").skip(1);
    for reference in references.filter_map(|rest| rest.split('"').next()) {
        assert!(CONTRACT.pointer(reference).is_some(), "{reference}");
    }
}

#[test]
fn description_names_the_kinds_of_all_served_objects() {
    let parameters = &CONTRACT["paths"]["/{kind}/sha256/{object}"]["get"]["parameters"];
    let described = parameters[0]["schema"]["enum"].as_array().unwrap().iter();
    let served = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Garbage);
    let folders: BTreeSet<&str> = served
        .map(|kind| kind.folder().split('/').next().unwrap())
        .collect();
    assert_eq!(
        described.filter_map(Value::as_str).collect::<BTreeSet<_>>(),
        folders
    );
}

/// A mirror wants credentials for all routes or for none, but never for probes.
#[test]
fn description_wants_credentials_for_all_but_probes() {
    assert_eq!(
        CONTRACT["security"],
        json!([{}, {"basic": []}, {"bearer": []}])
    );
    for (path, item) in CONTRACT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let own = operation.get("security");
            let expected = is_probe(path).then(|| json!([]));
            assert_eq!(own, expected.as_ref(), "{method} {path}");
            for status in ["401", "429"] {
                let described = operation["responses"].get(status);
                assert_eq!(
                    described.is_none(),
                    is_probe(path),
                    "{method} {path} {status}"
                );
                if let Some(described) = described {
                    is_as_described(resolved(described), method, path, status.parse().unwrap());
                }
            }
        }
    }
}

/// Compares the description of an error with the answer: its status, media type and fields.
fn is_as_described(described: &Value, method: &str, path: &str, status: StatusCode) {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let answer = refuse(&method, path, status);
    for (field, _) in described["headers"].as_object().unwrap() {
        assert!(
            answer.headers().contains_key(field),
            "{method} {path}: {field}"
        );
    }
    let content = described
        .get("content")
        .and_then(|content| content.as_object());
    let types: Vec<&str> = content
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        types,
        [answer.headers()["content-type"].to_str().unwrap()],
        "{path}"
    );
}

/// Clients of a registry take a Bearer challenge for the address of a token service.
#[test]
fn challenges_offer_the_described_schemes_and_basic_alone_to_registry_clients() {
    let schemes = CONTRACT["components"]["securitySchemes"]
        .as_object()
        .unwrap();
    let described = schemes
        .values()
        .filter_map(|scheme| scheme["scheme"].as_str());
    for (path, expected) in [
        ("/catalogs", described.collect()),
        ("/v2", BTreeSet::from(["basic"])),
        ("/v2/demo/tags/list", BTreeSet::from(["basic"])),
    ] {
        let answer = refuse(&Method::GET, path, StatusCode::UNAUTHORIZED);
        let challenges = answer.headers().get_all("www-authenticate").into_iter();
        let offered =
            challenges.filter_map(|challenge| challenge.to_str().unwrap().split(' ').next());
        let offered: BTreeSet<String> = offered.map(str::to_lowercase).collect();
        assert!(offered.iter().eq(&expected), "{path}: {offered:?}");
    }
}
