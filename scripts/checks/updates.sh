# Every update of the series is pushed as an image under one tag, polled and read back: the mirror serves what was pushed and
# writes what changed. Other programs decode each object of each state: gunzip, Python, zstd and umoci. A copy follows each update.
# shellcheck shell=bash

STORE=$WORK/store
COPY=$WORK/copy
SOURCE=$REGISTRY/ns/updates:latest
FILES=$WORK/files
mkdir -p "$STORE" "$FILES"
serve "$STORE"

one_step() {
  local step=$1 name before shards_before='' keys_before pointer_before new
  name=$(printf 'step %03d' "$step")
  before=$(listing "$STORE")
  if ((step > 0)); then shards_before=$(shards "$STORE" up) keys_before=$(shard_keys "$STORE" up) pointer_before=$(current "$STORE" up); fi
  lay_over "$step" "$FILES"
  copy_image "oci:$LAYOUT:$(printf 'step-%03d' "$step")" "docker://$SOURCE"

  is "$name is published" "$(outcome "$STORE" "up=$SOURCE")" "published 10"
  new=$(comm -13 <(printf '%s\n' "$shards_before") <(shards "$STORE" up))
  served_as_pushed "$name"
  decoded_elsewhere "$name" "$STORE"
  copied "$name"
  written_as_changed "$name" "$step" "$before" "$new"
  [[ -z $new ]] || is "$name serves each of these packages by the snapshot's hash" \
    "$(while read -r package _; do echo "$package $(fetch zstd "$URL/catalogs/up/packages/$package" | sha256)"; done <<<"$new")" "$new"
  if ((step > 0)); then previous_stays "$name" "$step" "$pointer_before" "$shards_before" "$keys_before"; fi
}

# The whole catalog, in three codings, is what the folder of the same files gives, and its hash is the content hash.
served_as_pushed() {
  local hash coding sums=()
  hash=$("$CATALOG_MIRROR" render "$FILES" | sha256)
  for coding in identity gzip zstd; do
    sums+=("$(fetch "$coding" "$URL/catalogs/up/api/v1/all" | sha256)")
  done
  is "$1 is served whole: content-hash, identity, gzip, zstd" \
    "$(curl -sSf "$URL/catalogs/up/content-hash") ${sums[*]}" "$hash $hash $hash $hash"
}

# decoded_elsewhere NAME STORE: every object of the state, as it is stored.
decoded_elsewhere() {
  succeeds "$1 is decoded by gunzip, Python, zstd and umoci" python3 -B "$LIB/decoded.py" "$2" up "$WORK/unpacked"
}

# A copy makes the whole catalog from its shards and from its own state before.
copied() {
  succeeds "$1 is copied" "$CATALOG_MIRROR" sync "$STORE" "$COPY"
  is "$1 has the same state in the copy" "$(current "$COPY" up)" "$(current "$STORE" up)"
  decoded_elsewhere "$1 in the copy" "$COPY"
}

# Exactly the shards of changed packages, the encodings of the whole, the index, the snapshot, the pointers and the image, whose
# documents name each other by hash, down to the layer. An object of an earlier state is there already and is not written.
written_as_changed() {
  local keys expected
  (($2 == 0)) || same_lines "$1 gives new shards to the changed packages only" "$(cut -d' ' -f1 <<<"$4")" "$(changed "$2")"
  keys=$(written "$3" "$(listing "$STORE")")
  expected=$(
    printf 'catalogs/up/%s\n' current.json status.json
    object_keys "$STORE" up | sort -u | comm -23 - <(cut -d' ' -f1 <<<"$3" | sort)
    (($2 > 0)) || echo catalogs.json
  )
  same_lines "$1 writes what changed and nothing else" "$keys" "$expected"
}

# A reader of the state before still finds all of it, also the packages that the published state does not have.
previous_stays() {
  local package sum key hash
  for package in $(removed "$2"); do
    sum=$(sed -n "s/^$package //p" <<<"$4")
    key=$(sed -n "s/^$package //p" <<<"$5")
    is "$1 removes $package" "$(status "$URL/catalogs/up/packages/$package")" 404
    is "$1 keeps the old shard of $package" "$(curl -sSf "$URL/$key" | zstd -qdc | sha256)" "$sum"
  done
  hash=$(jq -r .contentHash <<<"$3")
  is "$1 leaves the previous snapshot readable" \
    "$(curl -sSf "$URL/$(jq -r .snapshot.key <<<"$3")" | zstd -qdc | jq -r .contentHash) \
$(curl -sSf "$URL/$(jq -r .all.zstd.key <<<"$3")" | zstd -qdc | sha256)" "$hash $hash"
}

for step in $(steps); do one_step "$step"; done
is "after $LAST_STEP updates the serial is $((LAST_STEP + 1))" "$(jq .serial "$STORE/catalogs/up/current.json")" $((LAST_STEP + 1))
succeeds "verify finds nothing wrong after $LAST_STEP updates" "$CATALOG_MIRROR" verify --store "$STORE"
