# nginx over the store's folder is a mirror: the name of each object that the published snapshot names is the sha256 of the bytes
# that nginx sends.
# shellcheck shell=bash

STORE=$WORK/store

# stored KEY: the sha256 of an object as the static server sends it.
stored() { curl -sSf "$MIRROR/$1" | sha256; }

# A client knows one URL. It follows keys from the pointer to everything else.
follow() {
  local pointer=$WORK/current.json snapshot=$WORK/snapshot.json key bad=0 count=0 form sum
  curl -sSf "$MIRROR/catalogs/s/current.json" >"$pointer"
  key=$(jq -r .snapshot.key "$pointer")
  curl -sSf "$MIRROR/$key" | zstd -qdc >"$snapshot"
  is "the snapshot's key is the hash of its bytes" "$key" "snapshots/sha256/$(stored "$key").json.zst"
  while read -r key; do
    count=$((count + 1))
    sum=$(basename "$key")
    [[ $(stored "$key") == "${sum%%.*}" ]] || { bad=$((bad + 1)) && say "$key has other bytes"; }
  done < <(object_keys "$snapshot")
  is "the names of all $count objects are the hashes of their bytes" "$bad" 0
  for form in zstd gzip identity; do
    key=$(jq -r ".all.$form.key" "$pointer")
    is "the pointer leads to all.json, $form" "$(curl -sSf "$MIRROR/$key" | plain "$form" | sha256)" "$(jq -r .contentHash "$pointer")"
  done
  is "the image has a layer, four manifests, four configurations and an index" "$(blobs <"$snapshot" | wc -l)" 10
  is "the pointer leads to the image's index" "$(jq -r .image.key "$pointer")" "blobs/sha256/$(jq -r .image.index.sha256 "$snapshot")"
}

# plain FORM: decodes standard input.
plain() {
  case $1 in
    zstd) zstd -qdc ;;
    gzip) gzip -dc ;;
    identity) cat ;;
  esac
}

is "a catalog with a plain all.json is published" "$(outcome "$STORE" "s=oci:$LAYOUT:$LAST_TAG" --identity)" "published 10"
start_nginx "$STORE"
MIRROR=$NGINX
is "catalogs.json names the catalog" "$(curl -sSf "$MIRROR/catalogs.json" | jq -c '[.. | strings]')" '["s"]'
follow
