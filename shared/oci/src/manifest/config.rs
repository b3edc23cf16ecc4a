//! The image config, whose labels name folders of the image.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ImageError, parse_document};
use crate::digest::Digest;
use crate::documents::LABEL;
use crate::path::{clean_path, shown};
use crate::unpack::{ImageLimits, NamedLimit, Root};

const DATABASE: &str = "operators.operatorframework.io.index.database.v1";

/// Content of an image, in folders that labels of its config name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImageContent {
    /// Files of a catalog.
    #[default]
    Catalog,
    /// Manifests and metadata of a bundle.
    Bundle,
}

impl ImageContent {
    /// Returns the names of its folders where no labels name others: of a bundle first the one with the manifests, then the one
    /// with the metadata. The empty name is all of a source.
    pub const fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Catalog => &[""],
            Self::Bundle => &["manifests", "metadata"],
        }
    }
}

/// Returns the label that holds the path of a folder.
fn folder_label(folder: &str) -> String {
    match folder {
        "" => LABEL.to_owned(),
        folder => format!("operators.operatorframework.io.bundle.{folder}.v1"),
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

/// Returns the root of the folders that an image config names.
///
/// # Errors
/// Configs without the labels, and labels that are too long or lead out of the image.
pub fn content_root(
    content: ImageContent,
    digest: &Digest,
    body: &[u8],
    limits: &ImageLimits,
) -> Result<Root, ImageError> {
    let config: ImageConfig = parse_document("config", digest, body)?;
    let labels = config.config.and_then(|config| config.labels).unwrap_or_default();
    let mut folders = Vec::new();
    for folder in content.folders() {
        let name = folder_label(folder);
        let Some(label) = labels.get(&name) else {
            return Err(match content {
                ImageContent::Catalog if labels.contains_key(DATABASE) => ImageError::Sqlite,
                ImageContent::Catalog => ImageError::NoLabel,
                ImageContent::Bundle if labels.contains_key(LABEL) => {
                    ImageError::NotBundle(name, "a catalog and no bundle")
                }
                ImageContent::Bundle => ImageError::NotBundle(name, "no bundle"),
            });
        };
        let place = || format!("the label {name} of config {digest}");
        NamedLimit::new("pathBytes", limits.path_bytes).check(label.len() as u64, place)?;
        let Some(parts) = clean_path(label) else {
            return Err(ImageError::RootEscapes(name, shown(label.as_bytes())));
        };
        folders.push(parts.into_iter().map(ToOwned::to_owned).collect());
    }
    Ok(Root::around(&folders))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_of_content(content: ImageContent, labels: &serde_json::Value) -> Result<Root, String> {
        let body = serde_json::json!({"config": {"Labels": labels}}).to_string();
        let root = content_root(content, &Digest::of(b""), body.as_bytes(), &ImageLimits::default());
        root.map_err(|error| error.to_string())
    }

    fn root_of(labels: &serde_json::Value) -> Result<String, String> {
        root_of_content(ImageContent::Catalog, labels).map(|root| root.path())
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
    fn root_of_bundle_holds_folders_of_its_labels() {
        let root_of = |labels| root_of_content(ImageContent::Bundle, &labels);
        let [manifests, metadata] = ["manifests", "metadata"].map(folder_label);
        for (manifests_at, metadata_at, root, folders) in [
            ("manifests/", "metadata/", "", ["manifests", "metadata"]),
            ("/a/b/c", "a/b", "a/b", ["c", ""]),
            ("a/", "a", "a", ["", ""]),
        ] {
            let found = root_of(serde_json::json!({ &manifests: manifests_at, &metadata: metadata_at })).unwrap();
            assert_eq!(
                (found.path().as_str(), found.folders()),
                (root, folders.map(ToOwned::to_owned).into())
            );
        }
        for (labels, says) in [
            (serde_json::json!({}), "it is no bundle"),
            (serde_json::json!({ LABEL: "/a" }), "it is a catalog and no bundle"),
            (serde_json::json!({ &manifests: "a" }), "it is no bundle"),
            (
                serde_json::json!({ &manifests: "a", &metadata: "../a" }),
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
        assert!(content_root(ImageContent::Catalog, &Digest::of(b""), b"{}", &ImageLimits::default()).is_err());
    }
}
