//! Fields of the schemas of OLM and of the properties of bundles, with the types of operator-registry v1.73.0.

use super::shape::Shape::{self, Any, Bool, Bytes, Integer, List, Map, Object, Property, Text};

const TEXTS: Shape = List(&Text);
const TEXT_MAP: Shape = Map(&Text);
const PROPERTIES: Shape = List(&Property);

/// Fields that every Meta may have.
pub(crate) const META: Shape = Object(&[("schema", Text), ("name", Text), ("package", Text)]);

pub(crate) const PACKAGE: Shape = Object(&[
    ("schema", Text),
    ("name", Text),
    ("package", Text),
    ("defaultChannel", Text),
    ("icon", Object(&[("base64data", Bytes), ("mediatype", Text)])),
    ("description", Text),
    ("properties", PROPERTIES),
]);

pub(crate) const CHANNEL: Shape = Object(&[
    ("schema", Text),
    ("name", Text),
    ("package", Text),
    (
        "entries",
        List(&Object(&[
            ("name", Text),
            ("replaces", Text),
            ("skips", TEXTS),
            ("skipRange", Text),
        ])),
    ),
    ("properties", PROPERTIES),
]);

pub(crate) const BUNDLE: Shape = Object(&[
    ("schema", Text),
    ("name", Text),
    ("package", Text),
    ("image", Text),
    ("properties", PROPERTIES),
    ("relatedImages", List(&Object(&[("name", Text), ("image", Text)]))),
]);

pub(crate) const DEPRECATIONS: Shape = Object(&[
    ("schema", Text),
    ("package", Text),
    (
        "entries",
        List(&Object(&[
            ("reference", Object(&[("schema", Text), ("name", Text)])),
            ("message", Text),
        ])),
    ),
]);

/// Returns the shape of the value of a property, and true if its content is needed.
pub(crate) fn property_shape(kind: &str) -> (&'static Shape, bool) {
    match kind {
        "olm.package" => (&PACKAGE_PROPERTY, true),
        "olm.bundle.object" => (&Object(&[("data", Bytes)]), true),
        "olm.gvk" | "olm.gvk.required" => (&GVK, false),
        "olm.package.required" => (&REQUIRED, false),
        "olm.channel" => (&CHANNEL_PROPERTY, false),
        "olm.csv.metadata" => (&CSV_METADATA, false),
        _ => (&Any, false),
    }
}

const PACKAGE_PROPERTY: Shape = Object(&[("packageName", Text), ("version", Text), ("release", Text)]);

const REQUIRED: Shape = Object(&[("packageName", Text), ("versionRange", Text)]);

const CHANNEL_PROPERTY: Shape = Object(&[("channelName", Text), ("priority", Integer(64))]);

const GVK: Shape = Object(&[("group", Text), ("kind", Text), ("version", Text)]);

const LINK: Shape = Object(&[("name", Text), ("url", Text)]);

const CSV_METADATA: Shape = Object(&[
    ("annotations", TEXT_MAP),
    ("apiServiceDefinitions", API_SERVICES),
    ("crdDescriptions", CRDS),
    ("description", Text),
    ("displayName", Text),
    ("installModes", List(&Object(&[("type", Text), ("supported", Bool)]))),
    ("keywords", TEXTS),
    ("labels", TEXT_MAP),
    ("links", List(&LINK)),
    ("maintainers", List(&Object(&[("name", Text), ("email", Text)]))),
    ("maturity", Text),
    ("minKubeVersion", Text),
    ("nativeAPIs", List(&GVK)),
    ("provider", LINK),
]);

const CRDS: Shape = Object(&[("owned", List(&CRD_DESCRIPTION)), ("required", List(&CRD_DESCRIPTION))]);

const API_SERVICES: Shape = Object(&[
    ("owned", List(&API_SERVICE_DESCRIPTION)),
    ("required", List(&API_SERVICE_DESCRIPTION)),
]);

const CRD_DESCRIPTION: Shape = Object(&[
    ("name", Text),
    ("version", Text),
    ("kind", Text),
    ("displayName", Text),
    ("description", Text),
    ("resources", RESOURCES),
    ("statusDescriptors", DESCRIPTORS),
    ("specDescriptors", DESCRIPTORS),
    ("actionDescriptors", DESCRIPTORS),
]);

const API_SERVICE_DESCRIPTION: Shape = Object(&[
    ("name", Text),
    ("group", Text),
    ("version", Text),
    ("kind", Text),
    ("deploymentName", Text),
    ("containerPort", Integer(32)),
    ("displayName", Text),
    ("description", Text),
    ("resources", RESOURCES),
    ("statusDescriptors", DESCRIPTORS),
    ("specDescriptors", DESCRIPTORS),
    ("actionDescriptors", DESCRIPTORS),
]);

const RESOURCES: Shape = List(&Object(&[("name", Text), ("kind", Text), ("version", Text)]));

const DESCRIPTORS: Shape = List(&Object(&[
    ("path", Text),
    ("displayName", Text),
    ("description", Text),
    ("x-descriptors", TEXTS),
    ("value", Any),
]));
