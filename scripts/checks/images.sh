# Which images a catalog needs: against jq over its lines, and in the hands of skopeo and of a registry. The tests of shared/operators/olm and
# shared/serving/api have what changed between two states.
# shellcheck shell=bash

export LC_ALL=C

# lists_all FOLDER: each image of the bundles once.
lists_all() {
  local store=$WORK/all
  "$CATALOG_MIRROR" poll --store "$store" --catalog "up=dir:$1" >/dev/null
  same_lines "all images of the catalog, each once" "$("$CATALOG_MIRROR" images --store "$store" up)" "$("$CATALOG_MIRROR" render "$1" |
    jq -r 'select(.schema == "olm.bundle") | (.image // empty), (.relatedImages // [])[].image // empty | select(. != "")' | sort -u)"
}

# A catalog whose operator is in the registry, and one whose image is gone.
operator_image() {
  mkdir -p "$WORK/layer-$1"
  echo "$1" >"$WORK/layer-$1/image"
  umoci new --image "$WORK/operators:$1"
  add_layer "$WORK/operators:$1" "$WORK/layer-$1"
  copy_image "oci:$WORK/operators:$1" "docker://$REGISTRY/operators/$1:v1"
  registry_digest "$REGISTRY/operators/$1:v1"
}

in_a_registry() {
  local small=$WORK/small store=$WORK/small-store bundle
  local access=(--auth-file "$AUTH_FILE" --ca-file "$REGISTRY_CA")
  umoci init --layout "$WORK/operators"
  bundle=$(operator_image bundle)
  operator_image manager >/dev/null
  mkdir -p "$small"
  json_package small "$REGISTRY/operators/bundle@$bundle" "$REGISTRY/operators/manager:v1" >"$small/catalog.json"
  "$CATALOG_MIRROR" poll --store "$store" --catalog "small=dir:$small" >/dev/null || true
  "$CATALOG_MIRROR" images --store "$store" --format skopeo-sync >"$WORK/sync.yaml"
  same_lines "skopeo reads the file" "$(skopeo_sync "$WORK/tried" --dry-run | grep -o "$REGISTRY/operators/[a-z]*[:@][a-z0-9:]*" | sort -u)" \
    "$(printf '%s\n' "$REGISTRY/operators/bundle@$bundle" "$REGISTRY/operators/manager:v1")"
  succeeds "skopeo copies what the file names" skopeo_sync "$WORK/synced"
  is "both images are there" "$(code_of "$CATALOG_MIRROR" images --store "$store" --check "${access[@]}")" 0
  registry_curl -o /dev/null -X DELETE "https://$REGISTRY/v2/operators/bundle/manifests/$bundle"
  is "one that was deleted is missed" "$(code_of "$CATALOG_MIRROR" images --store "$store" --check "${access[@]}")" 1
  is "without a password nothing is claimed" \
    "$("$CATALOG_MIRROR" images --store "$store" --check --format json --auth-file <(echo '{}') --ca-file "$REGISTRY_CA" 2>/dev/null | jq -c '[.images[].exists]')" '[null,null]'
}

# skopeo_sync FOLDER [OPTION...]: even a dry run makes the folders. Whom to trust the file itself would have to say.
skopeo_sync() {
  SSL_CERT_FILE=$REGISTRY_CA skopeo sync --src yaml --dest dir --scoped --src-authfile "$AUTH_FILE" "${@:2}" "$WORK/sync.yaml" "$1" 2>&1
}

lists_all "$SERIES/000/configs"
in_a_registry
