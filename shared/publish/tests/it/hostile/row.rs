//! Parts of the images of the tests.

use testkit::{Image, ImageBuilder, Layer};

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
