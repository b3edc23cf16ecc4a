# Images made of the series, as umoci lays them out.
# shellcheck shell=bash

# build_series_images: LAYOUT:step-000, step-001 ...; every step is one more layer over the one before.
build_series_images() {
  local step name last=base
  LAYOUT=$WORK/layout
  new_image "$LAYOUT:base"
  for step in $(steps); do
    name=$(printf %03d "$step")
    step_layer "$step" "$SERIES/$name" "$WORK/step"
    add_layer "$LAYOUT:$last" "$WORK/step" "step-$name"
    last=step-$name
    rm -r "$WORK/step"
  done
  LAST_STEP=$step LAST_TAG=$last
}

# step_layer STEP SOURCE TARGET: the files of a step, and whiteouts for those that it removed.
step_layer() {
  local file
  mkdir -p "$3/configs"
  if [[ -d $2/configs ]]; then cp -r "$2/configs" "$3"; fi
  jq -r --argjson step "$1" '.[$step].removed[]' "$SERIES/steps.json" | while read -r file; do
    mkdir -p "$3/configs/$(dirname "$file")"
    : >"$3/configs/$(dirname "$file")/.wh.$(basename "$file")"
  done
}

# lay_over STEP FOLDER: the step on a folder that holds the ones before: the image's files without any image.
lay_over() {
  local source file
  source=$SERIES/$(printf %03d "$1")/configs
  if [[ -d $source ]]; then cp -r "$source/." "$2"; fi
  jq -r --argjson step "$1" '.[$step].removed[]' "$SERIES/steps.json" | while read -r file; do rm "$2/$file"; done
}

# push_folder NAME FOLDER: as an image of one layer, in the registry without a password.
push_folder() {
  local layout=$WORK/$1-layout tree=$WORK/$1-tree
  new_image "$layout:v1"
  mkdir -p "$tree"
  cp -rl "$2" "$tree/configs" 2>/dev/null || cp -r "$2" "$tree/configs"
  add_layer "$layout:v1" "$tree"
  copy_image "oci:$layout:v1" "docker://$PLAIN_REGISTRY/ns/$1:v1"
  rm -r "$layout" "$tree"
}

# push_index REPOSITORY TAG AMD64 [ARM64]: an index with the manifests of these digests in the same repository; its digest is printed.
push_index() {
  local digest size architectures=(amd64 arm64) at=0
  for digest in "${@:3}"; do
    size=$(registry_curl -H "Accept: $MANIFEST" "https://$REGISTRY/v2/$1/manifests/$digest" | wc -c)
    jq -nc --arg digest "$digest" --argjson size "$size" --arg type "$MANIFEST" --arg architecture "${architectures[at++]}" \
      '{mediaType: $type, digest: $digest, size: $size, platform: {os: "linux", architecture: $architecture}}'
  done | jq -sc --arg type "$INDEX" '{schemaVersion: 2, mediaType: $type, manifests: .}' >"$WORK/index.json"
  registry_curl -f -X PUT -H "Content-Type: $INDEX" --data-binary "@$WORK/index.json" "https://$REGISTRY/v2/$1/manifests/$2"
  echo "sha256:$(sha256 "$WORK/index.json")"
}
