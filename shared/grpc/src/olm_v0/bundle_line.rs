//! Line of a bundle, read once: the message that `ListBundles` sends of it.

use prost::{Message, encoding};
use serde_json::value::RawValue;

use super::{
    api::{ApiBundle, GroupVersionKind, TypedValue},
    go::{self, Wrong},
    json,
    record::{BundleRecord, LineRange},
    recorder::texts,
};

const PROVIDED_TAG: u32 = 7;
const REQUIRED_TAG: u32 = 8;
const DEPENDENCY_TAG: u32 = 11;
const PROPERTY_TAG: u32 = 12;

/// Returns the record of a bundle.
pub(crate) fn read_bundle_line(text: &str, package: &str, line: LineRange) -> Result<BundleRecord, Wrong> {
    let [name, image, properties] = go::fields(text, &["name", "image", "properties"])?;
    let mut found = Found::default();
    go::elements(properties.map_or("null", RawValue::get), |property| {
        let [kind, value] = go::fields(property.get(), &["type", "value"])?;
        match &*go::text(kind)? {
            "olm.csv.metadata" | "olm.bundle.object" => Ok(()),
            kind => found.property(kind, value.map_or("", RawValue::get)),
        }
    })?;
    let bundle = ApiBundle {
        csv_name: go::text(name)?.into_owned(),
        package_name: package.to_owned(),
        bundle_path: go::text(image)?.into_owned(),
        version: found.version,
        ..ApiBundle::default()
    };
    // Fields of a message may come in any order.
    let mut message = bundle.encode_to_vec();
    message.append(&mut found.encoded);
    Ok(BundleRecord {
        name: bundle.csv_name,
        version: bundle.version,
        line,
        has_image: !bundle.bundle_path.is_empty(),
        message,
    })
}

/// Facts of a bundle from its properties.
#[derive(Default)]
struct Found {
    version: String,
    /// Encoded fields that come from properties. As structures, millions of `{}` would take ten times the line.
    encoded: Vec<u8>,
}

impl Found {
    fn property(&mut self, kind: &str, value: &str) -> Result<(), Wrong> {
        match kind {
            "olm.package" => {
                let [version] = texts(value, &["version"])?;
                self.version = version.into_owned();
            }
            "olm.gvk" => self.gvk(PROVIDED_TAG, value)?,
            "olm.gvk.required" => {
                self.gvk(REQUIRED_TAG, value)?;
                self.typed_value(DEPENDENCY_TAG, "olm.gvk", value);
            }
            "olm.package.required" => {
                let [name, range] = texts(value, &["packageName", "versionRange"])?;
                let (name, range) = (json::plain(&name), json::plain(&range));
                let dependency = format!(r#"{{"packageName":{name},"version":{range}}}"#);
                self.typed_value(DEPENDENCY_TAG, "olm.package", &dependency);
            }
            _ => {}
        }
        self.typed_value(PROPERTY_TAG, kind, value);
        Ok(())
    }

    fn gvk(&mut self, tag: u32, value: &str) -> Result<(), Wrong> {
        let [group, version, kind] = texts(value, &["group", "version", "kind"])?;
        let gvk = GroupVersionKind {
            group: group.into_owned(),
            version: version.into_owned(),
            kind: kind.into_owned(),
            plural: String::new(),
        };
        encoding::message::encode(tag, &gvk, &mut self.encoded);
        Ok(())
    }

    fn typed_value(&mut self, tag: u32, kind: &str, value: &str) {
        let typed = TypedValue {
            r#type: kind.to_owned(),
            value: value.to_owned(),
        };
        encoding::message::encode(tag, &typed, &mut self.encoded);
    }
}
