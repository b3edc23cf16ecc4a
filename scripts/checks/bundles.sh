# Bundles: changes of CustomResourceDefinitions against the crdify of operator-controller and its settings, for mutations of each keyword,
# for all consecutive versions of a real catalog and between all forms of its definitions. Then bundle images in docker-registry with TLS
# and a password.
# shellcheck shell=bash

DATA=$(data_folder)

# compares NAME FOLDER
compares() {
  "$CATALOG_MIRROR" render "dir:$2" >"$WORK/lines"
  rm -rf "$WORK/store"
  "$CATALOG_MIRROR" poll --store "$WORK/store" --catalog "c=dir:$2" >"$WORK/poll.out"
  succeeds "crdify agrees about $1" \
    python3 -B "$LIB/bundles.py" compare "$WORK/lines" "$(command -v crds)" "$CATALOG_MIRROR" "$WORK/store" c
}

# bundle_report ARGUMENT...: what does not name files, nor dependencies, which the catalog and not the image has.
bundle_report() { "$CATALOG_MIRROR" bundle "$@" --json | jq -S 'del(.size, .dependencies)'; }

need_crds
mkdir -p "$WORK/mutations" "$WORK/layouts"
python3 -B "$LIB/bundles.py" mutations >"$WORK/mutations/catalog.json"
compares "mutations of definitions" "$WORK/mutations"
if [[ -n $DATA ]]; then
  unpack "$DATA/community-v4.14.tar.zst" "$WORK/data"
  compares "all versions of a real catalog" "$(configs_folder "$WORK/data")"
  $SHORT || succeeds "and about each definition from each of its forms to each other" \
    python3 -B "$LIB/bundles.py" every "$WORK/lines" "$(command -v crds)" "$CATALOG_MIRROR" "$WORK/every"
fi

IN_REGISTRY=(--ca-file "$REGISTRY_CA" --auth-file "$AUTH_FILE")
python3 -B "$LIB/bundles.py" layout "$WORK/lines" "$WORK/layouts" 20 >"$WORK/pushed"
count=0 last=
while read -r layout package name; do
  image=$REGISTRY/bundle:$((count += 1))
  copy_image "oci:$layout" "docker://$image" </dev/null
  is "$name is the same in the registry" \
    "$(bundle_report show "${IN_REGISTRY[@]}" "$image")" "$(bundle_report show --store "$WORK/store" "c/$name")"
  if [[ $package == "${last% *}" ]]; then
    is "and so is what it changes" \
      "$(bundle_report diff "${IN_REGISTRY[@]}" "${image%:*}:$((count - 1))" "$image")" \
      "$(bundle_report diff --store "$WORK/store" "c/${last#* }" "c/$name")"
  fi
  last="$package $name"
done <"$WORK/pushed"
echo '{}' >"$WORK/no-auth.json"
says() { "$CATALOG_MIRROR" bundle show --ca-file "$REGISTRY_CA" "$@" 2>&1 || true; }
matches "a password is asked for" "$(says --auth-file "$WORK/no-auth.json" "$image")" "cannot read the bundle $image.*(401|credentials|denied)"
matches "an image that is gone is named" "$(says --auth-file "$AUTH_FILE" "$REGISTRY/bundle@sha256:$(sha256 <<<gone)")" "cannot read the bundle.*(404|not found)"
