# Every update of the series, pushed as an image under one tag, polled and read back: what is served is what was pushed,
# and what is written is what changed.
# shellcheck shell=bash

STORE=$WORK/store
SOURCE=$REGISTRY/ns/updates:latest
FILES=$WORK/files
mkdir -p "$STORE" "$FILES"
serve "$STORE"

one_step() {
  local step=$1 name before shards_before hash
  name=$(printf 'step %03d' "$step")
  before=$(listing "$STORE")
  shards_before=$( ((step == 0)) || shards "$STORE" up)
  hash=$( ((step == 0)) || content_hash "$STORE" up)
  lay_over "$step" "$FILES"
  copy_image "oci:$LAYOUT:$(printf 'step-%03d' "$step")" "docker://$SOURCE"

  is "$name is published" "$(outcome "$STORE" "up=$SOURCE")" "published 10"
  served_as_pushed "$name"
  written_as_changed "$name" "$step" "$before" "$shards_before"
  packages_read_back "$name" "$step"
  if ((step > 0)); then previous_stays "$name" "$step" "$hash" "$shards_before"; fi
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

# An intent for each content that the history before had and this one has not, which keeps it from being collected at once.
forgotten() {
  local last=$WORK/last-current.json now=$STORE/catalogs/up/current.json
  [[ ! -f $last ]] || jq -rn --slurpfile last "$last" --slurpfile now "$now" '
    def contents: [.contentHash, .previous[].contentHash];
    ($last[0] | contents) - ($now[0] | contents) | unique[] | "catalogs/up/intents/\(.).json"'
  cp "$now" "$last"
}

# Exactly the shards of changed packages, the forms of the whole, index, snapshot and pointers, and the whole image: its
# documents name each other by hashes, down to the layer.
written_as_changed() {
  local keys hash expected new
  hash=$(content_hash "$STORE" up)
  new=$(comm -13 <(printf '%s\n' "$4") <(shards "$STORE" up))
  if (($2 > 0)); then
    same_lines "$1 gives new shards to the changed packages only" "$(cut -d' ' -f1 <<<"$new")" "$(changed "$2")"
  fi
  keys=$(written "$3" "$(listing "$STORE")")
  expected=$(
    printf 'catalogs/up/%s\n' current.json status.json
    # A state that was published before, such as when a package came and went, is all there already.
    grep -q "^catalogs/up/$hash/" <<<"$3" || {
      printf "catalogs/up/$hash/%s\n" snapshot.json index.json.zst all.json.{zst,gz}
      snapshot "$STORE" up | blobs
    }
    [[ -z $new ]] || sed 's|.* \(.*\)|packages/sha256/\1.json.zst|' <<<"$new"
    (($2 > 0)) || echo catalogs.json
    forgotten
  )
  # Which layers hold no FBC is remembered for later polls; the first one may find something to remember.
  same_lines "$1 writes what changed and nothing else" "$(grep -v 'layers.json$' <<<"$keys")" "$expected"
}

packages_read_back() {
  local package served='' expected='' known
  known=$(shards "$STORE" up)
  for package in $(changed "$2" | grep . || cut -d' ' -f1 <<<"$known"); do
    served+="$package $(fetch zstd "$URL/catalogs/up/packages/$package" | sha256)"$'\n'
    expected+="$(grep "^$package " <<<"$known")"$'\n'
  done
  if (($2 == 0)); then expected=$known$'\n'; fi
  [[ -z $served ]] || is "$1 serves each of its packages by the snapshot's hash" "$served" "$expected"
}

# Readers of the state before find all of it, also what is gone from the published one.
previous_stays() {
  local package shard key
  for package in $(removed "$2"); do
    shard=$(sed -n "s/^$package //p" <<<"$4")
    is "$1 removes $package" "$(status "$URL/catalogs/up/packages/$package")" 404
    is "$1 keeps the old shard of $package" \
      "$(curl -sSf "$URL/packages/sha256/$shard.json.zst" | zstd -qdc | sha256)" "$shard"
  done
  key=catalogs/up/$3
  is "$1 leaves the previous snapshot readable" \
    "$(curl -sSf "$URL/$key/snapshot.json" | jq -r .contentHash) $(curl -sSf "$URL/$key/all.json.zst" | zstd -qdc | sha256)" \
    "$3 $3"
}

for step in $(steps); do one_step "$step"; done
is "after $LAST_STEP updates the serial is $((LAST_STEP + 1))" "$(jq .serial "$STORE/catalogs/up/current.json")" $((LAST_STEP + 1))
succeeds "verify finds nothing wrong after $LAST_STEP updates" "$CATALOG_MIRROR" verify --store "$STORE"
