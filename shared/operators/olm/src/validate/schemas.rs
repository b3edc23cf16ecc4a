//! Fields of the schemas of OLM and of the properties of bundles, with the types of
//! operator-registry v1.73.0 and of operator-framework/api v0.45.0.

use super::shape::Shape::{
    self, Any, Bool, Bytes, Integer, List, Map, Object, PropertyValue, Text,
};
use super::shape::ShapeField;

/// Returns a field that a structure of Go always has.
const fn always(name: &'static str, shape: Shape) -> ShapeField {
    ShapeField {
        name,
        shape,
        omit_empty: false,
    }
}

/// Returns a field that a structure of Go does not have when it is empty.
const fn optional(name: &'static str, shape: Shape) -> ShapeField {
    ShapeField {
        omit_empty: true,
        ..always(name, shape)
    }
}

const TEXTS: Shape = List(&Text);
const TEXT_MAP: Shape = Map(&Text);
const PROPERTIES: Shape = List(&Object(&[
    always("type", Text),
    always("value", PropertyValue),
]));

/// Fields that every Meta may have.
pub(crate) const META: Shape = Object(&[
    always("schema", Text),
    always("name", Text),
    always("package", Text),
]);

pub(crate) const PACKAGE: Shape = Object(&[
    always("schema", Text),
    always("name", Text),
    always("package", Text),
    always("defaultChannel", Text),
    always("description", Text),
    always("icon", ICON),
    always("properties", PROPERTIES),
]);

/// Icon of a package.
pub const ICON: Shape = Object(&[always("base64data", Bytes), always("mediatype", Text)]);

pub(crate) const CHANNEL: Shape = Object(&[
    always("schema", Text),
    always("name", Text),
    always("package", Text),
    always("entries", List(&ENTRY)),
    always("properties", PROPERTIES),
]);

const ENTRY: Shape = Object(&[
    always("name", Text),
    always("replaces", Text),
    always("skipRange", Text),
    always("skips", TEXTS),
]);

pub(crate) const BUNDLE: Shape = Object(&[
    always("schema", Text),
    always("name", Text),
    always("package", Text),
    always("image", Text),
    always("properties", PROPERTIES),
    always("relatedImages", RELATED_IMAGES),
]);

/// Images that a bundle needs.
pub const RELATED_IMAGES: Shape = List(&Object(&[always("name", Text), always("image", Text)]));

pub(crate) const DEPRECATIONS: Shape = Object(&[
    always("schema", Text),
    always("package", Text),
    always("entries", List(&DEPRECATION)),
]);

const DEPRECATION: Shape = Object(&[
    always(
        "reference",
        Object(&[always("schema", Text), always("name", Text)]),
    ),
    always("message", Text),
]);

/// Returns the shape of the value of a property, and true if its content is needed.
pub(crate) fn property_shape(kind: &str) -> (&'static Shape, bool) {
    match kind {
        "olm.package" => (&PACKAGE_PROPERTY, true),
        "olm.bundle.object" => (&OBJECT_PROPERTY, true),
        "olm.gvk" | "olm.gvk.required" => (&GVK, false),
        "olm.package.required" => (&REQUIRED, false),
        "olm.channel" => (&CHANNEL_PROPERTY, false),
        "olm.csv.metadata" => (&CSV_PROPERTY, false),
        _ => (&Any, false),
    }
}

const PACKAGE_PROPERTY: Shape = Object(&[
    always("packageName", Text),
    always("version", Text),
    always("release", Text),
]);
const OBJECT_PROPERTY: Shape = Object(&[always("data", Bytes)]);
const REQUIRED: Shape = Object(&[always("packageName", Text), always("versionRange", Text)]);
const CHANNEL_PROPERTY: Shape =
    Object(&[always("channelName", Text), always("priority", Integer(64))]);
const GVK: Shape = Object(&[
    always("group", Text),
    always("version", Text),
    always("kind", Text),
]);

const CSV_PROPERTY: Shape = Object(CSV_METADATA);

/// Fields of `olm.csv.metadata`: two of the metadata of a ClusterServiceVersion, then those of its
/// spec, in the order of their structures.
pub const CSV_METADATA: &[ShapeField] = &[
    optional("labels", TEXT_MAP),
    optional("annotations", TEXT_MAP),
    optional("maturity", Text),
    always("crdDescriptions", CRD_LISTS),
    always("apiServiceDefinitions", API_SERVICE_LISTS),
    optional("nativeAPIs", List(&GVK)),
    optional("minKubeVersion", Text),
    always("displayName", Text),
    optional("description", Text),
    optional("keywords", TEXTS),
    optional("maintainers", List(&MAINTAINER)),
    always("provider", LINK),
    optional("links", List(&LINK)),
    optional("installModes", List(&INSTALL_MODE)),
];

const LINK: Shape = Object(&[optional("name", Text), optional("url", Text)]);
const MAINTAINER: Shape = Object(&[optional("name", Text), optional("email", Text)]);
const INSTALL_MODE: Shape = Object(&[always("type", Text), always("supported", Bool)]);

const CRD_LISTS: Shape = Object(&[optional("owned", CRDS), optional("required", CRDS)]);
const API_SERVICE_LISTS: Shape = Object(&[
    optional("owned", API_SERVICES),
    optional("required", API_SERVICES),
]);

const CRDS: Shape = List(&Object(&[
    always("name", Text),
    always("version", Text),
    always("kind", Text),
    optional("displayName", Text),
    optional("description", Text),
    optional("resources", RESOURCES),
    optional("statusDescriptors", DESCRIPTORS),
    optional("specDescriptors", DESCRIPTORS),
    optional("actionDescriptors", DESCRIPTORS),
]));

const API_SERVICES: Shape = List(&Object(&[
    always("name", Text),
    always("group", Text),
    always("version", Text),
    always("kind", Text),
    optional("deploymentName", Text),
    optional("containerPort", Integer(32)),
    optional("displayName", Text),
    optional("description", Text),
    optional("resources", RESOURCES),
    optional("statusDescriptors", DESCRIPTORS),
    optional("specDescriptors", DESCRIPTORS),
    optional("actionDescriptors", DESCRIPTORS),
]));

const RESOURCES: Shape = List(&Object(&[
    always("name", Text),
    always("kind", Text),
    always("version", Text),
]));

const DESCRIPTORS: Shape = List(&Object(&[
    always("path", Text),
    optional("displayName", Text),
    optional("description", Text),
    optional("x-descriptors", TEXTS),
    optional("value", Any),
]));
