use testkit::variant;

use crate::SigningKey;

use super::*;
use crate::policy::{ImageSignatures, VerifyError};

fn pem() -> String {
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    key.public().to_pem()
}

/// Reads a policy with one key file, `/key`.
fn read(image: &str, text: &str) -> Result<Policy, PolicyError> {
    let pem = pem();
    let files = KeySources {
        read: &|path| match path == Path::new("/key") {
            true => Ok(pem.clone().into_bytes()),
            false => Err(io::ErrorKind::NotFound.into()),
        },
        keyrings: None,
    };
    Policy::containers(ImageReference::as_written(image), text.as_bytes(), &files)
}

fn is_rejected(image: &str, text: &str) -> bool {
    let verified = read(image, text)
        .unwrap()
        .verify("sha256:00", &ImageSignatures::default());
    matches!(verified, Err(VerifyError::Rejected(_)))
}

#[test]
fn most_specific_scope_wins() {
    let anything = r#"[{"type":"insecureAcceptAnything"}]"#;
    let reject = r#"[{"type":"reject"}]"#;
    let image = "registry.example.com:5000/ns/sub/cat:v1";
    let by_specificity = [
        "registry.example.com:5000/ns/sub/cat:v1",
        "registry.example.com:5000/ns/sub/cat",
        "registry.example.com:5000/ns/sub",
        "registry.example.com:5000/ns",
        "registry.example.com:5000",
        "*.example.com",
        "*.com",
        "",
    ];
    for (at, scope) in by_specificity.iter().enumerate() {
        let mut scopes = vec![format!("{scope:?}: {reject}")];
        scopes.extend(
            by_specificity[at + 1..]
                .iter()
                .map(|wide| format!("{wide:?}: {anything}")),
        );
        let scopes = scopes.join(",");
        let text = format!(r#"{{"default":{anything},"transports":{{"docker":{{{scopes}}}}}}}"#);
        assert!(is_rejected(image, &text), "{scope}");
        assert!(
            !is_rejected("other.org/x:v1", &text) || scope.is_empty(),
            "{scope}"
        );
    }
    for not_a_scope in [
        "registry.example.com:5000/n",
        "registry.example.com",
        "*.registry.example.com",
        "*",
    ] {
        let text = format!(
            r#"{{"default":{anything},"transports":{{"docker":{{{not_a_scope:?}: {reject}}}}}}}"#
        );
        assert!(!is_rejected(image, &text), "{not_a_scope}");
    }
    let default = format!(r#"{{"default":{reject},"transports":{{"oci":{{"":{anything}}}}}}}"#);
    assert!(is_rejected(image, &default));
    let pinned = format!(
        r#"{{"default":{anything},"transports":{{"docker":{{"a.io/b@sha256:00":{reject}}}}}}}"#
    );
    assert!(is_rejected("a.io/b:v1@sha256:00", &pinned));
    assert!(!is_rejected("a.io/b:v1@sha256:01", &pinned));
}

#[test]
fn all_requirements_must_be_met() {
    let both = r#"{"default":[{"type":"insecureAcceptAnything"},{"type":"reject"}]}"#;
    assert!(is_rejected("a.io/b:v1", both));
}

#[test]
fn keys_are_read_from_files_or_from_the_policy() {
    let data = STANDARD.encode(pem());
    for keys in [
        r#""keyPath":"/key""#.to_owned(),
        r#""keyPaths":["/key","/key"]"#.to_owned(),
        format!(r#""keyData":"{data}""#),
        format!(r#""keyDatas":["{data}"]"#),
    ] {
        let text = format!(r#"{{"default":[{{"type":"sigstoreSigned",{keys}}}]}}"#);
        let policy = read("a.io/b:v1", &text).unwrap();
        assert!(policy.needs_cosign() && !policy.needs_simple());
    }
}

#[test]
fn policy_that_is_not_understood_is_refused() {
    for (keys, expected) in [
        ("", "keys"),
        (r#","keyPath":"/key","keyPaths":["/key"]"#, "keys"),
        (r#","keyPaths":[]"#, "keys"),
        (r#","keyPath":"/none""#, "file"),
        (r#","keyData":"?""#, "data"),
        (r#","keyData":"eA==""#, "key"),
        (r#","keyPath":"/key","fulcio":{}"#, "not keys"),
        (r#","keyPath":"/key","pki":{}"#, "not keys"),
        (
            r#","keyPath":"/key","rekorPublicKeyPath":"/key""#,
            "not keys",
        ),
        (r#","keyPath":"/key","more":1"#, "json"),
    ] {
        let text = format!(r#"{{"default":[{{"type":"sigstoreSigned"{keys}}}]}}"#);
        assert_eq!(
            variant(&read("a.io/b:v1", &text).unwrap_err()),
            expected,
            "{keys}"
        );
    }
    let gpg = r#"{"type":"signedBy","keyType":"GPGKeys","keyPath":"/key"}"#;
    let x509 = r#"{"type":"signedBy","keyType":"X509","keyPath":"/key"}"#;
    for (text, expected) in [
        (&*format!(r#"{{"default":[{gpg}]}}"#), "no open pgp"),
        (&format!(r#"{{"default":[{x509}]}}"#), "key type"),
        (r#"{"default":[]}"#, "empty"),
        (r#"{"default":[{"type":"signedByBase"}]}"#, "json"),
        (r#"{"default":[{"type":"reject","more":1}]}"#, "json"),
        (r#"{"default":[1]}"#, "json"),
        ("", "json"),
        ("{}", "json"),
        (r#"{"default":[],"more":1}"#, "json"),
        (r#"{"default":[{"type":"x"}]}"#, "json"),
    ] {
        assert_eq!(
            variant(&read("a.io/b:v1", text).unwrap_err()),
            expected,
            "{text}"
        );
    }
}

/// podman refuses arrays too.
#[test]
fn arrays_in_place_of_objects_are_refused() {
    let identity = r#"{"type":"sigstoreSigned","keyPath":"/key","signedIdentity":["matchExact"]}"#;
    for text in [
        r#"[[{"type":"reject"}],{}]"#,
        r#"{"default":[["insecureAcceptAnything"]]}"#,
        r#"{"default":[{"type":"reject"}],"transports":{"docker":{"a.io":[["reject"]]}}}"#,
        &format!(r#"{{"default":[{identity}]}}"#),
    ] {
        let Err(PolicyError::Json(why)) = read("a.io/b:v1", text) else {
            panic!("{text}")
        };
        assert!(
            why.to_string().contains("expected an object at line 1"),
            "{why}"
        );
    }
}
