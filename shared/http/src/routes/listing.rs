use std::borrow::Cow;

use bytes::Bytes;
use model::{Kind, ShardRef};
use reader::PublishedState;
use serde_json::{Value, json};

use super::RouteCall;
use crate::{error::ApiError, respond::Representation};

/// Reads pointers only, so the cost does not depend on the size of the catalogs.
pub(super) async fn catalogs(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let states = call.app.catalogs.all().await?;
    let catalogs: Vec<Value> = states.iter().map(catalog).collect();
    Ok(Representation::document(line(&json!({"catalogs": catalogs}))))
}

pub(super) async fn packages(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let packages: Vec<Value> = snapshot.packages.iter().map(package).collect();
    let list = json!({"contentHash": state.current().content_hash, "packages": packages});
    Ok(Representation::document(line(&list)).dated(&call.app.head(&state)))
}

fn catalog(state: &PublishedState) -> Value {
    let current = state.current();
    json!({
        "name": state.name(),
        "contentHash": current.content_hash,
        "serial": current.serial,
        "publishedAt": humantime::format_rfc3339_seconds(current.published_at).to_string(),
        "source": {"ref": shown(&current.source.reference), "digest": current.source.revision},
        "packages": current.packages,
        "metas": current.metas,
        "sizes": {
            "identity": current.size,
            "gzip": current.all.gzip.digest.size,
            "zstd": current.all.zstd.digest.size,
        },
    })
}

/// Returns a source without the folders in which it lies on the server.
fn shown(reference: &str) -> Cow<'_, str> {
    match reference.split_once(':') {
        Some((scheme @ ("dir" | "oci"), path)) => {
            let name = path.rsplit('/').next().unwrap_or_default();
            format!("{scheme}:{name}").into()
        }
        _ => reference.into(),
    }
}

fn package(shard: &ShardRef) -> Value {
    let object = shard.stored.with_kind(Kind::Package);
    json!({
        "name": shard.name,
        "sha256": shard.lines.sha256,
        "size": shard.lines.size,
        "metas": shard.metas,
        "object": {"key": object.key().to_string(), "size": object.digest.size},
    })
}

/// Returns a document as one line of text.
pub(super) fn line(document: &Value) -> Bytes {
    format!("{document}\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_shown_without_folders_of_the_server() {
        for (reference, expected) in [
            ("dir:/home/ops/configs", "dir:configs"),
            ("dir:configs", "dir:configs"),
            ("oci:/srv/images/catalog:v1", "oci:catalog:v1"),
            ("quay.io/a/b:v1", "quay.io/a/b:v1"),
            (
                "https://a.example/x/c.tar.gz#configs",
                "https://a.example/x/c.tar.gz#configs",
            ),
        ] {
            assert_eq!(shown(reference), expected);
        }
    }
}
