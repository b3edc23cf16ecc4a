//! The image config says where in the image the catalog lies.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::digest::Digest;
use crate::error::{Error, ImageError, Limit};
use crate::limits::Limits;
use crate::manifest::json;
use crate::path;

const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";
const DATABASE: &str = "operators.operatorframework.io.index.database.v1";

#[derive(Deserialize)]
struct Config {
    config: Option<Settings>,
}

#[derive(Deserialize)]
struct Settings {
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

/// The FBC root, as components from the image's root.
pub(crate) fn root(digest: &Digest, body: &[u8], limits: &Limits) -> Result<Vec<String>, Error> {
    let config: Config = json("config", digest, body)?;
    let labels = config.config.and_then(|config| config.labels).unwrap_or_default();
    let Some(label) = labels.get(CONFIGS) else {
        return Err(match labels.contains_key(DATABASE) {
            true => ImageError::Sqlite.into(),
            false => ImageError::NoLabel.into(),
        });
    };
    if label.len() as u64 > limits.path_bytes {
        return Err(Error::Limit(Limit {
            name: "pathBytes",
            limit: limits.path_bytes,
            place: format!("the label {CONFIGS} of config {digest}"),
        }));
    }
    let parts = path::clean(label).ok_or_else(|| ImageError::RootEscapes(path::shown(label.as_bytes())))?;
    Ok(parts.into_iter().map(ToOwned::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_of(labels: &serde_json::Value) -> Result<String, String> {
        let body = serde_json::json!({"config": {"Labels": labels}}).to_string();
        let parts = root(&Digest::of(b""), body.as_bytes(), &Limits::default()).map_err(|error| error.to_string())?;
        Ok(parts.join("/"))
    }

    #[test]
    fn the_label_is_cleaned() {
        for (label, want) in [
            ("/configs", "configs"),
            ("/a//b/../c/", "a/c"),
            ("/", ""),
            ("configs", "configs"),
        ] {
            assert_eq!(
                root_of(&serde_json::json!({ CONFIGS: label })).unwrap(),
                want,
                "{label}"
            );
        }
        assert!(
            root_of(&serde_json::json!({ CONFIGS: "../x" }))
                .unwrap_err()
                .contains("leads out")
        );
    }

    #[test]
    fn a_missing_label_says_what_the_image_is_not() {
        assert!(
            root_of(&serde_json::json!({}))
                .unwrap_err()
                .contains("not a file-based catalog")
        );
        assert!(
            root_of(&serde_json::Value::Null)
                .unwrap_err()
                .contains("not a file-based catalog")
        );
        assert!(
            root_of(&serde_json::json!({ DATABASE: "/db" }))
                .unwrap_err()
                .contains("sqlite")
        );
        assert!(root_of(&serde_json::json!({ DATABASE: "/db", CONFIGS: "/c" })).is_ok());
        assert!(root(&Digest::of(b""), b"{}", &Limits::default()).is_err());
    }
}
