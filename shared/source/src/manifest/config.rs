//! The image config, which has a label with the folder of the catalog.

use std::collections::BTreeMap;

use oci::{Digest, ImageLimits, LimitExceeded, clean_path, shown};
use serde::Deserialize;

use crate::error::{Error, ImageError};
use crate::manifest::json;

const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";
const DATABASE: &str = "operators.operatorframework.io.index.database.v1";

#[derive(Deserialize)]
struct ImageConfig {
    config: Option<ConfigSection>,
}

#[derive(Deserialize)]
struct ConfigSection {
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

/// Returns the FBC root as components from the image's root.
pub(crate) fn root(digest: &Digest, body: &[u8], limits: &ImageLimits) -> Result<Vec<String>, Error> {
    let config: ImageConfig = json("config", digest, body)?;
    let labels = config.config.and_then(|config| config.labels).unwrap_or_default();
    let Some(label) = labels.get(CONFIGS) else {
        return Err(match labels.contains_key(DATABASE) {
            true => ImageError::Sqlite.into(),
            false => ImageError::NoLabel.into(),
        });
    };
    if label.len() as u64 > limits.path_bytes {
        return Err(Error::Limit(LimitExceeded {
            name: "pathBytes",
            limit: limits.path_bytes,
            place: format!("the label {CONFIGS} of config {digest}"),
        }));
    }
    let parts = clean_path(label).ok_or_else(|| ImageError::RootEscapes(shown(label.as_bytes())))?;
    Ok(parts.into_iter().map(ToOwned::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_of(labels: &serde_json::Value) -> Result<String, String> {
        let body = serde_json::json!({"config": {"Labels": labels}}).to_string();
        let parts =
            root(&Digest::of(b""), body.as_bytes(), &ImageLimits::default()).map_err(|error| error.to_string())?;
        Ok(parts.join("/"))
    }

    #[test]
    fn root_is_cleaned_path_of_label() {
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
    fn root_without_label_names_kind_of_image() {
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
        assert!(root(&Digest::of(b""), b"{}", &ImageLimits::default()).is_err());
    }
}
