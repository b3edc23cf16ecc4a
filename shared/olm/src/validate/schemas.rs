//! Fields of the schemas of OLM and of the properties of bundles, with the types of operator-registry v1.73.0.

use super::shape::Shape::{self, Any, Bool, Bytes, Integer, List, Map, Object, Property, Text};

const TEXTS: Shape = List(&Text);
const TEXT_MAP: Shape = Map(&Text);
const PROPERTIES: Shape = List(&Property);

/// Fields that every Meta may have.
pub(crate) const META: Shape = Object(&[(&["schema", "name", "package"], Text)]);

pub(crate) const PACKAGE: Shape = Object(&[
    (&["schema", "name", "package", "defaultChannel", "description"], Text),
    (&["icon"], Object(&[(&["base64data"], Bytes), (&["mediatype"], Text)])),
    (&["properties"], PROPERTIES),
]);

pub(crate) const CHANNEL: Shape = Object(&[
    (&["schema", "name", "package"], Text),
    (&["entries"], List(&ENTRY)),
    (&["properties"], PROPERTIES),
]);

const ENTRY: Shape = Object(&[(&["name", "replaces", "skipRange"], Text), (&["skips"], TEXTS)]);

pub(crate) const BUNDLE: Shape = Object(&[
    (&["schema", "name", "package", "image"], Text),
    (&["properties"], PROPERTIES),
    (&["relatedImages"], List(&Object(&[(&["name", "image"], Text)]))),
]);

pub(crate) const DEPRECATIONS: Shape = Object(&[(&["schema", "package"], Text), (&["entries"], List(&DEPRECATION))]);

const DEPRECATION: Shape = Object(&[
    (&["reference"], Object(&[(&["schema", "name"], Text)])),
    (&["message"], Text),
]);

/// Returns the shape of the value of a property, and true if its content is needed.
pub(crate) fn property_shape(kind: &str) -> (&'static Shape, bool) {
    match kind {
        "olm.package" => (&PACKAGE_PROPERTY, true),
        "olm.bundle.object" => (&Object(&[(&["data"], Bytes)]), true),
        "olm.gvk" | "olm.gvk.required" => (&GVK, false),
        "olm.package.required" => (&REQUIRED, false),
        "olm.channel" => (&CHANNEL_PROPERTY, false),
        "olm.csv.metadata" => (&CSV_METADATA, false),
        _ => (&Any, false),
    }
}

const PACKAGE_PROPERTY: Shape = Object(&[(&["packageName", "version", "release"], Text)]);
const REQUIRED: Shape = Object(&[(&["packageName", "versionRange"], Text)]);
const CHANNEL_PROPERTY: Shape = Object(&[(&["channelName"], Text), (&["priority"], Integer(64))]);
const GVK: Shape = Object(&[(&["group", "kind", "version"], Text)]);
const LINK: Shape = Object(&[(&["name", "url"], Text)]);

const CSV_METADATA: Shape = Object(&[
    (&["description", "displayName", "maturity", "minKubeVersion"], Text),
    (&["annotations", "labels"], TEXT_MAP),
    (&["keywords"], TEXTS),
    (&["apiServiceDefinitions"], API_SERVICES),
    (&["crdDescriptions"], CRDS),
    (&["installModes"], List(&INSTALL_MODE)),
    (&["links"], List(&LINK)),
    (&["maintainers"], List(&Object(&[(&["name", "email"], Text)]))),
    (&["nativeAPIs"], List(&GVK)),
    (&["provider"], LINK),
]);

const INSTALL_MODE: Shape = Object(&[(&["type"], Text), (&["supported"], Bool)]);

const CRDS: Shape = Object(&[(&["owned", "required"], List(&CRD_DESCRIPTION))]);
const API_SERVICES: Shape = Object(&[(&["owned", "required"], List(&API_SERVICE_DESCRIPTION))]);

const CRD_DESCRIPTION: Shape = Object(&[
    (&["name", "version", "kind", "displayName", "description"], Text),
    (&["resources"], RESOURCES),
    (DESCRIPTOR_LISTS, DESCRIPTORS),
]);

const API_SERVICE_DESCRIPTION: Shape = Object(&[
    (&["name", "version", "kind", "displayName", "description"], Text),
    (&["group", "deploymentName"], Text),
    (&["containerPort"], Integer(32)),
    (&["resources"], RESOURCES),
    (DESCRIPTOR_LISTS, DESCRIPTORS),
]);

const RESOURCES: Shape = List(&Object(&[(&["name", "kind", "version"], Text)]));

const DESCRIPTOR_LISTS: &[&str] = &["statusDescriptors", "specDescriptors", "actionDescriptors"];

const DESCRIPTORS: Shape = List(&Object(&[
    (&["path", "displayName", "description"], Text),
    (&["x-descriptors"], TEXTS),
    (&["value"], Any),
]));
