# Every update of the series goes through a chain: the catalog and two compositions of it. Only what is selected moves. One of them is
# copied at the end. The images of the compositions are read and pushed with skopeo and crane.
# shellcheck shell=bash

STORE=$WORK/store
COPY=$WORK/copy
FILES=$WORK/files
CONFIG=$WORK/catalogs.yaml
mkdir -p "$STORE" "$FILES"

# The packages that change most often, of those that are in every step.
select_packages() {
  local removed
  removed=$(for step in $(steps); do removed "$step"; done | sort -u)
  for step in $(steps); do ((step == 0)) || changed "$step"; done | sort | uniq -c | sort -rn | awk '{print $2}' |
    while read -r package; do
      [[ -d $SERIES/000/configs/$package ]] || continue
      grep -qx "$package" <<<"$removed" || echo "$package"
    done | head -4
}

write_config() {
  local whole
  mapfile -t whole < <(sed 's/.*/{name: &}/' "$WORK/selected")
  cat >"$CONFIG" <<YAML
catalogs:
- {name: up, source: "dir:$FILES"}
- name: whole
  compose: {inputs: [{catalog: up, select: {full: true, packages: [$(IFS=,; echo "${whole[*]}")]}}]}
- name: heads
  compose: {inputs: [{catalog: whole, select: {packages: [${whole[0]}]}}]}
YAML
}

poll_all() {
  "$CATALOG_MIRROR" poll --json --store "$STORE" --config "$CONFIG" 2>"$WORK/poll.err" | jq -r '.[] | "\(.catalog) \(.outcome)"'
}

one_step() {
  local step=$1 name selected before outcomes old
  name=$(printf 'step %03d' "$step")
  lay_over "$step" "$FILES"
  selected=$(changed "$step" | sort | comm -12 - "$WORK/selected")
  before=$(listing "$STORE")
  old=$( ((step == 0)) || shards "$STORE" whole)
  outcomes=$(poll_all)
  if ((step == 0)); then
    is "$name publishes the chain" "$outcomes" $'heads published\nup published\nwhole published'
    same_lines "$name takes what is selected" "$(shards "$STORE" whole | cut -d' ' -f1)" "$(cat "$WORK/selected")"
  elif [[ -z $selected ]]; then
    matches "$name leaves the composition" "$(grep whole <<<"$outcomes")" 'sourceDigestUpdated|unchanged'
    same_lines "$name writes only its pointer and status" \
      "$(written "$before" "$(listing "$STORE")" | grep -E '^catalogs/(whole|heads)/' | grep -v status.json)" \
      "$(grep -q 'whole sourceDigest' <<<"$outcomes" && echo catalogs/whole/current.json)"
  else
    same_lines "$name moves only selected packages" \
      "$(comm -13 <(printf '%s\n' "$old") <(shards "$STORE" whole) | cut -d' ' -f1)" "$selected"
  fi
  # The whole packages are the objects of the catalog itself.
  is "$name stores no whole package twice" \
    "$(comm -23 <(shard_keys "$STORE" whole) <(shard_keys "$STORE" up))" ''
}

# The pushed image is that of the mirror's own registry view.
pushed_image() {
  local target=$PLAIN_REGISTRY/team/catalog:v1 digest
  echo "inputs: [{catalog: whole}]" >"$WORK/compose.yaml"
  digest=$("$CATALOG_MIRROR" compose --store "$STORE" --plain-http "$PLAIN_REGISTRY" --image "$target" "$WORK/compose.yaml")
  is "crane sees the pushed digest" "$(crane digest --insecure "$target")" "$digest"
  is "it is the digest of the mirror's own view" "$(crane digest --insecure "$HOST/whole:latest")" "$digest"
  succeeds "crane validates the pushed image" crane validate --insecure --remote "$target"
  skopeo copy --quiet --src-tls-verify=false "docker://$target" "oci:$WORK/pulled:v1"
  is "skopeo pulls what was composed" \
    "$("$CATALOG_MIRROR" render "oci:$WORK/pulled:v1" | sha256)" "$(content_hash "$STORE" whole)"
  "$CATALOG_MIRROR" compose --store "$STORE" --image "oci:$WORK/written:v1" "$WORK/compose.yaml" >/dev/null
  is "skopeo reads the layout" \
    "$(skopeo inspect --raw "oci:$WORK/written:v1" | digest)" "$digest"
}

# Each row of oc-mirror's table, on the packages with the most channels and bundles.
promised_selections() {
  local catalog=$1 most=$2
  "$CATALOG_MIRROR" render "$3" >"$WORK/$catalog.lines"
  "$CATALOG_MIRROR" poll --store "$WORK/promised" --catalog "$catalog=dir:$3" >"$WORK/poll.out"
  succeeds "selections of $catalog take the promised bundles" \
    python3 "$LIB/selections.py" "$CATALOG_MIRROR" "$WORK/promised" "$catalog" "$WORK/$catalog.lines" "$most"
}

all_promised_selections() {
  local data catalog
  promised_selections demo 4 "$ROOT/tests/catalogs/v2"
  data=$(data_folder)
  if [[ -n $data ]]; then
    promised_selections v4.20 12 "$SERIES/000/configs"
    for catalog in $(real_catalogs); do
      unpack "$data/community-$catalog.tar.zst" "$WORK/real"
      promised_selections "$catalog" 6 "$(configs_folder "$WORK/real")"
      rm -r "$WORK/real"
    done
  fi
}

digest() { echo "sha256:$(sha256)"; }

need_crane
select_packages | sort >"$WORK/selected"
write_config
serve "$STORE"
for step in $(steps); do one_step "$step"; done
succeeds "a copy of one composition is made" "$CATALOG_MIRROR" sync "$URL" "$COPY" whole
is "it has the same content" "$(content_hash "$COPY" whole)" "$(content_hash "$STORE" whole)"
all_promised_selections
start_plain_registry
pushed_image
succeeds "verify finds nothing wrong in the store" "$CATALOG_MIRROR" verify --store "$STORE"
succeeds "verify finds nothing wrong in the copy" "$CATALOG_MIRROR" verify --store "$COPY"
