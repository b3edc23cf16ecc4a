# Compositions in the hands of others: their images are read and pushed with skopeo and crane, one of them is copied, and what selections
# take of whole catalogs is compared with oc-mirror's table, and with its own filter. tests/e2e/composed.rs has how they follow their
# inputs.
# shellcheck shell=bash

STORE=$WORK/store
COPY=$WORK/copy

# A catalog and two compositions of it, one of which is made of the other.
publish_chain() {
  local packages
  mapfile -t packages < <(cd "$SERIES/000/configs" && printf '%s\n' */ | head -3 | tr -d /)
  cat >"$WORK/catalogs.yaml" <<YAML
catalogs:
- {name: up, source: "dir:$SERIES/000/configs"}
- name: whole
  compose: {inputs: [{catalog: up, select: {full: true, packages: [$(printf '{name: %s}, ' "${packages[@]}")]}}]}
- name: heads
  compose: {inputs: [{catalog: whole, select: {packages: [{name: ${packages[0]}}]}}]}
YAML
  is "a chain of compositions is published" \
    "$("$CATALOG_MIRROR" poll --json --store "$STORE" --config "$WORK/catalogs.yaml" 2>"$WORK/poll.err" | jq -r '.[] | "\(.catalog) \(.outcome)"')" \
    $'heads published\nup published\nwhole published'
  same_lines "it takes what is selected" "$(shards "$STORE" whole | cut -d' ' -f1)" "$(printf '%s\n' "${packages[@]}")"
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
    python3 "$LIB/selections.py" "$CATALOG_MIRROR" "$WORK/promised" "$catalog" "$WORK/$catalog.lines" "$most" "${FILTER[@]}"
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
# Building the filter takes a minute.
FILTER=()
if ! $SHORT; then
  need_filter
  FILTER=(oc-mirror-filter)
fi
publish_chain
serve "$STORE"
succeeds "a copy of one composition is made" "$CATALOG_MIRROR" sync "$URL" "$COPY" whole
is "it has the same content" "$(content_hash "$COPY" whole)" "$(content_hash "$STORE" whole)"
all_promised_selections
start_plain_registry
pushed_image
succeeds "verify finds nothing wrong in the store" "$CATALOG_MIRROR" verify --store "$STORE"
succeeds "verify finds nothing wrong in the copy" "$CATALOG_MIRROR" verify --store "$COPY"
