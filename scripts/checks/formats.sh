# The same catalog in every wrapping that registries and tools make of it gives the same content hash.
# shellcheck shell=bash

"$CATALOG_MIRROR" render "oci:$LAYOUT:$LAST_TAG" >"$WORK/all.json"
HASH=$(sha256 "$WORK/all.json")

# A manifest of the registry, as it is.
manifest() {
  registry_curl -H 'Accept: application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json' \
    "https://$REGISTRY/v2/ns/formats/manifests/$1"
}

# publishes NAME SOURCE: as a catalog of its own in one store.
publishes() {
  local store=$WORK/store
  is "$1 is published" "$(outcome "$store" "c=$2" --force) $(content_hash "$store" c)" "published 10 $HASH"
  rm -rf "$store"
}

folder() {
  mkdir "$WORK/files"
  for step in $(steps); do lay_over "$step" "$WORK/files"; done
  is "a folder of the same files renders equally" "$("$CATALOG_MIRROR" render "$WORK/files" | sha256)" "$HASH"
}

schema2() {
  copy_image "oci:$LAYOUT:$LAST_TAG" "docker://$REGISTRY/ns/formats:v2s2" --format v2s2
  is "skopeo made a Docker schema 2 manifest" "$(manifest v2s2 | jq -r .mediaType)" application/vnd.docker.distribution.manifest.v2+json
  publishes "a Docker schema 2 image" "$REGISTRY/ns/formats:v2s2"
}

# Layers as no tool here writes them: skopeo keeps to the gzip that it knows of a layer.
other_layers() {
  local image=$WORK/files-image
  mkdir "$image"
  mv "$WORK/files" "$image/configs"
  tar -C "$image" --owner=0 --group=0 -cf "$WORK/plain.tar" configs
  hand_made tar+zstd zstd -q -19 --long=23
  hand_made tar cat
}

# hand_made MEDIA-TYPE COMPRESSOR...: a layout with one layer, read as it is and from the registry.
hand_made() {
  local layout=$WORK/$1 diff_id
  mkdir -p "$layout/blobs/sha256"
  echo '{"imageLayoutVersion": "1.0.0"}' >"$layout/oci-layout"
  diff_id=sha256:$(sha256 "$WORK/plain.tar")
  "${@:2}" <"$WORK/plain.tar" >"$WORK/layer"
  jq -n --arg id "$diff_id" --arg key "${FBC_LABEL%%=*}" '{os: "linux", architecture: "amd64",
    config: {Labels: {($key): "/configs"}}, rootfs: {type: "layers", diff_ids: [$id]}}' >"$WORK/config"
  jq -n --argjson config "$(blob "$layout" config.v1+json "$WORK/config")" \
    --argjson layer "$(blob "$layout" "layer.v1.$1" "$WORK/layer")" \
    '{schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config: $config, layers: [$layer]}' >"$WORK/manifest"
  blob "$layout" manifest.v1+json "$WORK/manifest" |
    jq '{schemaVersion: 2, manifests: [. + {annotations: {"org.opencontainers.image.ref.name": "v1"}}]}' >"$layout/index.json"
  publishes "a layout with a layer of $1" "oci:$layout:v1"
  copy_image "oci:$layout:v1" "docker://$REGISTRY/ns/formats:${1/+/-}" --preserve-digests
  is "skopeo pushed a layer of $1" "$(manifest "${1/+/-}" | jq -r '.layers[].mediaType')" "application/vnd.oci.image.layer.v1.$1"
  publishes "an image with a layer of $1" "$REGISTRY/ns/formats:${1/+/-}"
}

# blob LAYOUT TYPE FILE: puts the file into the layout and prints its descriptor.
blob() {
  local digest
  digest=$(sha256 "$3")
  cp "$3" "$1/blobs/sha256/$digest"
  jq -n --arg type "application/vnd.oci.image.$2" --arg digest "sha256:$digest" --argjson size "$(stat -c %s "$3")" \
    '{mediaType: $type, digest: $digest, size: $size}'
}

# An index that names the image for two platforms, by its digest.
index() {
  local digest size index
  copy_image "oci:$LAYOUT:$LAST_TAG" "docker://$REGISTRY/ns/formats:v1"
  publishes "an OCI image by its tag" "$REGISTRY/ns/formats:v1"
  manifest v1 >"$WORK/manifest"
  digest=sha256:$(sha256 "$WORK/manifest")
  size=$(stat -c %s "$WORK/manifest")
  publishes "an OCI image by its digest" "$REGISTRY/ns/formats@$digest"
  jq -n --arg digest "$digest" --argjson size "$size" '{schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: ["arm64", "amd64"] | map({mediaType: "application/vnd.oci.image.manifest.v1+json",
      digest: $digest, size: $size, platform: {os: "linux", architecture: .}})}' >"$WORK/index"
  index=sha256:$(sha256 "$WORK/index")
  registry_curl -f -X PUT -H 'Content-Type: application/vnd.oci.image.index.v1+json' --data-binary "@$WORK/index" \
    "https://$REGISTRY/v2/ns/formats/manifests/multi"
  publishes "an index by its tag" "$REGISTRY/ns/formats:multi"
  publishes "an index by its digest" "$REGISTRY/ns/formats@$index"
}

folder
publishes "a layout of umoci" "oci:$LAYOUT:$LAST_TAG"
schema2
index
other_layers
