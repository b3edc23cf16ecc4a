/// Everything that bounds what the source of a catalog may demand, in one place.
///
/// Exactly a limit passes. One more ends the turn with an error that names the limit, its value and where it was
/// exceeded; what was published before stays served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// What bounds the image, for [`image::Settings`].
    pub image: image::Limits,
    /// What bounds the FBC in it, for [`render::Settings`].
    pub catalog: render::Limits,
}
