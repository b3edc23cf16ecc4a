use std::{fs, io, net::SocketAddr, path::Path, slice, sync::Arc, time::Duration};

use anyhow::Context;
use clap::Args;
use prometheus_client::registry::Registry;
use publish::{Catalog, Mirror, PollOptions};
use reader::{PublishedCatalogs, ReaderSettings};
use source::{Source, Sources};
use store::{FolderStore, Store};
use terminal::print_line;

use crate::reports::print_polls;
use crate::wiring;

/// Files of the example catalog, an OCI layout: path and bytes. `build.rs` writes the table.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/example.rs"));

/// Tag that the demo mirrors. A demo update moves it to the next version.
const TAG: &str = "latest";

const NAME: &str = "demo";

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Address to listen on, or a port of 127.0.0.1.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS", value_parser = config::listen_address)]
    listen: SocketAddr,
    /// Time until the example catalog is updated.
    #[arg(long, default_value = "20s", value_parser = config::duration)]
    update_after: Duration,
    /// Exit after the update instead of serving on.
    #[arg(long)]
    once: bool,
}

pub(crate) async fn run(args: DemoArgs) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let listener = wiring::bind(args.listen, "--listen").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let layout = folder.path().join("image");
    unpack(&layout)?;
    tag(&layout, "v1")?;
    // In the temporary folder, so that nothing stays behind.
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("store"))?);
    let stop = server::stop_on_signals()?.token;
    let mut registry = Registry::with_prefix("catalog_mirror");
    let polls = publish::PollMetrics::register(&mut registry);
    let requests = api::HttpMetrics::register(&mut registry);
    let connections = server::ServerMetrics::register(&mut registry);
    let ages = polls.clone();
    let page = server::metrics_route(registry, move || ages.refresh([NAME]));
    let page = api::beside(page);
    let server = server::Server::new(
        server::ServerLimits::default(),
        connections,
        Some(wiring::FRONT),
    );
    let reading = ReaderSettings {
        offload: api::offload,
        ..ReaderSettings::default()
    };
    let catalogs = PublishedCatalogs::new(store.clone(), reading);
    let router = api::router(catalogs, api::HttpSettings::default(), requests).merge(page);
    let serving = tokio::spawn(server.run(listener, router, stop.clone()));

    let source = Source::OciLayout {
        dir: layout.clone(),
        tag: Some(TAG.to_owned()),
    };
    let catalog = Catalog::new(NAME.parse()?, source);
    let images = Sources::new(source::SourceSettings::default())?;
    let mirror = Mirror::new(images, store, publish::MirrorSettings::default(), polls);
    print_line(
        "An example catalog image is polled, published and served. Nothing leaves this machine.\n",
    )?;
    let poll = async |title: &str| -> anyhow::Result<()> {
        let report = mirror.poll(&catalog, PollOptions::default()).await;
        print_line(title)?;
        print_polls(slice::from_ref(&report), false)?;
        print_line("")?;
        report.error.map_or(Ok(()), |error| Err(error.into()))
    };
    poll("The first poll publishes everything:").await?;
    poll("The second poll finds the same digest and does nothing:").await?;
    print_line(&invitation(&url))?;
    let update = async {
        tokio::time::sleep(args.update_after).await;
        tag(&layout, "v2")?;
        poll("The image was updated, and the poll published the changes:").await
    };
    if let Some(updated) = stop.run_until_cancelled(update).await {
        updated?;
        let hint = if args.once { "" } else { " Stop with Ctrl-C." };
        print_line(&format!(
            "Ask again: the content hash and the ETags have changed.{hint}"
        ))?;
    }
    if args.once {
        // Otherwise the server would run until a signal.
        stop.cancel();
    }
    Ok(serving.await?)
}

fn invitation(url: &str) -> String {
    let catalog = format!("{url}/catalogs/{NAME}");
    format!(
        "Look at it: {url}/

Or try, in another terminal:

  curl -s {url}/catalogs
  curl -s {catalog}/api/v1/all | sha256sum; curl -s {catalog}/content-hash
  curl -s '{catalog}/api/v1/metas?schema=olm.package'
  curl -s {catalog}/packages/demo-database
  curl -si --compressed {catalog}/api/v1/all | head -n 12
  curl -si -H \"If-None-Match: $(curl -sI {catalog}/api/v1/all | sed -n 's/^etag: //p' | tr -d '\\r')\" {catalog}/api/v1/all
  curl -s {url}/metrics
"
    )
}

/// Writes the layout into a folder. No image has [`TAG`] yet.
fn unpack(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("blobs/sha256"))?;
    FILES
        .iter()
        .try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
}

/// Moves [`TAG`] to one of the versions in the example, as a push does.
fn tag(folder: &Path, version: &str) -> io::Result<()> {
    let index = include_str!("../../example/index.json");
    let index = index.replace(&format!("\"{version}\""), &format!("\"{TAG}\""));
    // Renamed into place: a poll may be reading the file.
    let staged = folder.join("index.json.new");
    fs::write(&staged, index)?;
    fs::rename(staged, folder.join("index.json"))
}
