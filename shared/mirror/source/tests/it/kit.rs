//! Helpers of all tests.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::io::{self, Read};
use std::iter::successors;
use std::path::Path;
use std::time::Duration;

use source::{
    Digest, EmptyLayers, Error, FetchError, FileSink, ImageLimits, Logins, Proxy, Pull,
    ServerFault, Source, SourceSettings, Sources, TreeFault, UnpackError,
};
use testkit::{Image, ImageBuilder, Layer, Registry, variant};

/// Keeps all files in memory, by path.
#[derive(Default, Debug)]
pub(crate) struct Collect {
    pub(crate) files: BTreeMap<String, String>,
    /// Links that may lead nowhere.
    pub(crate) excluded: BTreeSet<String>,
}

impl FileSink for Collect {
    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> io::Result<()> {
        let mut text = String::new();
        content.read_to_string(&mut text)?;
        assert_eq!(text.len() as u64, size, "{path}");
        let old = self.files.insert(path.to_owned(), text);
        assert_eq!(old, None, "{path} came twice");
        Ok(())
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        let old = self.files.insert(path.to_owned(), format!("-> {target}"));
        assert_eq!(old, None, "{path} came twice");
        let is_there = self.files.contains_key(target);
        assert!(is_there, "{path} links to {target}, which did not come");
        Ok(())
    }

    fn excludes(&self, path: &str) -> bool {
        self.excluded.contains(path)
    }
}

impl Collect {
    /// All as `path=content`, for short comparisons.
    pub(crate) fn list(&self) -> Vec<String> {
        self.files
            .iter()
            .map(|(path, text)| format!("{path}={text}"))
            .collect()
    }
}

/// Images of a host with plain HTTP. The settings are quick and do not depend on the machine,
/// except for the changes.
pub(crate) fn client_with(host: &str, change: impl FnOnce(&mut SourceSettings)) -> Sources {
    let mut settings = SourceSettings {
        auth_files: vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/no-auth.json")],
        ..SourceSettings::default()
    };
    settings.http.plain_http = plain(&[host]);
    settings.http.proxy = Proxy::default();
    settings.http.connect_timeout = Duration::from_secs(5);
    settings.http.read_timeout = Duration::from_secs(5);
    settings.http.retry.first = Duration::from_millis(5);
    settings.http.retry.longest = Duration::from_millis(20);
    change(&mut settings);
    Sources::new(settings).unwrap()
}

/// A client over TLS that trusts this CA, and allows no plain HTTP.
pub(crate) fn tls_client(ca_pem: &str, change: impl FnOnce(&mut SourceSettings)) -> Sources {
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), ca_pem).unwrap();
    client_with("", |settings| {
        settings.http.plain_http = Vec::new();
        settings.http.ca_files = vec![ca.path().to_owned()];
        change(settings);
    })
}

/// The password of `robot` for a host.
pub(crate) fn password(host: &str, password: &str) -> Logins {
    login(
        host,
        &format!(r#""username": "robot", "password": "{password}""#),
    )
}

/// This entry of a credential file for a host, in memory.
pub(crate) fn login(host: &str, entry: &str) -> Logins {
    let logins = Logins::default();
    let text = format!(r#"{{"auths": {{"{host}": {{{entry}}}}}}}"#);
    logins.set([("the vault", text.as_str())]).unwrap();
    logins
}

/// Plain HTTP for these hosts.
pub(crate) fn plain(hosts: &[&str]) -> Vec<String> {
    hosts.iter().map(|host| (*host).to_owned()).collect()
}

/// Limits of which one has this value. A limit of the ratio has no floor.
pub(crate) fn limits_at(name: &str, to: u64) -> ImageLimits {
    let mut limits = ImageLimits::default();
    let limit = match name {
        "manifestBytes" => &mut limits.manifest_bytes,
        "configBytes" => &mut limits.config_bytes,
        "layers" => &mut limits.layers,
        "compressedBytes" => &mut limits.compressed_bytes,
        "decompressedBytes" => &mut limits.decompressed_bytes,
        "ratio" => {
            limits.ratio_floor_bytes = 0;
            &mut limits.ratio
        }
        "entries" => &mut limits.entries,
        "pathBytes" => &mut limits.path_bytes,
        "headerBytes" => &mut limits.header_bytes,
        "fileBytes" => &mut limits.file_bytes,
        "treeBytes" => &mut limits.tree_bytes,
        "linkSteps" => &mut limits.link_steps,
        other => panic!("{other}"),
    };
    *limit = to;
    limits
}

/// Compares the name and the value of the limit that a read exceeds. Returns the place.
#[track_caller]
pub(crate) fn exceeded<T>(read: Result<T, Error>, name: &str, value: u64) -> String {
    let text = failed(read, &format!("limit {name}"));
    let end = format!(" exceeds the limit {name} of {value}");
    text.strip_suffix(&end).expect(&text).to_owned()
}

pub(crate) fn client(host: &str) -> Sources {
    client_with(host, |_| {})
}

pub(crate) fn source(registry: &Registry) -> Source {
    registry.reference("ns/cat", "v1").parse().unwrap()
}

/// Pushes as `ns/cat:v1`.
pub(crate) fn push(registry: &Registry, image: &Image) {
    registry.push("ns/cat", "v1", image);
}

/// A registry that has this image as `ns/cat:v1`, and its client.
pub(crate) async fn pushed(image: &Image) -> (Registry, Sources) {
    let registry = Registry::start().await;
    push(&registry, image);
    let images = client(registry.host());
    (registry, images)
}

/// A catalog under /configs of these layers, the lowest first.
pub(crate) fn catalog(layers: impl IntoIterator<Item = Layer>) -> Image {
    layers
        .into_iter()
        .fold(ImageBuilder::catalog("/configs"), ImageBuilder::layer)
        .build()
}

/// One small file.
pub(crate) fn small() -> Image {
    catalog([Layer::new().file("configs/a.yaml", "a")])
}

/// Resolves and reads `ns/cat:v1`.
pub(crate) async fn pull(images: &Sources, registry: &Registry) -> Result<(Collect, Pull), Error> {
    pull_source(images, &source(registry)).await
}

/// Resolves and reads a source.
pub(crate) async fn pull_source(
    images: &Sources,
    source: &Source,
) -> Result<(Collect, Pull), Error> {
    let digest = images.resolve(source).await?;
    read(images, source, &digest).await
}

/// Reads a revision of which no layers are known.
pub(crate) async fn read(
    images: &Sources,
    source: &Source,
    digest: &Digest,
) -> Result<(Collect, Pull), Error> {
    images
        .read(source, digest, &EmptyLayers::default(), Collect::default())
        .await
}

pub(crate) async fn pull_but(
    images: &Sources,
    registry: &Registry,
    empty: &EmptyLayers,
) -> Result<(Collect, Pull), Error> {
    let source = source(registry);
    let digest = images.resolve(&source).await?;
    images
        .read(&source, &digest, empty, Collect::default())
        .await
}

/// Reads a catalog of these layers.
pub(crate) async fn files(layers: impl IntoIterator<Item = Layer>) -> Result<Vec<String>, Error> {
    read_image(&catalog(layers)).await
}

pub(crate) async fn read_image(image: &Image) -> Result<Vec<String>, Error> {
    let (registry, images) = pushed(image).await;
    let (sink, _) = pull(&images, &registry).await?;
    Ok(sink.list())
}

/// An error with all its causes, as a log shows it. Those of this project's crates do not repeat
/// the next one.
pub(crate) fn chain(error: &Error) -> String {
    let causes = successors(Some(error as &dyn StdError), |&error| error.source());
    let texts: Vec<_> = causes.map(ToString::to_string).collect();
    for pair in texts.windows(2).take(2) {
        assert!(!pair[0].contains(&pair[1]), "{texts:?}");
    }
    texts.join(": ")
}

/// A few words for what came of a request.
pub(crate) fn verdict<T>(result: &Result<T, Error>) -> String {
    if let Some(limit) = result.as_ref().err().and_then(Error::limit) {
        return format!("limit {}", limit.name);
    }
    match result {
        Ok(_) => "read".to_owned(),
        Err(Error::Server(failure)) => match &failure.fault {
            ServerFault::Digest(_) => "malformed digest".to_owned(),
            ServerFault::Fetch(
                FetchError::Address { reason } | FetchError::Redirect { reason, .. },
            ) => {
                format!("refused: {}", variant(reason))
            }
            ServerFault::Fetch(error) => variant(error),
            fault => variant(fault),
        },
        Err(Error::Timeout(_)) => "took too long".to_owned(),
        Err(Error::Image(error)) => format!("image: {}", variant(error)),
        Err(Error::Credentials(error)) => format!("credentials: {}", variant(error)),
        Err(Error::Tree { source, .. }) => match source {
            TreeFault::Unpack(error) => format!("archive: {}", variant(error)),
            fault => variant(fault),
        },
        Err(Error::Unpack(error)) => match error {
            UnpackError::Layer { source, .. } => format!("layer: {}", variant(source)),
            UnpackError::Link { source, .. } => format!("link: {}", variant(source)),
            other => variant(other),
        },
        Err(error) => variant(error),
    }
}

/// Compares the words for a failure. Returns its text with all causes.
#[track_caller]
pub(crate) fn failed<T>(result: Result<T, Error>, want: &str) -> String {
    let found = verdict(&result);
    let text = result.err().as_ref().map(chain).unwrap_or_default();
    assert_eq!(found, want, "{text}");
    text
}
