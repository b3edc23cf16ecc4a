# nginx over the store's folder is a mirror: every key of the published snapshot, fetched from it, has the hash it should.
# shellcheck shell=bash

STORE=$WORK/store

# stored KEY: the sha256 of an object as the static server sends it.
stored() { curl -sSf "$MIRROR/$1" | sha256; }

# A client knows one URL: from the pointer it follows hashes to everything else.
follow() {
  local key snapshot hash prefix bad=0 count=0 package plain packed
  key=$(curl -sSf "$MIRROR/catalogs/s/current.json" | jq -r .snapshot.key)
  hash=$(curl -sSf "$MIRROR/catalogs/s/current.json" | jq -r .contentHash)
  is "current.json gives the snapshot's hash" "$(stored "$key")" \
    "$(curl -sSf "$MIRROR/catalogs/s/current.json" | jq -r .snapshot.sha256)"
  snapshot=$(curl -sSf "$MIRROR/$key")
  prefix=$(dirname "$key")
  is "all.json.zst is as the snapshot says" "$(stored "$prefix/all.json.zst")" "$(jq -r .all.zstd.sha256 <<<"$snapshot")"
  is "all.json.gz is as the snapshot says" "$(stored "$prefix/all.json.gz")" "$(jq -r .all.gzip.sha256 <<<"$snapshot")"
  is "all.json is as the snapshot says" "$(stored "$prefix/all.json")" "$(jq -r .all.identity.sha256 <<<"$snapshot")"
  is "all.json has the content hash" "$(stored "$prefix/all.json")" "$hash"
  is "index.json.zst is as the snapshot says" "$(stored "$prefix/index.json.zst")" "$(jq -r .index.sha256 <<<"$snapshot")"
  while read -r package plain packed; do
    count=$((count + 1))
    curl -sSf "$MIRROR/packages/sha256/$plain.json.zst" >"$WORK/shard" || true
    [[ $(sha256 "$WORK/shard") == "$packed" && $(zstd -qdc "$WORK/shard" | sha256) == "$plain" ]] || {
      bad=$((bad + 1))
      say "$package is not as the snapshot says"
    }
  done < <(jq -r '.packages[] | "\(.name) \(.sha256) \(.stored.sha256)"' <<<"$snapshot")
  is "all $count shards are as the snapshot says" "$bad" 0
  same_lines "the layer, four manifests, four configurations and the index of the image have their hashes" \
    "$(for key in $(blobs <<<"$snapshot"); do stored "$key"; done)" "$(blobs <<<"$snapshot" | sed 's|.*/||')"
  is "which are ten" "$(blobs <<<"$snapshot" | wc -l)" 10
}

is "a catalog with a plain all.json is published" "$(outcome "$STORE" "s=oci:$LAYOUT:$LAST_TAG" --identity)" "published 10"
start_nginx "$STORE"
MIRROR=$NGINX
is "catalogs.json names the catalog" "$(curl -sSf "$MIRROR/catalogs.json" | jq -c '[.. | strings]')" '["s"]'
follow
