//! The image config, which has a label with the folder of the catalog.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ImageError, parse_document};
use crate::digest::Digest;
use crate::documents::LABEL;
use crate::path::{clean_path, shown};
use crate::unpack::{ImageLimits, NamedLimit};

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

/// Returns the FBC root that an image config names, as components from the image's root.
///
/// # Errors
/// Configs without the label, and labels that are too long or lead out of the image.
pub fn catalog_root(digest: &Digest, body: &[u8], limits: &ImageLimits) -> Result<Vec<String>, ImageError> {
    let config: ImageConfig = parse_document("config", digest, body)?;
    let labels = config.config.and_then(|config| config.labels).unwrap_or_default();
    let Some(label) = labels.get(LABEL) else {
        return Err(if labels.contains_key(DATABASE) {
            ImageError::Sqlite
        } else {
            ImageError::NoLabel
        });
    };
    let place = || format!("the label {LABEL} of config {digest}");
    NamedLimit::new("pathBytes", limits.path_bytes).check(label.len() as u64, place)?;
    let parts = clean_path(label).ok_or_else(|| ImageError::RootEscapes(shown(label.as_bytes())))?;
    Ok(parts.into_iter().map(ToOwned::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_of(labels: &serde_json::Value) -> Result<String, String> {
        let body = serde_json::json!({"config": {"Labels": labels}}).to_string();
        let parts = catalog_root(&Digest::of(b""), body.as_bytes(), &ImageLimits::default())
            .map_err(|error| error.to_string())?;
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
            assert_eq!(root_of(&serde_json::json!({ LABEL: label })).unwrap(), want, "{label}");
        }
        assert!(
            root_of(&serde_json::json!({ LABEL: "../x" }))
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
        assert!(root_of(&serde_json::json!({ DATABASE: "/db", LABEL: "/c" })).is_ok());
        assert!(catalog_root(&Digest::of(b""), b"{}", &ImageLimits::default()).is_err());
    }
}
