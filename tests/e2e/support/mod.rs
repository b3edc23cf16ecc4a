//! Helpers of the end-to-end tests.

pub(crate) mod binary;
pub(crate) mod bundles;
pub(crate) mod cargo;
pub(crate) mod catalogs;
pub(crate) mod http;
pub(crate) mod site;
pub(crate) mod work;
