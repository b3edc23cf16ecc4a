use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::tree::{FolderTree, TreeReport, TreeTarget, export};
use anyhow::Context;
use clap::Args;
use config::poll_interval;
use store::StorePlace;

use crate::args::{Access, StoreArgs};
use crate::table::{Column, Table, print_done};
use crate::wiring;
use terminal::{bytes, remark};

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Write a tree of files from which any web server answers, or bring it up to date: a folder,
    /// or s3://BUCKET[/PREFIX].
    #[arg(long = "static", id = "static", value_name = "TO", conflicts_with_all = ["to", "since", "receipt", "whole", "volume_size", "names"])]
    place: Option<StorePlace>,
    /// In a folder, write texts as .gz alone, for a server that decompresses for the clients that
    /// need it.
    #[arg(long, requires = "static")]
    gzip_only: bool,
    /// Keep running and bring the tree up to date at this interval, from 1s to 365d.
    #[arg(long, requires = "static", value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "1m", value_parser = poll_interval)]
    pub(super) watch: Option<Duration>,
}

/// Writes the tree once, or until a signal.
pub(super) async fn run(args: &TreeArgs, from: &StoreArgs, json: bool) -> anyhow::Result<()> {
    let place = args.place.as_ref().context("name the tree with --static")?;
    let source = from.place_alone(Some(place))?;
    let store = from.s3.open(&source, Access::Read).await?;
    let target: Arc<dyn TreeTarget> = match place {
        StorePlace::Folder(folder) => Arc::new(FolderTree::open(folder, &source, args.gzip_only)?),
        #[cfg(feature = "s3")]
        StorePlace::S3(bucket) => {
            Arc::new(::tree::BucketTree::open(bucket.clone(), &source, &from.s3.settings()).await?)
        }
        #[cfg(not(feature = "s3"))]
        StorePlace::S3(bucket) => anyhow::bail!(crate::args::without_s3(bucket)),
    };
    let round = async || {
        let report = export(store.clone(), target.clone(), SystemTime::now()).await?;
        report.notices().iter().for_each(|notice| remark(notice));
        print_done(&[report], json)
    };
    match args.watch {
        None => round().await,
        // The next run completes what an interrupted one leaves.
        Some(interval) => wiring::watch(interval, "cannot write the tree", round).await,
    }
}

impl Table for TreeReport {
    const COLUMNS: &'static [Column<Self>] = &[
        ("CATALOGS", |report| report.catalogs.to_string()),
        ("FILES", |report| report.files.to_string()),
        ("WRITTEN", |report| report.written.to_string()),
        ("BYTES", |report| bytes(report.bytes)),
        ("LINKED", |report| report.linked.to_string()),
        ("DELETED", |report| report.deleted.to_string()),
    ];
}
