#![doc = include_str!("README.md")]

mod attempts;
mod body;
mod fault;
mod http;
mod list;
mod probe;
mod read;
mod reader;
mod sdk;
mod settings;
mod staged;
mod store;
mod trust;
mod write;

pub use reader::S3Reader;
pub use sdk::{sdk_config, sdk_config_of_environment};
pub use settings::{OpenError, S3Settings};
pub use store::S3Store;
