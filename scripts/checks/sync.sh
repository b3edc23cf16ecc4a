# A mirror behind nothing but nginx, copied after every update of the series; copies and imports that are killed; what
# it all moved, beside what full downloads would have moved.
# shellcheck shell=bash

FROM=$WORK/from
TO=$WORK/to
FILES=$WORK/files
mkdir -p "$FROM" "$FILES"

# sync FROM TO [OPTION...]: `outcome exit-code`; the whole report is in $WORK/report.
sync() {
  local code=0
  "$CATALOG_MIRROR" sync --json --detailed-exitcode "$@" >"$WORK/report" 2>"$WORK/sync.err" || code=$?
  printf '%s %s\n' "$(jq -r '.[0].outcome' "$WORK/report")" "$code"
}

# differs FROM TO: what of the published state of TO is not byte for byte that of FROM.
differs() {
  local key
  for key in catalogs.json catalogs/s/current.json $(snapshot_keys "$2"); do
    cmp -s "$1/$key" "$2/$key" || echo "$key"
  done
}

snapshot_keys() {
  current "$1" s | jq -r .snapshot.key
  snapshot "$1" s >"$WORK/snapshot.json"
  object_keys "$WORK/snapshot.json"
}

layer_bytes() {
  local digest
  digest=$(jq -r --arg tag "$1" '.manifests[] | select(.annotations["org.opencontainers.image.ref.name"] == $tag).digest' "$LAYOUT/index.json")
  jq '[.layers[].size] | add' "$LAYOUT/blobs/${digest/://}"
}

all_updates() {
  local step moved=0 objects=0 new=0 full=0 images=0 bad='' tag before
  for step in $(steps); do
    lay_over "$step" "$FILES"
    before=$(shards "$FROM" s 2>/dev/null || true)
    outcome "$FROM" "s=dir:$FILES" >/dev/null
    [[ $(sync "$MIRROR" "$TO") == "published 10" && -z $(differs "$FROM" "$TO") ]] || bad+=" $step"
    ((step > 0)) || { say "the first copy: $(jq -c '.[0] | {moved, rebuilt, fullBytes}' "$WORK/report")"; continue; }
    moved=$((moved + $(jq '.[0].moved.bytes' "$WORK/report")))
    objects=$((objects + $(jq '.[0].moved.objects' "$WORK/report")))
    new=$((new + $(comm -13 <(printf '%s\n' "$before") <(shards "$FROM" s) | wc -l)))
    full=$((full + $(jq '.[0].fullBytes' "$WORK/report")))
    tag=$(printf 'step-%03d' "$step")
    images=$((images + $(layer_bytes "$tag")))
  done
  is "a copy after each of $LAST_STEP updates is the original byte for byte" "$bad" ""
  say "$LAST_STEP updates: sync moved $moved bytes, all.json.gz would have been $full, the images' layers $images"
  is "copies move the shards that changed, a snapshot and a pointer each, and no more" "$((objects <= new + 2 * LAST_STEP))" 1
  # Of catalogs so small that their documents weigh more than their packages, nothing can be saved.
  ((full < 1000000)) || is "copies move less than a tenth of what full downloads would" "$((moved * 10 < full))" 1
  is "one more sync moves nothing new" "$(sync "$MIRROR" "$TO")" "unchanged 0"
  succeeds "verify finds nothing wrong in the copy" "$CATALOG_MIRROR" verify --store "$TO"
}

mirror_of_a_mirror() {
  local onward=$WORK/onward direct=$WORK/direct
  serve "$TO"
  is "a mirror of a mirror" "$(sync "$URL" "$onward")" "published 10"
  sync "$MIRROR" "$direct" >/dev/null
  is "has the same tree as a mirror of the original" \
    "$(diff -rq -x status.json -x .tmp "$onward" "$direct" | head -5)" ""
}

# killed NAME STORE COMMAND...: on an empty store, and on what a kill left.
KILLS=$($SHORT && echo 20 || echo 50)
killed() {
  FRESH=yes kills "$@"
  is "and $1 finishes the job" "$(differs "$FROM" "$2")" ""
}

carried() {
  local high=$WORK/high archive=$WORK/archive.tar
  rm -rf "$high"
  succeeds "export writes an archive" "$CATALOG_MIRROR" export --store "$FROM" --to "$archive"
  say "a full archive has $(stat -c %s "$archive") bytes"
  succeeds "any tar reads it" tar -tf "$archive"
  killed import "$high" "$CATALOG_MIRROR" import --store "$high" "$archive"
  "$CATALOG_MIRROR" receipt --store "$high" >"$WORK/receipt"
  "$CATALOG_MIRROR" export --store "$FROM" --to "$archive" --receipt "$WORK/receipt" >/dev/null
  is "since a receipt of the same state there is nothing but documents" \
    "$(tar -tf "$archive" | grep -c packages/ || true)" 0
}

start_nginx "$FROM"
MIRROR=$NGINX
all_updates
mirror_of_a_mirror
killed sync "$WORK/killed" "$CATALOG_MIRROR" sync "$MIRROR" "$WORK/killed"
carried
