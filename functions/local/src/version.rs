/// `--version`: the commit and how it was built, for reports of problems.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("BUILD_COMMIT"),
    ")\nbuilt with ",
    env!("BUILD_RUSTC"),
    " for ",
    env!("BUILD_TARGET"),
    " (",
    env!("BUILD_PROFILE"),
    ")"
);
