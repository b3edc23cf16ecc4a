# Every catalog is pulled from the mirror as an image, by the programs that people have: skopeo, umoci, crane, oras, and a
# registry behind it. What they unpack is the same content, also for the module that OLM reads catalogs with. tests/e2e has a mirror
# of the mirror.
# shellcheck shell=bash

PLATFORMS=(amd64 arm64 ppc64le s390x)
STORE=$WORK/store

# image_digest STORE NAME: by which the catalog is pulled, all platforms together.
image_digest() { "$CATALOG_MIRROR" ls --json --store "$1" | jq -r --arg name "$2" '.[] | select(.name == $name).image'; }

# digest: of what comes in.
digest() { echo "sha256:$(sha256sum | cut -d' ' -f1)"; }

# rendered FOLDER: the content hash of the FBC in it.
rendered() { "$CATALOG_MIRROR" render "$1" | sha256; }

# Two states of a catalog, so that there are tags, and another catalog, so that there are pages.
publish() {
  "$CATALOG_MIRROR" poll --store "$STORE" --catalog "up=oci:$LAYOUT:step-000" >/dev/null
  OLD_HASH=$(content_hash "$STORE" up) OLD_INDEX=$(image_digest "$STORE" up)
  is "a catalog is published twice" "$(outcome "$STORE" "up=oci:$LAYOUT:$LAST_TAG")" "published 10"
  is "and another one" "$(outcome "$STORE" "small=dir:$ROOT/tests/catalogs/v1")" "published 10"
  HASH=$(content_hash "$STORE" up) INDEX=$(image_digest "$STORE" up)
  serve "$STORE"
  IMAGE=$HOST/up
}

lists() {
  local tags
  tags=$(printf '%s\n' latest "${HASH:0:12}" "${OLD_HASH:0:12}")
  same_lines "skopeo lists the tags" "$(skopeo list-tags --tls-verify=false "docker://$IMAGE" | jq -r '.Tags[]')" "$tags"
  same_lines "crane lists the tags" "$(crane ls --insecure "$IMAGE")" "$tags"
  same_lines "oras lists the tags" "$(oras repo tags --plain-http "$IMAGE")" "$tags"
  same_lines "crane lists the catalogs" "$(crane catalog --insecure "$HOST")" $'small\nup'
  same_lines "oras lists the catalogs" "$(oras repo ls --plain-http "$HOST")" $'small\nup'
}

with_skopeo() {
  local all=$WORK/all
  is "skopeo reads the index" "$(skopeo inspect --tls-verify=false --raw "docker://$IMAGE:latest" | digest)" "$INDEX"
  is "and where the FBC is" \
    "$(skopeo inspect --tls-verify=false "docker://$IMAGE@$INDEX" | jq -c .Labels)" "{\"${FBC_LABEL%=*}\":\"/configs\"}"
  succeeds "skopeo copies all platforms to a layout" copy_image "docker://$IMAGE:latest" "oci:$all:copy" --all
  is "which has the same digest" "$(jq -r '.manifests[].digest' "$all/index.json")" "$INDEX"
  succeeds "and to a registry" copy_image "docker://$IMAGE@$INDEX" "docker://$REGISTRY/ns/copy:latest" --all
  is "which has the same digest, too" "$(skopeo inspect --raw --authfile "$AUTH_FILE" --tls-verify=false "docker://$REGISTRY/ns/copy:latest" | digest)" "$INDEX"
  is "and is the same catalog" "$(outcome "$WORK/from-registry" "up=$REGISTRY/ns/copy:latest") $(content_hash "$WORK/from-registry" up)" "published 10 $HASH"
}

unpacked() {
  local root=$WORK/bundle/rootfs
  copy_image "docker://$IMAGE:latest" "oci:$WORK/one:latest"
  succeeds "umoci unpacks it" umoci unpack --rootless --image "$WORK/one:latest" "$WORK/bundle"
  is "its folder is the content" "$(rendered "$root/configs")" "$HASH"
  is "there is nothing else" "$(ls "$root")" configs
  is "one file for each package" "$(find "$root/configs" -type f | wc -l)" "$(shards "$STORE" up | wc -l)"
  is "the module of OLM finds all of it" "$(opm-oracle count "$root/configs")" "$(counted)"
}

# counted: `packages channels entries`, computed by jq.
counted() {
  curl -sSf "$URL/catalogs/up/api/v1/all" | jq -rs '"\(map(select(.schema == "olm.package")) | length) " +
    "\(map(select(.schema == "olm.channel")) | length) \([.[] | select(.schema == "olm.channel").entries[]] | length)"'
}

with_crane() {
  local platform
  is "crane knows the digest" "$(crane digest --insecure "$IMAGE:latest")" "$INDEX"
  is "and the index" "$(crane manifest --insecure "$IMAGE@$INDEX" | digest)" "$INDEX"
  succeeds "crane validates it with all blobs" crane validate --insecure --remote "$IMAGE:latest"
  for platform in "${PLATFORMS[@]}"; do
    succeeds "crane pulls linux/$platform" crane pull --insecure --platform "linux/$platform" --format oci "$IMAGE:latest" "$WORK/$platform"
    is "which is the content" "$(rendered "oci:$WORK/$platform")" "$HASH"
  done
  mkdir "$WORK/old"
  crane export --insecure "$IMAGE:${OLD_HASH:0:12}" - | tar -x -C "$WORK/old"
  is "an earlier content is there by its tag" "$(rendered "$WORK/old/configs") $(crane digest --insecure "$IMAGE:${OLD_HASH:0:12}")" "$OLD_HASH $OLD_INDEX"
}

with_oras() {
  local layer
  layer=$(crane manifest --insecure --platform linux/amd64 "$IMAGE:latest" | jq -r '.layers[].digest')
  is "oras fetches the index" "$(oras manifest fetch --plain-http "$IMAGE:latest" | digest)" "$INDEX"
  is "and the layer" "$(oras blob fetch --plain-http --output - "$IMAGE@$layer" | digest)" "$layer"
  succeeds "oras copies it to a layout" oras copy --from-plain-http "$IMAGE:latest" --to-oci-layout "$WORK/oras:latest"
  is "which has the same digest" "$(oras resolve --oci-layout "$WORK/oras:latest")" "$INDEX"
  is "nothing refers to it" "$(oras discover --plain-http --format json "$IMAGE:latest" | jq -c '.manifests // .referrers // []')" '[]'
}

refusals() {
  fails "skopeo cannot push" 'only GET and HEAD' copy_image "oci:$LAYOUT:$LAST_TAG" "docker://$IMAGE:mine"
  fails "crane cannot push" UNSUPPORTED crane push --insecure "$WORK/amd64" "$IMAGE:mine"
  fails "crane cannot delete" UNSUPPORTED crane delete --insecure "$IMAGE@$INDEX"
}

need_crane
need_oras
need_opm
publish
lists
with_skopeo
unpacked
with_crane
with_oras
refusals
