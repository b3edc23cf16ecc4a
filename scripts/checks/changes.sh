# What changed between any two states of the series, against jq over the lines of both; which images a catalog needs,
# against jq too, and in the hands of skopeo.
# shellcheck shell=bash

export LC_ALL=C
STORE=$WORK/store
STATES=$WORK/states
mkdir -p "$STORE" "$STATES"

# note STEP: what jq alone finds in the lines of a state, by `kind package name`: a package is all of its lines in their order.
note() {
  # shellcheck disable=SC2016
  jq -nR 'reduce inputs as $line ({}; ($line | fromjson) as $meta | $meta.name as $name |
      (if ($meta.package // "") != "" then $meta.package elif $meta.schema == "olm.package" then $name else "" end) as $package |
      if $package == "" then . else .["package \($package)"] += $line end |
      if $meta.schema == "olm.bundle" then .["bundle \($package) \($name)"] = $line
      elif $meta.schema == "olm.channel" then
        ([$meta.entries[] | (.replaces // empty), (.skips // [])[]] | map({key: ., value: true}) | from_entries) as $updated |
        .["channel \($package) \($name)"] = $line |
        .["heads \($package) \($name)"] = ([$meta.entries[].name | select($updated[.] | not)] | unique | join(","))
      else . end)' "$STATES/$1" >"$STATES/$1.json"
}

# by_jq OLD NEW: what came (+), went (-) or changed (~). Heads only of channels that both states have.
by_jq() {
  # shellcheck disable=SC2016
  jq -nr --slurpfile old "$STATES/$1.json" --slurpfile new "$STATES/$2.json" '$old[0] as $old | $new[0] as $new |
    ($old + $new | keys_unsorted[]) | select($old[.] != $new[.]) |
    if startswith("heads") then select($old[.] and $new[.]) | "\(.) \($old[.]) \($new[.])"
    elif $old[.] == null then "+ \(.)" elif $new[.] == null then "- \(.)" else "~ \(.)" end'
}

# listed DOCUMENT: the same of the document.
listed() {
  # shellcheck disable=SC2016
  jq -r 'def signs($kind): (.added[] | "+ \($kind) \(.name)"), (.removed[] | "- \($kind) \(.name)"), (.changed[] | "~ \($kind) \(.name)");
    .packages | signs("package"), (("bundle", "channel") as $kind | "\($kind)s" as $field |
      (.added[] | .name as $package | .[$field][] | "+ \($kind) \($package) \(.name)"),
      (.removed[] | .name as $package | .[$field][] | "- \($kind) \($package) \(.name)"),
      (.changed[] | .name as $package | .[$field] | signs("\($kind) \($package)"))),
    (.changed[] | .name as $package | .channels.changed[] | select(.heads) |
      "heads \($package) \(.name) \(.heads.from | join(",")) \(.heads.to | join(","))")' <<<"$1"
}

publish_step() {
  lay_over "$1" "$WORK/files"
  "$CATALOG_MIRROR" poll --store "$STORE" --catalog "up=dir:$WORK/files" >/dev/null
  curl -sSf "$URL/catalogs/up/api/v1/all" >"$STATES/$1"
  note "$1"
  HASHES[$1]=$(content_hash "$STORE" up)
}

one_step() {
  publish_step "$1"
  (($1 == 0)) || since "$(($1 - 1))" "$1"
}

# since OLD NEW: what the server says of the states from one of the 16 that are kept to the published one.
since() {
  same_lines "from step $1 to $2: packages, bundles, channels and heads" \
    "$(listed "$(curl -sSf "$URL/catalogs/up/changes?since=${HASHES[$1]}")")" "$(by_jq "$1" "$2")"
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

images_in_a_registry() {
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

HASHES=()
mkdir -p "$WORK/files"
serve "$STORE"
for step in $(steps); do one_step "$step"; done
for back in 16 15 8 5; do ((back > LAST_STEP)) || since $((LAST_STEP - back)) "$LAST_STEP"; done
same_lines "all images of the catalog, each once" "$("$CATALOG_MIRROR" images --store "$STORE" up)" \
  "$(jq -r 'select(.schema == "olm.bundle") | (.image // empty), (.relatedImages // [])[].image // empty | select(. != "")' "$STATES/$LAST_STEP" | sort -u)"
images_in_a_registry
