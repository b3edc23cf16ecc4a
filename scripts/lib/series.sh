# A catalog and its updates, one after the other: real ones where there are any, generated ones for everyone else.
# shellcheck shell=bash

# The folder with real catalogs, empty if there is none.
data_folder() {
  local folder=${CATALOG_MIRROR_DATA:-$ROOT/../shared/data}
  if [[ -d $folder ]]; then (cd "$folder" && pwd); fi
}

# real_catalogs: the names of the real catalogs of which each package is asked for.
real_catalogs() {
  echo v4.14
  if [[ ${SHORT:-false} != true ]]; then echo full; fi
}

# unpack FILE TARGET: a .tar.zst, also one made with a long window.
unpack() {
  mkdir -p "$2"
  zstd -qdc --long=27 "$1" | tar -x -C "$2"
}

# configs_folder FOLDER: the folder named configs in what was unpacked.
configs_folder() { find "$1" -maxdepth 2 -type d -name configs -print -quit; }

# make_series: SERIES is a folder with 000/configs, 001/configs ... and steps.json, which tells for each step
# which files below configs it changed and which it removed. A step holds only what it changed.
make_series() {
  local data
  data=$(data_folder)
  if [[ -n $data ]]; then
    unpack "$data/community-v4.20-updates.tar.zst" "$WORK/series"
    SERIES=$(dirname "$(find "$WORK/series" -name steps.json)")
  else
    SERIES=$WORK/series
    generate_series
  fi
}

# Twenty updates of the example catalog. Every step rewrites one of four packages; every seventh removes the one that the step before wrote.
generate_series() {
  local v1=$ROOT/tests/catalogs/v1 v2=$ROOT/tests/catalogs/v2 step package file configs removed
  for step in {0..20}; do
    configs=$SERIES/$(printf %03d "$step")/configs package=generated-$((step % 4)) removed=()
    mkdir -p "$configs"
    if ((step == 0)); then
      cp -r "$v1/." "$configs"
    elif ((step == 1)); then
      cp -r "$v2/." "$configs"
      mapfile -t removed < <(comm -23 <(files "$v1") <(files "$v2"))
      # A step holds only what it changed.
      for file in $(comm -12 <(files "$v1") <(files "$v2")); do ! cmp -s "$v1/$file" "$v2/$file" || rm "$configs/$file"; done
    elif ((step % 7 == 0)); then
      removed=("generated-$(((step - 1) % 4))/catalog.yaml")
    else
      mkdir "$configs/$package"
      generated_package "$package" "$step" >"$configs/$package/catalog.yaml"
    fi
    files "$configs" | jq -nRc --argjson step "$step" '{step: $step, changed: [inputs], removed: $ARGS.positional}' --args "${removed[@]}"
  done | jq -s . >"$WORK/steps.json"
  mv "$WORK/steps.json" "$SERIES"
}

generated_package() {
  cat <<YAML
schema: olm.package
name: $1
defaultChannel: stable
description: Rewritten in step $2.
---
schema: olm.channel
package: $1
name: stable
entries:
- name: $1.v0.$2.0
---
schema: olm.bundle
package: $1
name: $1.v0.$2.0
image: registry.example/$1:v0.$2.0
properties:
- type: olm.package
  value: {packageName: $1, version: 0.$2.0}
YAML
}

# json_package NAME IMAGE [RELATED-IMAGE...]: a package of one bundle with these images, as lines.
json_package() {
  jq -nc --arg name "$1" --arg image "$2" '"\($name).v1" as $bundle | {schema: "olm.package", name: $name, defaultChannel: "stable"},
    {schema: "olm.channel", name: "stable", package: $name, entries: [{name: $bundle}]},
    {schema: "olm.bundle", name: $bundle, package: $name, image: $image, properties: [{type: "olm.package", value: {packageName: $name, version: "1.0.0"}}],
     relatedImages: ($ARGS.positional | map({name: "", image: .}))}' --args "${@:3}"
}

files() { (cd "$1" && find . -name 'catalog.*' -printf '%P\n' | sort); }

# Number of the last step of a short run. In each step of the real series one package changes or goes.
SHORT_STEPS=8

# steps: the numbers of all steps, or of the first ones in a short run; changed STEP, removed STEP: the packages of a step.
steps() {
  local last=100000
  if [[ ${SHORT:-false} == true ]]; then last=$SHORT_STEPS; fi
  jq -r --argjson last "$last" '.[].step | select(. <= $last)' "$SERIES/steps.json"
}
changed() { jq -r --argjson step "$1" '.[$step].changed | arrays | .[] | split("/")[0]' "$SERIES/steps.json"; }
removed() { jq -r --argjson step "$1" '.[$step].removed[] | split("/")[0]' "$SERIES/steps.json"; }
