//! Properties that hold for every document.

use crate::common::{lines, lines_with};
use fbc::FbcLimits;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Generates values with every kind of string, and integers of any size that JSON and YAML share.
fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[-+.0-9a-fxoyn_ :#'\"\\\\\\[{&*!|>%@`\n]{0,8}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Generates documents. Their keys differ by more than case.
fn document() -> impl Strategy<Value = Value> {
    let package = prop_oneof![Just(""), Just("a"), Just("b")];
    let schema = prop_oneof![Just("olm.package"), Just("olm.bundle"), Just("")];
    (schema, package, "[a-c]{0,2}", value(), 0..16_u32).prop_map(
        |(schema, package, name, value, present)| {
            let mut map = Map::new();
            let mut put = |bit: u32, key: &str, value: Value| {
                if present & (1 << bit) != 0 {
                    map.insert(key.into(), value);
                }
            };
            put(0, "schema", schema.into());
            put(1, "package", package.into());
            put(2, "name", name.into());
            put(3, "value", value);
            Value::Object(map)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_form_is_idempotent(document in document()) {
        let once = lines(document.to_string().as_bytes()).unwrap();
        let pretty = serde_json::to_vec_pretty(&document).unwrap();
        prop_assert_eq!(&lines(&pretty).unwrap(), &once);
        prop_assert_eq!(&lines(once.as_bytes()).unwrap(), &once);
        prop_assert_eq!(serde_json::from_str::<Value>(&once).unwrap(), document);
    }

    #[test]
    fn lines_are_those_of_json_whatever_the_chunk_size_and_the_syntax(
        documents in vec((document(), 0..6000_usize), 0..6),
        json in any::<bool>(),
        target in 0..20_000_usize,
    ) {
        let mut file = String::new();
        for (document, space) in &documents {
            let separator = if json { "\n" } else { "\n---\n" };
            let space = "\n".repeat(*space);
            // Line breaks in YAML 1.1: next to an escape they are refused.
            let document = document.to_string().replace('\u{2028}', r"\u2028").replace('\u{2029}', r"\u2029");
            file += &format!("{document}{separator}{space}");
        }
        if !json {
            file.insert_str(0, "# YAML\n");
        }
        let whole = lines(file.as_bytes()).unwrap();
        let alone = |(document, _): &(Value, usize)| lines(document.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&whole, &documents.iter().map(alone).collect::<String>());
        prop_assert_eq!(lines_with(file.as_bytes(), FbcLimits::default(), target).unwrap(), whole);
    }

    #[test]
    fn parser_never_panics(bytes in vec(any::<u8>(), 0..200), text in "[-:?\\[\\]{},#&*!|>'\"%@` \n\ta0.]{0,60}") {
        let _ = lines(&bytes);
        let _ = lines(text.as_bytes());
        let _ = lines(format!("{{\"a\":{text}}}").as_bytes());
    }
}
