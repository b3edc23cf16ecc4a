//! Line of a bundle, read once: the message that `ListBundles` sends of it.

use std::borrow::Cow;

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
        match go::text(kind)? {
            kind if matches!(&*kind, "olm.csv.metadata" | "olm.bundle.object") => Ok(()),
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
    fn property(&mut self, kind: Cow<'_, str>, value: &str) -> Result<(), Wrong> {
        match &*kind {
            "olm.package" => {
                let [version] = texts(value, &["version"])?;
                self.version = version.into_owned();
            }
            "olm.gvk" => self.gvk(PROVIDED_TAG, value)?,
            "olm.gvk.required" => {
                self.gvk(REQUIRED_TAG, value)?;
                self.dependency("olm.gvk", value.to_owned());
            }
            "olm.package.required" => {
                let [name, range] = texts(value, &["packageName", "versionRange"])?;
                let (name, range) = (json::plain(&name), json::plain(&range));
                self.dependency("olm.package", format!(r#"{{"packageName":{name},"version":{range}}}"#));
            }
            _ => {}
        }
        let property = TypedValue {
            r#type: kind.into_owned(),
            value: value.to_owned(),
        };
        encoding::message::encode(PROPERTY_TAG, &property, &mut self.encoded);
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

    fn dependency(&mut self, kind: &str, value: String) {
        let dependency = TypedValue {
            r#type: kind.to_owned(),
            value,
        };
        encoding::message::encode(DEPENDENCY_TAG, &dependency, &mut self.encoded);
    }
}
