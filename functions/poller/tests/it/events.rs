//! Parsing of recorded and of invalid events.

use model::CatalogName;
use poller::{ManualAction, PollerEvent};
use serde_json::json;

use crate::world::recorded;

#[test]
fn recorded_events_parse_as_their_kind() {
    for event in [recorded("schedule"), recorded("scheduler"), json!({})] {
        let parsed = PollerEvent::from_value(event.clone()).unwrap();
        assert_eq!(parsed, PollerEvent::Schedule, "{event}");
    }
    let PollerEvent::Queue(records) = PollerEvent::from_value(recorded("queue")).unwrap() else {
        panic!("not read as a queue event");
    };
    let named = records
        .iter()
        .map(|record| record.catalog.as_ref().map_or("", CatalogName::as_str));
    assert!(named.eq(["good", "bad", "no-longer-configured", ""]), "{records:?}");
    for (name, action) in [
        ("force", ManualAction::Poll),
        ("check", ManualAction::Check),
        ("rollback", ManualAction::Rollback),
        ("gc", ManualAction::Gc),
    ] {
        let PollerEvent::Manual(manual) = PollerEvent::from_value(recorded(&format!("manual-{name}"))).unwrap() else {
            panic!("{name} is not read as a manual event");
        };
        assert_eq!(manual.action, action);
    }
}

#[test]
fn unknown_events_are_refused_with_a_list_of_accepted_ones() {
    for event in [
        recorded("unknown-s3"),
        json!([]),
        json!("poll"),
        json!({"catalog": "a"}),
        json!({"source": "aws.s3", "detail-type": "Scheduled Event"}),
        json!({"action": "remove"}),
        json!({"action": "poll", "catalogs": ["../x"]}),
        json!({"action": "poll", "dryRun": true}),
        json!({"action": "poll", "contentHash": "ab"}),
        json!({"action": "rollback", "catalogs": ["a"]}),
        json!({"action": "rollback", "catalogs": ["a", "b"], "contentHash": "ab"}),
        json!({"action": "check", "force": true}),
        json!({"dryRun": true}),
        json!({"action": "gc", "catalogs": ["a"]}),
        json!({"action": "gc", "force": true}),
        json!({"action": "gc", "contentHash": "ab"}),
        json!({"action": "poll", "unverified": true}),
        json!({"action": "gc", "dryRun": "yes"}),
    ] {
        let error = PollerEvent::from_value(event.clone()).unwrap_err().to_string();
        assert!(error.contains("SQS") && error.contains("rollback"), "{event}: {error}");
    }
}
