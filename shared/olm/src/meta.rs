//! Fields of a line that matter to OLM, by its schema.

use std::borrow::Cow;
use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// Fields that every Meta may have.
#[derive(Default, Deserialize)]
pub(crate) struct MetaHeader<'a> {
    #[serde(borrow, default)]
    pub(crate) schema: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
}

/// Fields of an `olm.package` that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmPackage<'a> {
    #[serde(borrow, default)]
    pub(crate) default_channel: Option<Cow<'a, str>>,
}

/// Fields of an `olm.channel` that matter here.
#[derive(Deserialize)]
pub(crate) struct OlmChannel<'a> {
    #[serde(borrow, default)]
    pub(crate) entries: Option<Vec<OlmEntry<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmEntry<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) replaces: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) skips: Option<Vec<String>>,
    #[serde(borrow, default)]
    pub(crate) skip_range: Option<Cow<'a, str>>,
}

/// Fields of an `olm.bundle`. A bundle whose content lies in the catalog (`olm.bundle.object`) has no image.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmBundle<'a> {
    #[serde(borrow, default)]
    pub(crate) image: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) related_images: Option<Vec<OlmImage<'a>>>,
    #[serde(borrow, default)]
    properties: Option<Vec<Property<'a>>>,
}

#[derive(Deserialize)]
pub(crate) struct OlmImage<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) image: Option<Cow<'a, str>>,
}

/// Fields of an `olm.deprecations` that matter here.
#[derive(Deserialize)]
pub(crate) struct OlmDeprecations<'a> {
    #[serde(borrow, default)]
    pub(crate) entries: Option<Vec<OlmDeprecation<'a>>>,
}

#[derive(Deserialize)]
pub(crate) struct OlmDeprecation<'a> {
    #[serde(borrow)]
    pub(crate) reference: MetaHeader<'a>,
    #[serde(borrow, default)]
    pub(crate) message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Property<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    value: PropertyValue,
}

/// The `version` in the value of a property. All other content is skipped: most values are large and not needed.
#[derive(Default)]
struct PropertyValue(Option<String>);

impl OlmBundle<'_> {
    /// Returns the version in the property `olm.package` and removes it.
    pub(crate) fn version(&mut self) -> Option<String> {
        let mut properties = self.properties.iter_mut().flatten();
        properties
            .find(|property| property.kind == "olm.package")
            .and_then(|property| property.value.0.take())
    }
}

impl<'de> Deserialize<'de> for PropertyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A visitor instead of a struct: the value of another type of property may be anything, also a list or a number.
        deserializer.deserialize_any(FindVersion)
    }
}

struct FindVersion;

impl<'de> Visitor<'de> for FindVersion {
    type Value = PropertyValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PropertyValue, A::Error> {
        let mut version = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == "version" {
                version = map.next_value::<Text>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(PropertyValue(version))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PropertyValue, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(PropertyValue(None))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<PropertyValue, E> {
        Ok(PropertyValue(None))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<PropertyValue, E> {
        Ok(PropertyValue(None))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<PropertyValue, E> {
        Ok(PropertyValue(None))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<PropertyValue, E> {
        Ok(PropertyValue(None))
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<PropertyValue, E> {
        Ok(PropertyValue(None))
    }

    fn visit_unit<E: de::Error>(self) -> Result<PropertyValue, E> {
        Ok(PropertyValue(None))
    }
}

/// A text, or `None` if the value has another type. In an `olm.gvk` the version is a text too; in other properties it may be
/// anything.
#[derive(Deserialize)]
#[serde(untagged)]
enum MaybeText {
    Text(String),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(from = "MaybeText")]
struct Text(Option<String>);

impl From<MaybeText> for Text {
    fn from(value: MaybeText) -> Self {
        match value {
            MaybeText::Text(text) => Self(Some(text)),
            MaybeText::Other(IgnoredAny) => Self(None),
        }
    }
}
