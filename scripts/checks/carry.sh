# `carry out`, `in` and `across` with two docker-registries on TLS with a login, and the real skopeo: every image of a catalog, with
# all its platforms and its signatures, has the same digest on the other side; kill -9 at any moment and a failed image are mended by
# the next run, which moves nothing that is there. Digests are those that the check itself has pushed, asked for with curl and skopeo.
# shellcheck shell=bash

LOW=$REGISTRY
DISK=$WORK/disk HIGH_STORE=$WORK/high-store MANIFESTS_OUT=$WORK/manifests
# `name digest` of each image and of each signature, as pushed.
PUSHED=$WORK/pushed
: >"$PUSHED"

# raw HOST NAME DIGEST: sha256 of the manifest that a registry serves.
raw() {
  registry_curl -f -H "Accept: $INDEX, $MANIFEST, application/vnd.docker.distribution.manifest.v2+json" "https://$1/v2/$2/manifests/$3" | sha256 -
}

# push NAME TEXT [OPTION...]: an image of one layer with the text; its digest is printed.
push() {
  local layout=$WORK/made tree=$WORK/made-tree digest
  rm -rf "$layout" "$tree"
  new_image "$layout:v1"
  mkdir -p "$tree/bin"
  { echo "$2"; head -c 200000 /dev/urandom; } >"$tree/bin/program"
  add_layer "$layout:v1" "$tree"
  copy_image "oci:$layout:v1" "docker://$LOW/$1:v1" "${@:3}"
  digest=sha256:$(raw "$LOW" "$1" v1)
  echo "$1 $digest" >>"$PUSHED"
  echo "$digest"
}

# Three packages among those of a real catalog, two of them with operators of one name in repositories of two owners.
make_images() {
  local one two signature
  TEAM=$(push team/operator team)
  OTHER=$(push other/operator other --format v2s2)
  BUNDLE=$(push team/bundle bundle)
  MORE=$(push more/image more)
  one=$(push team/many amd64) two=$(push team/many arm64)
  MANY=$(push_index team/many v2 "$one" "$two")
  push deep/er/still/tagged tagged >/dev/null
  # cosign's tag, and the tag that lists the referrers of an image.
  signature=$(push team/operator signature)
  copy_image "docker://$LOW/team/operator@$signature" "docker://$LOW/team/operator:${TEAM/:/-}.sig"
  printf '%s\n' "team/many $MANY" "team/operator $(push_index team/operator "${TEAM/:/-}" "$signature")" >>"$PUSHED"
}

make_catalog() {
  local configs=$WORK/catalog
  mkdir -p "$configs"
  json_package one "$LOW/team/bundle@$BUNDLE" "$LOW/team/operator@$TEAM" "$LOW/team/many@$MANY" >"$configs/one.json"
  json_package two "$LOW/other/operator@$OTHER" "$LOW/deep/er/still/tagged:v1" "$LOW/more/image@$MORE" >"$configs/two.json"
  json_package three "$LOW/never/asked@$TEAM" >"$configs/three.json"
  rm -rf "$WORK/catalog-layout"
  # Over the first catalog of the series, the real one of v4.20.
  skopeo copy --quiet "oci:$LAYOUT:step-000" "oci:$WORK/catalog-layout:v1"
  mkdir -p "$WORK/catalog-tree" && cp -r "$configs" "$WORK/catalog-tree/configs"
  add_layer "$WORK/catalog-layout:v1" "$WORK/catalog-tree"
  copy_image "oci:$WORK/catalog-layout:v1" "docker://$LOW/redhat/redhat-operator-index:v4.20"
  cat >"$WORK/isc.yaml" <<YAML
apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  operators:
  - catalog: $LOW/redhat/redhat-operator-index:v4.20
    packages: [{name: one}, {name: two}]
YAML
}

# A skopeo that takes its time and counts its copies.
write_skopeo() {
  cat >"$WORK/skopeo" <<SH
#!/bin/sh
case " \$* " in *" copy "*) echo copy >>"$WORK/copies"; sleep 0.6 ;; esac
exec $(command -v skopeo) "\$@"
SH
  chmod +x "$WORK/skopeo"
}

carry() { "$CATALOG_MIRROR" carry "$@" --skopeo "$WORK/skopeo" --auth-file "$AUTH_FILE" --ca-file "$REGISTRY_CA"; }
out() { carry out "$WORK/isc.yaml" "$DISK" "$@"; }
in_() { carry in "$DISK" "$HIGH/olm" --store "$HIGH_STORE" --manifests "$MANIFESTS_OUT" "$@"; }
across() { carry across "$WORK/isc.yaml" "$HIGH/across" --store "$WORK/across" --manifests "$WORK/across-manifests"; }

# killed PATTERN COMMAND...: kill -9 when the command has printed a line, only of the program: skopeo lives on. Without a pattern it
# is killed while it composes or imports.
killed() {
  local pid code=0
  : >"$WORK/killed"
  "${@:2}" >"$WORK/killed" 2>&1 &
  pid=$!
  if [[ -z $1 ]]; then sleep 0.1; else wait_for 20 grep -q "$1" "$WORK/killed"; fi
  pkill -9 -P "$pid" -x catalog-mirror
  wait "$pid" || code=$?
  is "killed at '$1': ${*:2}" "$code" 137
}

copies() { wc -l <"$WORK/copies"; }

# missing: each pushed manifest that the target does not serve under its digest.
missing() {
  local name digest
  sort -u "$PUSHED" | while read -r name digest; do
    [[ sha256:$(raw "$HIGH" "olm/${LOW/:/-}/$name" "$digest" 2>/dev/null) == "$digest" ]] || echo "$name@$digest"
  done
}

# images FOLDER: its files. docker-registry leaves a part of an upload that was cancelled, such as that of the question whether it takes
# a push.
images() { listing "$1" | grep -v /_uploads/; }

# resumes FOLDER COMMAND PATTERN...: the command is killed at each pattern. The next run ends well, and one more copies nothing and
# leaves the folder as it is.
resumes() {
  local line before
  for line in "${@:3}"; do killed "$line" "$2"; done
  is "$2 ends well after that" "$(code_of "$2")" 0
  before=$(images "$1")
  : >"$WORK/copies"
  is "and has nothing to do the next time" "$(code_of "$2") $(copies)" "0 0"
  same_lines "and writes no image" "$(images "$1")" "$before"
}

check_out() {
  resumes "$DISK/images" out '' '^.1/' '^.3/' '^.5/'
  is "nothing is left of the runs that were killed" "$(find "$DISK" -name '*partial*')" ""
  is "there is one archive" "$(find "$DISK" -maxdepth 1 -name '*.tar' | wc -l)" 1
}

check_in() {
  resumes "$WORK/high/data" in_ '' '^.1/' '^.5/' '^8 images'
  is "every digest that was pushed to the one registry is in the other" "$(missing)" ""
  is "a tag too" "$(skopeo inspect --raw --authfile "$AUTH_FILE" --tls-verify=false "docker://$HIGH/olm/${LOW/:/-}/deep/er/still/tagged:v1" | sha256 -)" \
    "$(raw "$LOW" deep/er/still/tagged v1)"
  is "and the signature has the tag that cosign looks for" "$(raw "$HIGH" "olm/${LOW/:/-}/team/operator" "${TEAM/:/-}.sig")" "$(raw "$LOW" team/operator "${TEAM/:/-}.sig")"
}

check_lost() {
  local lost=$DISK/images/${LOW/:/=}/team/many@${MANY/:/=}
  mv "$lost" "$WORK/lost"
  is "in ends with 1 for an image that was lost on the way" "$(code_of carry in "$DISK" "$HIGH/lost" --store "$WORK/lost-store" --manifests "$WORK/lost-manifests")" 1
  matches "which is named" "$(cat "$WORK/said")" "failed: $LOW/team/many@$MANY: it is not in the folder"
  is "and the others are there" "$(raw "$HIGH" "lost/${LOW/:/-}/other/operator" "$OTHER")" "${OTHER#sha256:}"
  mv "$WORK/lost" "$lost"
}

# The catalog is what the mirror would serve.
check_catalog() {
  outcome "$WORK/read" "back=$HIGH/olm/redhat/redhat-operator-index:v4.20" >/dev/null
  is "the pushed catalog has the packages of the configuration" "$(shards "$WORK/read" back | cut -d' ' -f1 | paste -sd' ')" "one two"
  is "and the content hash of the mirror" "$(content_hash "$WORK/read" back)" "$(content_hash "$HIGH_STORE" redhat-operator-index-v4-20)"
}

# podman's and skopeo's library reads the settings of nodes: an image of the one registry is pulled from the other.
check_nodes() {
  local conf=$WORK/nodes.conf image=docker://$LOW/team/operator@$TEAM
  cp "$MANIFESTS_OUT/registries.conf" "$conf"
  sed "s|location = \"$LOW/|prefix = \"$LOW/|; /prefix = /a location = \"127.0.0.1:1/none\"" "$conf" >"$conf.cut"
  is "a node without its own way to the registry pulls by the mirror" \
    "$(CONTAINERS_REGISTRIES_CONF=$conf.cut skopeo inspect --raw --authfile "$AUTH_FILE" --tls-verify=false "$image" | sha256 -)" "${TEAM#sha256:}"
}

check_across() {
  resumes "$WORK/high/data" across '^.2/'
  is "and has the other operator" "$(raw "$HIGH" "across/${LOW/:/-}/other/operator" "$OTHER")" "${OTHER#sha256:}"
}

start_second_registry "$WORK/high"
HIGH=$SECOND_REGISTRY
make_images
make_catalog
write_skopeo
check_out
check_in
check_lost
check_catalog
check_nodes
check_across
