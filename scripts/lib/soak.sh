# A registry that fails now and then, a catalog that changes every second, and other work while clients send requests.
# shellcheck shell=bash

# Packages of the moving catalog: enough to be served from several objects, few enough to be polled every second.
SOAK_PACKAGES=60
SOAK_REPOSITORY=ns/soak

# note_registry: the process of the registry that was just started, which is the plain one, over the same folder and port each time.
note_registry() {
  echo "$STARTED_PID" >"$WORK/registry.pid"
  # Or the shell would tell of every end that it is meant to have.
  disown "$STARTED_PID"
}

# soak_package NAME STEP: a package as YAML, with an icon that no compressor makes much smaller.
soak_package() {
  generated_package "$1" "$2"
  printf -- '---\nschema: olm.icon\npackage: %s\nname: %s.icon\ndata: %s\n' "$1" "$1" "$(head -c 9000 /dev/urandom | base64 -w0)"
}

# make_base: the image that every state of the moving catalog is made of, and one that stays as it is. MANIFEST and
# CONFIG are its documents, to be extended.
make_base() {
  local tree=$WORK/base-tree number
  for number in $(seq "$SOAK_PACKAGES"); do
    mkdir -p "$tree/configs/package-$number"
    soak_package "package-$number" 0 >"$tree/configs/package-$number/catalog.yaml"
  done
  AUTH_FILE=$WORK/no-auth.json
  echo '{}' >"$AUTH_FILE"
  new_image "$WORK/base:v1"
  add_layer "$WORK/base:v1" "$tree"
  for tag in now calm; do copy_image "oci:$WORK/base:v1" "docker://$PLAIN_REGISTRY/$SOAK_REPOSITORY:$tag"; done
  MANIFEST=$(curl -sSf -H 'Accept: application/vnd.oci.image.manifest.v1+json' "$(manifests)/now")
  CONFIG=$(curl -sSfL "http://$PLAIN_REGISTRY/v2/$SOAK_REPOSITORY/blobs/$(jq -r .config.digest <<<"$MANIFEST")")
  rm -r "$tree" "$WORK/base"
}

manifests() { printf 'http://%s/v2/%s/manifests' "$PLAIN_REGISTRY" "$SOAK_REPOSITORY"; }

# step_manifest STEP: uploads a layer over the base that rewrites one package, brings one and takes one away, and writes the
# manifest of that to $WORK/manifests/STEP.
step_manifest() {
  local tree=$WORK/step layer=$WORK/step.tar.gz config=$WORK/step.json diff
  rm -rf "$tree"
  mkdir -p "$tree/configs/package-$(($1 % SOAK_PACKAGES + 1))" "$tree/configs/visitor-$(($1 % 5))"
  soak_package "package-$(($1 % SOAK_PACKAGES + 1))" "$1" >"$tree/configs/package-$(($1 % SOAK_PACKAGES + 1))/catalog.yaml"
  generated_package "visitor-$(($1 % 5))" "$1" >"$tree/configs/visitor-$(($1 % 5))/catalog.yaml"
  : >"$tree/configs/.wh.package-$(($1 * 7 % SOAK_PACKAGES + 1))"
  tar -C "$tree" --owner=0 --group=0 -cf "$WORK/step.tar" configs
  diff=$(sha256 "$WORK/step.tar")
  gzip -nc1 "$WORK/step.tar" >"$layer"
  jq -c --arg diff "sha256:$diff" '.rootfs.diff_ids += [$diff]' <<<"$CONFIG" >"$config"
  upload "$layer" && upload "$config" &&
    jq -c --arg config "sha256:$(sha256 "$config")" --argjson config_size "$(stat -c %s "$config")" \
      --arg layer "sha256:$(sha256 "$layer")" --argjson layer_size "$(stat -c %s "$layer")" \
      '.config.digest = $config | .config.size = $config_size
       | .layers += [{mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", digest: $layer, size: $layer_size}]' \
      <<<"$MANIFEST" >"$WORK/manifests/$1"
}

# upload FILE: as a blob, in one request ("Pushing blobs" of the distribution specification).
upload() {
  local location
  location=$(curl -sSf -m 2 -X POST -o /dev/null -D - "http://$PLAIN_REGISTRY/v2/$SOAK_REPOSITORY/blobs/uploads/" |
    tr -d '\r' | sed -n 's/^location: //Ip')
  curl -sSf -m 2 -o /dev/null -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$1" \
    "$location$([[ $location == *\?* ]] && echo '&' || echo '?')digest=sha256:$(sha256 "$1")"
}

# move_tag STEP: what `now` names from now on.
move_tag() {
  curl -sSf -m 2 -o /dev/null -X PUT -H 'Content-Type: application/vnd.oci.image.manifest.v1+json' \
    --data-binary "@$WORK/manifests/$1" "$(manifests)/now"
}

# Each second another state; one in six is one that was there before. What the registry is not there for is left out.
keep_moving() {
  local step=0 begin wait
  mkdir -p "$WORK/manifests"
  while [[ ! -e $WORK/stop ]]; do
    begin=$(now_ms)
    if ((RANDOM % 6 == 0 && step > 1)); then
      move_tag $((RANDOM % step + 1)) && echo back >>"$WORK/moves"
    elif step_manifest $((step + 1)); then
      step=$((step + 1))
      move_tag "$step" && echo new >>"$WORK/moves"
    fi
    wait=$((1000 - $(now_ms) + begin))
    ((wait <= 0)) || sleep "$(printf '0.%03d' $((wait % 1000)))"
  done 2>/dev/null
}

# Two to six times a minute the registry ends, is killed, or stops answering for some seconds, at random moments.
keep_failing() {
  local how
  while [[ ! -e $WORK/stop ]]; do
    sleep "$((5 + RANDOM % 16)).$((RANDOM % 10))"
    how=$((RANDOM % 3))
    case $how in
      0) kill "$(cat "$WORK/registry.pid")" ;;
      1) kill -9 "$(cat "$WORK/registry.pid")" ;;
      2) kill -STOP "$(cat "$WORK/registry.pid")" ;;
    esac
    sleep "$((2 + RANDOM % 4)).$((RANDOM % 10))"
    case $how in
      2) kill -CONT "$(cat "$WORK/registry.pid")" ;;
      *) run_registry "$WORK/plain-registry" && note_registry && wait_for 20 curl -sf -m 1 "http://$PLAIN_REGISTRY/v2/" ;;
    esac
    case $how in
      0) echo ended ;;
      1) echo killed ;;
      2) echo suspended ;;
    esac >>"$WORK/outages"
  done
}

# Collection runs beside everything else. Its steps are two hours apart, so in a short run it condemns and deletes nothing;
# collect_at_end deletes.
keep_collecting() {
  while [[ ! -e $WORK/stop ]]; do
    sleep "$BETWEEN"
    collect "$WORK/store"
    collect "$WORK/copy"
  done
}

# collect STORE [OPTION...]: one run; its report is added to $WORK/gc.
collect() {
  [[ -d $1/catalogs ]] || return 0
  "$CATALOG_MIRROR" gc --json --store "$1" --keep-generations 2 "${@:2}" >>"$WORK/gc" 2>>"$WORK/gc.err" ||
    echo "gc of ${1##*/}" >>"$WORK/failures"
}

# collect_at_end: a whole round without its waits, which is safe only because no process writes any more.
collect_at_end() {
  collect "$WORK/store" --offline
  collect "$WORK/copy" --offline
}

# Another mirror copies this one again and again.
keep_copying() {
  while [[ ! -e $WORK/stop ]]; do
    sleep "$((1 + RANDOM % 4))"
    if copy 2>"$WORK/copy.err"; then
      echo copied >>"$WORK/copies"
    else
      echo "sync: $(tail -1 "$WORK/copy.err")" >>"$WORK/failures"
    fi
  done
}

copy() { "$CATALOG_MIRROR" sync "$URL" "$WORK/copy" >/dev/null; }

lines_of() { if [[ -f $1 ]]; then wc -l <"$1"; else echo 0; fi; }
