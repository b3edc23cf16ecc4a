//! What a trick is and what must come of it.

use poll::{Limits, PollError};
use testkit::{Image, ImageBuilder, Layer};

pub(crate) struct Row {
    pub(crate) trick: &'static str,
    pub(crate) image: Image,
    pub(crate) limits: Limits,
    pub(crate) then: Then,
}

pub(crate) enum Then {
    /// The turn fails with an error of this kind.
    Refused(fn(&PollError) -> bool),
    /// These packages are published.
    Reads(&'static str),
}

impl Row {
    pub(crate) fn new(trick: &'static str, image: Image, then: Then) -> Self {
        Self {
            trick,
            image,
            limits: Limits::default(),
            then,
        }
    }

    /// With other limits than the usual ones.
    pub(crate) fn with(mut self, set: fn(&mut Limits)) -> Self {
        set(&mut self.limits);
        self
    }
}

/// An image of these layers, the lowest first, with its catalog under `/configs`.
pub(crate) fn image(layers: impl IntoIterator<Item = Layer>) -> Image {
    rooted("/configs", layers)
}

pub(crate) fn rooted(root: &str, layers: impl IntoIterator<Item = Layer>) -> Image {
    let builder = ImageBuilder::catalog(root);
    layers.into_iter().fold(builder, ImageBuilder::layer).build()
}

/// The FBC of one package.
pub(crate) fn fbc(package: &str) -> String {
    format!("schema: olm.package\nname: {package}\n")
}

/// A layer with one package.
pub(crate) fn layer(path: &str, package: &str) -> Layer {
    Layer::new().file(path, fbc(package))
}

/// A layer with a package named good, to which a trick is added.
pub(crate) fn good() -> Layer {
    layer("configs/good.yaml", "good")
}

pub(crate) fn reads(trick: &'static str, layer: Layer, packages: &'static str) -> Row {
    Row::new(trick, image([layer]), Then::Reads(packages))
}

pub(crate) fn refused(trick: &'static str, layer: Layer, is_right: fn(&PollError) -> bool) -> Row {
    Row::new(trick, image([layer]), Then::Refused(is_right))
}

/// The fault lies in a layer.
macro_rules! in_layer {
    ($pattern:pat) => {
        |error: &poll::PollError| {
            matches!(
                error,
                poll::PollError::Image(image::Error::Layer { source: $pattern, .. })
            )
        }
    };
}

/// The fault lies in a link.
macro_rules! in_link {
    ($pattern:pat) => {
        |error: &poll::PollError| {
            matches!(
                error,
                poll::PollError::Image(image::Error::Link { source: $pattern, .. })
            )
        }
    };
}

/// The fault lies in the image.
macro_rules! in_image {
    ($pattern:pat) => {
        |error: &poll::PollError| matches!(error, poll::PollError::Image($pattern))
    };
}

/// A limit of the image is exceeded.
macro_rules! over {
    ($name:pat) => {
        |error: &poll::PollError| {
            matches!(
                error,
                poll::PollError::Image(image::Error::Limit(image::Limit { name: $name, .. }))
            )
        }
    };
}

pub(crate) use {in_image, in_layer, in_link, over};
