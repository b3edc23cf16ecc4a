use std::sync::Arc;

use ::sync::{Origin, OriginDocument, StoreOrigin, collect};
use anyhow::Context;
use model::{
    CatalogName, Current, Document, Facts, Key, ObjectDigest, ObjectRef, SearchPackage, Snapshot, StoredDocument,
};
use olm::{SEARCH, SearchFilter, SearchIndex, SearchQuery};

use super::sync::origin;
use crate::{
    cli::{SearchArgs, SyncOrigin},
    exit::Exit,
    output::store::{SearchAnswer, print_found},
    stores::Access,
};

pub(crate) async fn run(args: SearchArgs) -> anyhow::Result<Exit> {
    let origin = match &args.url {
        Some(url) => {
            let from = SyncOrigin::Http(url.clone());
            origin(&from, &args.store.s3, &args.ca_file, args.header_file.as_deref()).await?
        }
        None => Arc::new(StoreOrigin(args.store.open_alone(Access::Read).await?)),
    };
    let names = match args.catalog.is_empty() {
        true => origin.names().await.context("cannot list the catalogs")?,
        false => args.catalog.iter().cloned().collect(),
    };
    anyhow::ensure!(!names.is_empty(), "there are no catalogs");
    let query = SearchQuery {
        text: args.query.join(" "),
        filter: SearchFilter {
            package: args.package,
            category: args.category,
            provider: args.provider,
            capability: args.capability,
            arch: args.arch,
        },
        offset: 0,
        limit: args.limit,
    };
    let (mut answers, mut exit) = (Vec::new(), Exit::Success);
    for name in names {
        match search(&*origin, &name, &query).await {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                eprintln!("error: {name}: {error:#}");
                exit = Exit::Failed;
            }
        }
    }
    print_found(&answers, query.limit, args.json)?;
    Ok(exit)
}

async fn search(origin: &dyn Origin, name: &CatalogName, query: &SearchQuery) -> anyhow::Result<SearchAnswer> {
    let OriginDocument::Bytes(bytes) = origin.document(&Key::Current(name.clone()), None).await? else {
        unreachable!("a document that is not known is read");
    };
    let current = Current::from_bytes(&bytes).context("cannot read its current.json")?;
    let snapshot: Snapshot = object(origin, &current.snapshot.digest).await?;
    let texts = snapshot
        .facts
        .get(SEARCH.name)
        .context("it was published without an index for search: publish it again (`catalog-mirror poll --force`)")?;
    let document: Facts<SearchPackage> = object(origin, texts).await?;
    Ok(SearchAnswer {
        catalog: name.clone(),
        content_hash: current.content_hash,
        query: query.text.clone(),
        found: SearchIndex::new(document).find(query),
    })
}

/// Reads a stored document, and checks its bytes against their hash.
async fn object<D: StoredDocument>(origin: &dyn Origin, digest: &ObjectDigest) -> anyhow::Result<D> {
    let object: ObjectRef = digest.with_kind(D::KIND);
    let key = object.key();
    let bytes = collect(origin.object(&key, digest.size).await?).await?;
    anyhow::ensure!(
        ObjectDigest::of(&bytes) == *digest,
        "{key} does not have the bytes of its name"
    );
    D::from_stored(&bytes).with_context(|| format!("cannot read {key}"))
}
