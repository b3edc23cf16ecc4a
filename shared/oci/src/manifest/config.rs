//! The image config, whose labels name folders of the image.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ImageError, parse_document};
use crate::digest::Digest;
use crate::documents::LABEL;
use crate::path::{clean_path, shown};
use crate::unpack::{ImageLimits, NamedLimit};

const DATABASE: &str = "operators.operatorframework.io.index.database.v1";

/// Folder of an image that a label of its config names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImageFolder {
    /// Files of a catalog.
    #[default]
    Catalog,
    /// Manifests of a bundle.
    Manifests,
    /// Metadata of a bundle.
    Metadata,
}

impl ImageFolder {
    /// Returns the label that holds the path of the folder.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Catalog => LABEL,
            Self::Manifests => "operators.operatorframework.io.bundle.manifests.v1",
            Self::Metadata => "operators.operatorframework.io.bundle.metadata.v1",
        }
    }
}

#[derive(Deserialize)]
struct ImageConfig {
    config: Option<ConfigSection>,
}

#[derive(Deserialize)]
struct ConfigSection {
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

/// Returns the folder that an image config names, as components from the image's root.
///
/// # Errors
/// Configs without the label, and labels that are too long or lead out of the image.
pub fn folder_root(
    folder: ImageFolder,
    digest: &Digest,
    body: &[u8],
    limits: &ImageLimits,
) -> Result<Vec<String>, ImageError> {
    let config: ImageConfig = parse_document("config", digest, body)?;
    let labels = config.config.and_then(|config| config.labels).unwrap_or_default();
    let name = folder.label();
    let Some(label) = labels.get(name) else {
        return Err(match folder {
            ImageFolder::Catalog if labels.contains_key(DATABASE) => ImageError::Sqlite,
            ImageFolder::Catalog => ImageError::NoLabel,
            _ if labels.contains_key(LABEL) => ImageError::NotBundle(name, "a catalog and no bundle"),
            _ => ImageError::NotBundle(name, "no bundle"),
        });
    };
    let place = || format!("the label {name} of config {digest}");
    NamedLimit::new("pathBytes", limits.path_bytes).check(label.len() as u64, place)?;
    let parts = clean_path(label).ok_or_else(|| ImageError::RootEscapes(name, shown(label.as_bytes())))?;
    Ok(parts.into_iter().map(ToOwned::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_of(labels: &serde_json::Value) -> Result<String, String> {
        let body = serde_json::json!({"config": {"Labels": labels}}).to_string();
        let parts = folder_root(
            ImageFolder::Catalog,
            &Digest::of(b""),
            body.as_bytes(),
            &ImageLimits::default(),
        )
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
    fn root_of_bundle_is_that_of_its_own_label() {
        let root_of = |labels: serde_json::Value| {
            let body = serde_json::json!({"config": {"Labels": labels}}).to_string();
            folder_root(
                ImageFolder::Metadata,
                &Digest::of(b""),
                body.as_bytes(),
                &ImageLimits::default(),
            )
            .map_err(|error| error.to_string())
        };
        let label = ImageFolder::Metadata.label();
        assert_eq!(
            root_of(serde_json::json!({ label: "metadata/", LABEL: "/a" })).unwrap(),
            ["metadata"]
        );
        for (labels, says) in [
            (serde_json::json!({}), "it is no bundle"),
            (serde_json::json!({ LABEL: "/a" }), "it is a catalog and no bundle"),
            (
                serde_json::json!({ label: "../a" }),
                "bundle.metadata.v1 leads out of the image",
            ),
        ] {
            let error = root_of(labels).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
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
        assert!(folder_root(ImageFolder::Catalog, &Digest::of(b""), b"{}", &ImageLimits::default()).is_err());
    }
}
