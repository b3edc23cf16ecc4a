//! Line of a bundle, read once: the message that `ListBundles` sends of it.

use std::{borrow::Cow, fmt};

use prost::{Message, encoding};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
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
    let mut found = Found::default();
    let mut parser = serde_json::Deserializer::from_str(text);
    let read = LineFields(&mut found).deserialize(&mut parser);
    read.and_then(|()| parser.end()).map_err(|error| error.to_string())?;
    let bundle = ApiBundle {
        csv_name: go::text(found.name)?.into_owned(),
        package_name: package.to_owned(),
        bundle_path: go::text(found.image)?.into_owned(),
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

#[derive(Default)]
struct Found<'a> {
    name: Option<&'a RawValue>,
    image: Option<&'a RawValue>,
    version: String,
    /// Encoded fields that come from properties. As structures, millions of `{}` would take ten times the line.
    encoded: Vec<u8>,
}

impl<'a> Found<'a> {
    fn property(&mut self, kind: Cow<'a, str>, value: &str) -> Result<(), Wrong> {
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

/// The object of the line.
struct LineFields<'f, 'a>(&'f mut Found<'a>);

/// The list of properties.
struct Properties<'f, 'a>(&'f mut Found<'a>);

/// One property.
struct Property<'f, 'a>(&'f mut Found<'a>);

/// Implements `DeserializeSeed` for a visitor that accepts null as nothing.
macro_rules! seed {
    ($name:ident, $expecting:literal, $visit:item) => {
        impl<'a> DeserializeSeed<'a> for $name<'_, 'a> {
            type Value = ();

            fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.deserialize_any(self)
            }
        }

        impl<'a> Visitor<'a> for $name<'_, 'a> {
            type Value = ();

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expecting)
            }

            fn visit_unit<E: de::Error>(self) -> Result<(), E> {
                Ok(())
            }

            $visit
        }
    };
}

seed!(
    LineFields,
    "an object",
    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<go::FieldKey<'a>>()? {
            match go::position(&["name", "image", "properties"], &key.0) {
                Some(0) => self.0.name = Some(map.next_value()?),
                Some(1) => self.0.image = Some(map.next_value()?),
                Some(_) => map.next_value_seed(Properties(self.0))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
);

seed!(
    Properties,
    "a list",
    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Property(self.0))?.is_some() {}
        Ok(())
    }
);

seed!(
    Property,
    "an object",
    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut kind, mut value): (Option<&RawValue>, Option<&RawValue>) = (None, None);
        while let Some(key) = map.next_key::<go::FieldKey<'a>>()? {
            match go::position(&["type", "value"], &key.0) {
                Some(0) => kind = Some(map.next_value()?),
                Some(_) => value = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let kind = go::text(kind).map_err(de::Error::custom)?;
        if matches!(&*kind, "olm.csv.metadata" | "olm.bundle.object") {
            return Ok(());
        }
        let value = value.map_or("", RawValue::get);
        self.0.property(kind, value).map_err(de::Error::custom)
    }
);
