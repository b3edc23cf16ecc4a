use std::{path::Path, sync::Arc};

use ::poll::{Catalog, Mirror, Report};
use anyhow::Context;
use image::{Images, Source};
use layout::Availability;
use store::{FolderStore, Store};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::example;
use crate::{cli::Demo, exit::Exit, output, server};

const NAME: &str = "demo";

pub(crate) async fn run(args: Demo) -> anyhow::Result<Exit> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let listener = server::bind(args.listen).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let layout = folder.path().join("image");
    example::unpack(&layout)?;
    example::tag(&layout, "v1")?;
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("store"))?);
    let stop = server::stop_on_signals()?;
    let serving = serve(listener, &store, &stop);

    let (mirror, catalog) = mirror(&layout, store)?;
    println!("An example catalog image, polled, published and served; nothing leaves this machine.\n");
    show(
        "The first poll publishes everything:",
        mirror.turn(&catalog, false).await,
    )?;
    show(
        "The second finds the digest unchanged and does nothing:",
        mirror.turn(&catalog, false).await,
    )?;
    println!("{}", invitation(&url));
    let update = async {
        tokio::time::sleep(args.update_after).await;
        example::tag(&layout, "v2")?;
        show(
            "The image was updated; the poll published what changed:",
            mirror.turn(&catalog, false).await,
        )
    };
    if let Some(updated) = stop.run_until_cancelled(update).await {
        updated?;
        println!(
            "Ask again: the same conditional request now answers 200.{}",
            if args.once { "" } else { " Stop with Ctrl-C." }
        );
    }
    if args.once {
        stop.cancel();
    }
    serving.await?;
    Ok(Exit::Fine)
}

fn serve(listener: TcpListener, store: &Arc<dyn Store>, stop: &CancellationToken) -> JoinHandle<()> {
    let router = ::serve::router(store.clone(), ::serve::Settings::default(), ::serve::Metrics::default());
    let server = listen::Server::new(listen::Limits::default(), listen::Metrics::default());
    tokio::spawn(server.run(listener, router, stop.clone()))
}

fn mirror(layout: &Path, store: Arc<dyn Store>) -> anyhow::Result<(Mirror, Catalog)> {
    let images = Images::new(image::Settings::default())?;
    let source = Source::OciLayout {
        dir: layout.to_owned(),
        tag: Some(example::TAG.to_owned()),
    };
    let catalog = Catalog {
        name: NAME.parse()?,
        source,
        availability: Availability::Available,
        interval: None,
        policy: None,
        lookaside: None,
    };
    let mirror = Mirror::new(images, store, ::poll::Settings::default(), ::poll::Metrics::default());
    Ok((mirror, catalog))
}

fn show(what: &str, report: Report) -> anyhow::Result<()> {
    println!("{what}");
    output::reports::table(std::slice::from_ref(&report))?;
    println!();
    report.error.map_or(Ok(()), |error| Err(error.into()))
}

fn invitation(url: &str) -> String {
    let catalog = format!("{url}/catalogs/{NAME}");
    format!(
        "Try, in another terminal:

  curl -s {url}/catalogs
  curl -s {catalog}/api/v1/all | sha256sum; curl -s {catalog}/content-hash
  curl -s '{catalog}/api/v1/metas?schema=olm.package'
  curl -s {catalog}/packages/demo-database
  curl -si --compressed {catalog}/api/v1/all | head -n 12
  curl -si -H \"If-None-Match: $(curl -sI {catalog}/api/v1/all | sed -n 's/^etag: //p' | tr -d '\\r')\" {catalog}/api/v1/all
"
    )
}
