# What changed between any two states of the series, against jq over the lines of both; which images a catalog needs,
# against jq too, and in the hands of skopeo.
# shellcheck shell=bash

export LC_ALL=C
STORE=$WORK/store
STATES=$WORK/states
mkdir -p "$STORE" "$STATES"

# note STEP: what the lines of a state say, computed by jq alone: `schema package name hash` of every meta, and all heads.
note() {
  # shellcheck disable=SC2016
  local package='(if (.package // "") != "" then .package elif .schema == "olm.package" then .name else "" end) as $package |'
  paste <(jq -r "$package"' [.schema, $package, .name // ""] | @tsv' "$STATES/$1") \
    <(python3 -c 'import hashlib, sys
for line in sys.stdin.buffer: print(hashlib.sha256(line).hexdigest())' <"$STATES/$1") >"$STATES/$1.metas"
  # shellcheck disable=SC2016
  jq -r "$package"' select(.schema == "olm.channel") |
    ([.entries[] | (.replaces // empty), (.skips // [])[]] | map({key: ., value: true}) | from_entries) as $updated |
    "\($package)/\(.name) \([.entries[].name | select($updated[.] | not)] | unique | join(","))"' "$STATES/$1" |
    sort >"$STATES/$1.heads"
}

# of SCHEMA STEP: `package name<TAB>hash` of all metas of a schema.
of() { awk -F '\t' -v schema="$1" '$1 == schema {print $2 " " $3 "\t" $4}' "$STATES/$2.metas" | sort; }

# differing_by_jq SCHEMA OLD NEW: what came (+), went (-) or changed (~).
differing_by_jq() { differing_lines <(of "$1" "$2") <(of "$1" "$3"); }
differing_lines() {
  join -t "$(printf '\t')" -a 1 -a 2 -e none -o 0,1.2,2.2 "$1" "$2" |
    awk -F '\t' '$2 == "none" {print "+", $1; next} $3 == "none" {print "-", $1; next} $2 != $3 {print "~", $1}'
}

# A package is all of its lines in their order.
packages_by_jq() { differing_lines <(packages_of "$1") <(packages_of "$2"); }
packages_of() {
  awk -F '\t' '$2 != "" {lines[$2] = lines[$2] $4} END {for (name in lines) print name "\t" lines[name]}' "$STATES/$1.metas" | sort
}

# listed DOCUMENT KIND: the same from the document.
listed() {
  # shellcheck disable=SC2016
  jq -r --arg kind "$2" '.packages |
    (.added[] | .name as $package | .[$kind][] | "+ \($package) \(.name)"),
    (.removed[] | .name as $package | .[$kind][] | "- \($package) \(.name)"),
    (.changed[] | .name as $package | .[$kind] |
      (.added[] | "+ \($package) \(.name)"), (.removed[] | "- \($package) \(.name)"), (.changed[] | "~ \($package) \(.name)"))
    ' <<<"$1"
}

# The heads of channels that both states have.
heads_by_jq() { join "$STATES/$1.heads" "$STATES/$2.heads" | awk '$2 != $3 {print $1, $2, $3}'; }
heads_listed() {
  # shellcheck disable=SC2016
  jq -r '.packages.changed[] | .name as $package | .channels.changed[] | select(.heads) |
    "\($package)/\(.name) \(.heads.from | join(",")) \(.heads.to | join(","))"' <<<"$1"
}

# compared NAME DOCUMENT OLD NEW: everything that the document says is what jq finds.
compared() {
  local name=$1 document=$2 old=$3 new=$4 packages
  packages=$(jq -r '.packages | (.added[] | "+ \(.name)"), (.removed[] | "- \(.name)"), (.changed[] | "~ \(.name)")' <<<"$document")
  same_lines "$name: packages" "$packages" "$(packages_by_jq "$old" "$new")"
  same_lines "$name: bundles" "$(listed "$document" bundles)" "$(differing_by_jq olm.bundle "$old" "$new")"
  same_lines "$name: channels" "$(listed "$document" channels)" "$(differing_by_jq olm.channel "$old" "$new")"
  same_lines "$name: heads" "$(heads_listed "$document")" "$(heads_by_jq "$old" "$new")"
}

publish_step() {
  lay_over "$1" "$WORK/files"
  "$CATALOG_MIRROR" poll --store "$STORE" --catalog "up=dir:$WORK/files" >/dev/null
  curl -sSf "$URL/catalogs/up/api/v1/all" >"$STATES/$1"
  note "$1"
  HASHES[$1]=$(content_hash "$STORE" up)
}

# changed_packages DOCUMENT; expected_packages STEP: the packages of the series' own account of the step.
changed_packages() { jq -r '.packages | .added[].name, .removed[].name, .changed[].name' <<<"$1"; }
expected_packages() { { changed "$1"; removed "$1"; } | sort -u; }

one_step() {
  local step=$1 document
  publish_step "$step"
  ((step > 0)) || return 0
  document=$(curl -sSf "$URL/catalogs/up/changes?since=${HASHES[step - 1]}")
  compared "step $step" "$document" $((step - 1)) "$step"
  same_lines "step $step: the packages are those of steps.json" "$(changed_packages "$document")" "$(expected_packages "$step")"
  is "step $step: the command line says the same" \
    "$("$CATALOG_MIRROR" diff --json --store "$STORE" up "${HASHES[step - 1]}" current | jq -cS .)" "$(jq -cS . <<<"$document")"
}

# jump FROM: from an older state, one of the 16 that are kept, to the last one.
jump() {
  local document
  document=$(curl -sSf "$URL/catalogs/up/changes?since=${HASHES[$1]}")
  compared "from $1 to $LAST_STEP" "$document" "$1" "$LAST_STEP"
}

# What jq finds in the lines of the last step.
images_by_jq() { jq -r 'select(.schema == "olm.bundle") | (.image // empty), (.relatedImages // [])[].image // empty | select(. != "")' "$STATES/$LAST_STEP" | sort -u; }

images_of_the_series() {
  same_lines "all images of the catalog" "$("$CATALOG_MIRROR" images --store "$STORE" up)" "$(images_by_jq)"
  is "each of them once" "$("$CATALOG_MIRROR" images --store "$STORE" up | sort | uniq -d)" ""
}

# A catalog whose operator is in the registry, and one whose image is gone.
operator_image() {
  echo "$1" >"$WORK/image-$1"
  mkdir -p "$WORK/layer-$1"
  cp "$WORK/image-$1" "$WORK/layer-$1"
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
for back in 16 15 8 5; do ((back > LAST_STEP)) || jump $((LAST_STEP - back)); done
images_of_the_series
images_in_a_registry
