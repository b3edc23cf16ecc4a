//! One line as what its schema says it is.

use std::borrow::Cow;
use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// What every Meta may have.
#[derive(Default, Deserialize)]
pub(crate) struct Header<'a> {
    #[serde(borrow, default)]
    pub(crate) schema: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
}

/// `olm.package`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlmPackage<'a> {
    #[serde(borrow, default)]
    pub(crate) default_channel: Option<Cow<'a, str>>,
}

/// `olm.channel`.
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

/// `olm.bundle`. Bundles may lie in the catalog itself (`olm.bundle.object`) and then have no image.
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

/// `olm.deprecations`.
#[derive(Deserialize)]
pub(crate) struct OlmDeprecations<'a> {
    #[serde(borrow, default)]
    pub(crate) entries: Option<Vec<OlmDeprecation<'a>>>,
}

#[derive(Deserialize)]
pub(crate) struct OlmDeprecation<'a> {
    #[serde(borrow)]
    pub(crate) reference: Header<'a>,
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

/// The `version` of a value, whatever else it is: most values are large and of no interest.
#[derive(Default)]
struct PropertyValue(Option<String>);

impl OlmBundle<'_> {
    /// The version that the property `olm.package` says.
    pub(crate) fn version(&mut self) -> Option<String> {
        let mut properties = self.properties.iter_mut().flatten();
        properties
            .find(|property| property.kind == "olm.package")
            .and_then(|property| property.value.0.take())
    }
}

impl<'de> Deserialize<'de> for PropertyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
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

/// A text, or nothing if the value is none: of a gvk the version is a text too, of other types it may be anything.
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
