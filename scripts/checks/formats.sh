# The same catalog in every wrapping that registries and tools make of it gives the same content hash.
# shellcheck shell=bash

HASH=$("$CATALOG_MIRROR" render "oci:$LAYOUT:$LAST_TAG" | sha256)
LAYER=application/vnd.oci.image.layer.v1.tar

# publishes NAME SOURCE: as a catalog of its own in one store.
publishes() {
  local store=$WORK/store
  is "$1 is published" "$(outcome "$store" "c=$2" --force) $(content_hash "$store" c)" "published 10 $HASH"
  rm -rf "$store"
}

# publishes_pushed NAME SOURCE TAG TYPE [OPTION...]: skopeo makes of a source an image whose manifest or layers are of that type.
publishes_pushed() {
  local image=$REGISTRY/ns/formats:$3
  copy_image "$2" "docker://$image" "${@:5}"
  is "skopeo pushed $1" "$(skopeo inspect --raw --authfile "$AUTH_FILE" --tls-verify=false "docker://$image" |
    jq --arg type "$4" '[.mediaType, .layers[0].mediaType] | any(. == $type)')" true
  publishes "$1 by its tag" "$image"
  publishes "$1 by its digest" "${image%:*}@$(registry_digest "$image")"
}

mkdir "$WORK/files"
for step in $(steps); do lay_over "$step" "$WORK/files"; done
is "a folder of the same files renders equally" "$("$CATALOG_MIRROR" render "$WORK/files" | sha256)" "$HASH"
publishes "a layout of umoci" "oci:$LAYOUT:$LAST_TAG"
publishes_pushed "an OCI image" "oci:$LAYOUT:$LAST_TAG" v1 "$LAYER+gzip"
publishes_pushed "a Docker schema 2 image" "oci:$LAYOUT:$LAST_TAG" v2s2 application/vnd.docker.distribution.manifest.v2+json --format v2s2

# skopeo keeps to the gzip that it knows of a layer, so it gets layers that nothing has compressed.
copy_image "oci:$LAYOUT:$LAST_TAG" "dir:$WORK/plain" --dest-decompress
copy_image "dir:$WORK/plain" "oci:$WORK/tar:v1" --dest-oci-accept-uncompressed-layers
copy_image "dir:$WORK/plain" "oci:$WORK/zstd:v1" --dest-compress-format zstd --dest-compress-level 19
for form in tar zstd; do
  publishes "a layout with layers of $form" "oci:$WORK/$form:v1"
done
publishes_pushed "an image with layers of tar" "oci:$WORK/tar:v1" tar "$LAYER" --preserve-digests
publishes_pushed "an image with layers of zstd" "oci:$WORK/zstd:v1" zstd "$LAYER+zstd" --preserve-digests
