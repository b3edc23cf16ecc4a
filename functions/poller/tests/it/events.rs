//! Recorded events are told apart.

use layout::CatalogName;
use poller::{Action, Event};
use serde_json::json;

use crate::world::recorded;

#[test]
fn every_recorded_event_is_understood() {
    for name in ["schedule", "scheduler"] {
        assert_eq!(Event::from_value(recorded(name)).unwrap(), Event::Schedule, "{name}");
    }
    assert_eq!(Event::from_value(json!({})).unwrap(), Event::Schedule);
    let Event::Queue(records) = Event::from_value(recorded("queue")).unwrap() else {
        panic!("it is a queue's");
    };
    let named: Vec<_> = records
        .iter()
        .map(|record| record.catalog.as_ref().ok().map(CatalogName::as_str))
        .collect();
    assert_eq!(named, [Some("good"), Some("bad"), Some("no-longer-configured"), None]);
    for (name, action) in [
        ("force", Action::Poll),
        ("check", Action::Check),
        ("rollback", Action::Rollback),
        ("gc", Action::Gc),
    ] {
        let Event::Manual(manual) = Event::from_value(recorded(&format!("manual-{name}"))).unwrap() else {
            panic!("{name} is a person's");
        };
        assert_eq!(manual.action, action);
    }
}

#[test]
fn anything_else_is_an_error_that_tells_what_is_understood() {
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
        let error = Event::from_value(event.clone()).unwrap_err().to_string();
        assert!(error.contains("SQS") && error.contains("rollback"), "{event}: {error}");
    }
}
