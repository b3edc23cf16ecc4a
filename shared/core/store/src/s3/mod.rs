#![doc = include_str!("README.md")]

mod attempts;
mod fault;
mod probe;
mod proxy;
mod read;
mod sdk;
mod settings;
mod staged;
mod store;
mod write;

pub use fault::S3Error;
pub use proxy::ProxyOfUrl;
pub use sdk::{sdk_config, sdk_config_of_environment};
pub use settings::S3Settings;
pub use store::{S3Store, client};
