# A mirror behind nothing but nginx, copied after every update of the series; copies and imports that are killed; what
# it all moved, beside what full downloads would have moved. tests/e2e has a mirror of a mirror, and archives of changes.
# shellcheck shell=bash

FROM=$WORK/from
TO=$WORK/to
FILES=$WORK/files
mkdir -p "$FROM" "$FILES"

# sync FROM TO [OPTION...]
sync() { outcome_of "$CATALOG_MIRROR" sync "$@"; }

# differs FROM TO: what of the published state of TO is not byte for byte that of FROM. Of catalogs.json the names count: its serial counts
# the writes, and a run that was killed between the name and the pointer has written the name once more.
differs() {
  local key
  for key in catalogs/s/current.json $(object_keys "$2" s); do
    cmp -s "$1/$key" "$2/$key" || echo "$key"
  done
  [[ $(names "$1") == "$(names "$2")" ]] || echo catalogs.json
}

# names STORE: those of its catalogs.
names() { jq -c .catalogs "$1/catalogs.json"; }

# misnamed STORE: the objects whose name is not the sha256 of their bytes.
misnamed() {
  (cd "$1" && find . -path '*/sha256/*' -type f | sed -E 's|.*/([0-9a-f]{64}).*|\1  &|' | sha256sum --check --quiet 2>&1)
}

all_updates() {
  local step moved=0 objects=0 new=0 full=0 bad='' before
  for step in $(steps); do
    lay_over "$step" "$FILES"
    before=$(shards "$FROM" s 2>/dev/null || true)
    outcome "$FROM" "s=dir:$FILES" >/dev/null
    [[ $(sync "$MIRROR" "$TO") == "published 10" && -z $(differs "$FROM" "$TO") ]] || bad+=" $step"
    ((step > 0)) || continue
    moved=$((moved + $(jq '.[0].moved.bytes' "$WORK/report")))
    objects=$((objects + $(jq '.[0].moved.objects' "$WORK/report")))
    new=$((new + $(comm -13 <(printf '%s\n' "$before") <(shards "$FROM" s) | wc -l)))
    full=$((full + $(jq '.[0].fullBytes' "$WORK/report")))
  done
  is "a copy after each of $LAST_STEP updates is the original byte for byte" "$bad" ""
  say "$LAST_STEP updates: sync moved $moved bytes, all.json.gz would have been $full"
  is "copies move the shards that changed, a snapshot, its days and a pointer each, and no more" "$((objects <= new + 3 * LAST_STEP))" 1
  # Of catalogs so small that their documents weigh more than their packages, nothing can be saved.
  ((full < 1000000)) || is "copies move less than a tenth of what full downloads would" "$((moved * 10 < full))" 1
  is "one more sync moves nothing new" "$(sync "$MIRROR" "$TO")" "unchanged 0"
  succeeds "verify finds nothing wrong in the copy" "$CATALOG_MIRROR" verify --store "$TO"
  is "each object has the name of its bytes" "$(misnamed "$TO")" ""
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
  succeeds "any tar reads it" tar -tf "${archive%.tar}.001.tar"
  killed import "$high" "$CATALOG_MIRROR" import --store "$high" "$archive"
}

start_nginx "$FROM"
MIRROR=$NGINX
all_updates
killed sync "$WORK/killed" "$CATALOG_MIRROR" sync "$MIRROR" "$WORK/killed"
carried
