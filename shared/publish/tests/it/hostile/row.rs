//! One hostile image and its expected result.

use catalog_mirror_publish::{PollError, SourceLimits};
use testkit::{Image, ImageBuilder, Layer};

pub(crate) struct Row {
    pub(crate) trick: &'static str,
    pub(crate) image: Image,
    pub(crate) limits: SourceLimits,
    pub(crate) then: Then,
}

pub(crate) enum Then {
    /// The poll fails with an error of this kind.
    Refused(fn(&PollError) -> bool),
    /// The poll succeeds and publishes exactly these packages.
    Reads(&'static str),
}

impl Row {
    pub(crate) fn new(trick: &'static str, image: Image, then: Then) -> Self {
        Self {
            trick,
            image,
            limits: SourceLimits::default(),
            then,
        }
    }

    /// Changes the limits of the poll, which are else the defaults.
    pub(crate) fn with(mut self, set: fn(&mut SourceLimits)) -> Self {
        set(&mut self.limits);
        self
    }
}

/// Returns an image of these layers, the lowest first, with the FBC root `/configs`.
pub(crate) fn image(layers: impl IntoIterator<Item = Layer>) -> Image {
    rooted("/configs", layers)
}

pub(crate) fn rooted(root: &str, layers: impl IntoIterator<Item = Layer>) -> Image {
    let builder = ImageBuilder::catalog(root);
    layers.into_iter().fold(builder, ImageBuilder::layer).build()
}

/// Returns the FBC of a package without bundles.
pub(crate) fn fbc(package: &str) -> String {
    format!("schema: olm.package\nname: {package}\n")
}

/// Returns a layer whose only file is the FBC of one package.
pub(crate) fn layer(path: &str, package: &str) -> Layer {
    Layer::new().file(path, fbc(package))
}

/// Returns a layer with a package named good, to which a row adds its attack.
pub(crate) fn good() -> Layer {
    layer("configs/good.yaml", "good")
}

pub(crate) fn reads(trick: &'static str, layer: Layer, packages: &'static str) -> Row {
    Row::new(trick, image([layer]), Then::Reads(packages))
}

pub(crate) fn refused(trick: &'static str, layer: Layer, is_right: fn(&PollError) -> bool) -> Row {
    Row::new(trick, image([layer]), Then::Refused(is_right))
}

/// Matches an error in a layer.
macro_rules! in_layer {
    ($pattern:pat) => {
        |error: &catalog_mirror_publish::PollError| {
            matches!(
                error,
                catalog_mirror_publish::PollError::Image(source::Error::Layer { source: $pattern, .. })
            )
        }
    };
}

/// Matches an error of a link.
macro_rules! in_link {
    ($pattern:pat) => {
        |error: &catalog_mirror_publish::PollError| {
            matches!(
                error,
                catalog_mirror_publish::PollError::Image(source::Error::Link { source: $pattern, .. })
            )
        }
    };
}

/// Matches an error of the image as a whole.
macro_rules! in_image {
    ($pattern:pat) => {
        |error: &catalog_mirror_publish::PollError| matches!(error, catalog_mirror_publish::PollError::Image($pattern))
    };
}

/// Matches an exceeded limit of the image.
macro_rules! over {
    ($name:pat) => {
        |error: &catalog_mirror_publish::PollError| {
            matches!(
                error,
                catalog_mirror_publish::PollError::Image(source::Error::Limit(source::LimitExceeded {
                    name: $name,
                    ..
                }))
            )
        }
    };
}

pub(crate) use {in_image, in_layer, in_link, over};
