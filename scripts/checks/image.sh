# The container images: what is in them, how large they are, and their programs, run without privileges on amd64 and, under qemu,
# on arm64. A long check, because it compiles the programs for both processors as they are shipped.
#
# CATALOG_MIRROR_IMAGES names a folder with the layouts that scripts/image wrote, PROGRAM each (default: they are built, by
# IMAGE_PROFILE or the profile dist).
# IMAGE_TWICE=1 builds them once more from a clone in another folder, with empty caches: each processor must have the same digest.
# shellcheck shell=bash

# shellcheck source=/dev/null
source "$LIB/container.sh"

IMAGES=${CATALOG_MIRROR_IMAGES:-$WORK/images}
PROFILE_OF_IMAGES=${IMAGE_PROFILE:-dist}
# Bytes that a node pulls at most.
PULL_MAX=30000000
ARCHITECTURES=(amd64 arm64)
PROGRAMS=(catalog-mirror catalog-mirror-controller)
declare -A TARGETS=([amd64]=x86_64-unknown-linux-musl [arm64]=aarch64-unknown-linux-musl) MACHINES=([amd64]=x86-64 [arm64]=aarch64)
MOUNTS=() VARIABLES=()

# digests LAYOUT: `architecture digest` of each manifest.
digests() {
  skopeo inspect --raw "oci:$1:$(jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' "$1/index.json")" |
    jq -r '.manifests[] | "\(.platform.architecture) \(.digest)"'
}

# build_images FROM TO: by the script in the folder FROM.
build_images() {
  local program
  for program in "${PROGRAMS[@]}"; do
    "$1/scripts/image" --program "$program" --profile "$PROFILE_OF_IMAGES" --out "$2/$program"
  done
}

# documents PROGRAM CONFIGURATION: what a registry and a runtime ask of an image, told by skopeo.
documents() {
  local program=$1 arch size revision
  revision=$(git -C "$ROOT" describe --always --dirty --abbrev=40 --exclude='*')
  # An image that was built before may be of another commit.
  [[ -z ${CATALOG_MIRROR_IMAGES:-} ]] || revision='[0-9a-f]{40}(-dirty)?'
  is "$program: the index has both processors" "$(digests "$IMAGES/$program" | cut -d' ' -f1 | paste -sd' ')" "amd64 arm64"
  for arch in "${ARCHITECTURES[@]}"; do
    size=$(skopeo inspect --override-arch "$arch" --raw "$IMAGE" | jq -r --arg arch "$arch" '.manifests[] | select(.platform.architecture == $arch).digest' |
      { read -r digest; jq '.config.size + ([.layers[].size] | add)' "$IMAGES/$program/blobs/sha256/${digest#sha256:}"; })
    succeeds "$program, $arch: a pull takes $size bytes, at most $PULL_MAX" test "$size" -le "$PULL_MAX"
    same_lines "$program, $arch: labels" "$(skopeo inspect --override-arch "$arch" "$IMAGE" | jq -r '.Labels | to_entries[] | "\(.key) \(.value)"' | grep -v -e '\.created ' -e '\.description ' -e '\.revision ')" \
      "org.opencontainers.image.title $program
org.opencontainers.image.licenses Apache-2.0
org.opencontainers.image.source $(cargo metadata --manifest-path "$ROOT/Cargo.toml" --format-version 1 --no-deps | jq -r '.packages[] | select(.name == "catalog-mirror").repository')
org.opencontainers.image.version $("$CATALOG_MIRROR" --version | sed -n '1s/catalog-mirror \([^ ]*\).*/\1/p')"
    matches "$program, $arch: the revision is the commit" "$(skopeo inspect --override-arch "$arch" "$IMAGE" | jq -r '.Labels["org.opencontainers.image.revision"]')" "^$revision$"
    is "$program, $arch: user, program, default command and ports" \
      "$(skopeo inspect --config --override-arch "$arch" "$IMAGE" | jq -c '.config | [.User, .Entrypoint, .Cmd // [], (.ExposedPorts | keys)]')" "$2"
  done
  succeeds "$program: a registry takes it" copy_image "$IMAGE" "docker://$REGISTRY/ns/$program:v1" --all
  is "and has the same bytes" "$(skopeo inspect --raw --authfile "$AUTH_FILE" --tls-verify=false "docker://$REGISTRY/ns/$program:v1" | sha256)" \
    "$(skopeo inspect --raw "$IMAGE" | sha256)"
}

# files_of_image PROGRAM ARCH FOLDER: files with their modes and owners, FOLDER among them; folders that the program writes, or
# that are only on the way, without names of their own.
files_of_image() {
  local program=$1 arch=$2 root=$WORK/$1-$2/rootfs
  same_lines "$program, $arch: files" "$(cd "$root" && find . -mindepth 1 \( -type f -o -perm /022 \) -printf '%P %m %U:%G\n')" \
    "etc/ssl/certs/ca-certificates.crt 644 0:0
tmp 1777 0:0
usr/bin/$program 755 0:0
usr/share/$program/sbom.cdx.json 644 0:0
usr/share/licenses/$program/LICENSE 644 0:0
$3 775 65532:0"
  matches "$program, $arch: needs no library" "$(file -b "$root/usr/bin/$program")" "ELF 64-bit.* ${MACHINES[$arch]}.*static"
  is "$program, $arch: names no folder of the machine that built it" "$(grep -c -a -e "$ROOT" -e "$HOME/" "$root/usr/bin/$program")" 0
}

# bill_of_materials PROGRAM ARCH. `cargo tree` finds out by itself which crates the program has. Macros are in no program.
bill_of_materials() {
  local program=$1 arch=$2 file=$WORK/$1-$2/rootfs/usr/share/$1/sbom.cdx.json
  same_lines "$program, $arch: the SBOM has the crates of cargo tree" \
    "$(jq -r '.metadata.component, .components[] | select(.purl | startswith("pkg:cargo/")) | "\(.name) \(.version)"' "$file")" \
    "$(cd "$ROOT" && cargo tree --locked --package "$(package_of "$program")" --target "${TARGETS[$arch]}" --edges normal,no-proc-macro --prefix none --no-dedupe |
      sed 's/^\([^ ]*\) v\([^ ]*\).*/\1 \2/' | sort -u)"
  is "$program, $arch: with a licence for each" \
    "$(jq -c '[.components[] | select((.purl | startswith("pkg:cargo/")) and (.licenses | not)).name]' "$file")" '[]'
}

# mirror_in CONTAINER ARCH ARGUMENT...: a command of the program in a container.
mirror_in() {
  RUNNER=${RUNNERS[$2]} new_container "$1" "$WORK/catalog-mirror-$2" "${@:3}"
  run_container "$1"
}

# demo, poll from a registry into a mounted store, serve, verify.
runs() {
  local arch=$1 store=$WORK/store-$1 port
  MOUNTS=() VARIABLES=()
  matches "$arch: demo" "$(mirror_in "demo-$arch" "$arch" demo --once --update-after 1s --listen "127.0.0.1:$(free_port)" 2>&1)" 'The image was updated'
  # As Kubernetes mounts a volume without fsGroup where the group may write.
  install -d -m 775 -g 0 "$store"
  install -m 644 "$AUTH_FILE" "$WORK/auth.json"
  MOUNTS=("$store:/var/lib/catalog-mirror" "$WORK/auth.json:/etc/auth.json:ro" "$REGISTRY_CA:/etc/ca.crt:ro") VARIABLES=(REGISTRY_AUTH_FILE=/etc/auth.json)
  mirror_in "poll-$arch" "$arch" poll --catalog "c=$REGISTRY/ns/catalog:v1" --ca-file /etc/ca.crt --json >"$WORK/poll-$arch.json" 2>"$WORK/poll-$arch.err"
  is "$arch: polls a registry into a mounted store" "$(jq -r '.[0].outcome' "$WORK/poll-$arch.json")" published
  is "$arch: with the content hash of another build" "$(content_hash "$store" c)" "$(content_hash "$WORK/expected" c)"
  # The system's CA certificates are those of the image, unless a file is mounted over them.
  MOUNTS+=("$REGISTRY_CA:/etc/ssl/certs/ca-certificates.crt:ro")
  matches "$arch: CA certificates can be mounted" "$(mirror_in "ca-$arch" "$arch" poll --catalog "c=$REGISTRY/ns/catalog:v1" 2>&1)" 'unchanged'
  matches "$arch: a root that cannot be written needs a store that can" \
    "$(MOUNTS=() && mirror_in "lost-$arch" "$arch" poll --catalog "c=$REGISTRY/ns/catalog:v1" 2>&1)" 'cannot open .*Read-only'
  port=$(free_port)
  MOUNTS=("$store:/var/lib/catalog-mirror:ro") VARIABLES=(CATALOG_MIRROR_LISTEN="127.0.0.1:$port")
  RUNNER=${RUNNERS[$arch]} new_container "serve-$arch" "$WORK/catalog-mirror-$arch" serve --no-poll
  start_container "serve-$arch"
  wait_for 20 curl -sf "http://127.0.0.1:$port/readyz"
  is "$arch: serves the store" "$(fetch gzip "http://127.0.0.1:$port/catalogs/c/api/v1/all" | sha256)" "$(content_hash "$WORK/expected" c)"
  ends_well "$arch: SIGTERM ends the server, whose process ID is 1" "$STARTED_PID"
  VARIABLES=()
  succeeds "$arch: verifies the store" mirror_in "verify-$arch" "$arch" verify
}

# The controller serves its last state from an empty volume that it may write, though no API server answers.
controller_runs() {
  local arch=$1 port health
  port=$(free_port) health=$(free_port)
  install -d -m 777 "$WORK/cache-$arch"
  cp -r "$WORK/store-$arch" "$WORK/cache-$arch/catalog-mirror"
  chmod -R a+rwX "$WORK/cache-$arch"
  CLUSTER_URL=https://127.0.0.1:1 CLUSTER_CA=/etc/ca.crt write_kubeconfig "$WORK/kubeconfig" none
  chmod 644 "$WORK/kubeconfig"
  MOUNTS=("$WORK/cache-$arch:/var/cache" "$WORK/kubeconfig:/etc/kubeconfig:ro" "$REGISTRY_CA:/etc/ca.crt:ro") VARIABLES=(KUBECONFIG=/etc/kubeconfig)
  RUNNER=${RUNNERS[$arch]} new_container "controller-$arch" "$WORK/catalog-mirror-controller-$arch" --leader-elect \
    --catalogs-server-addr="127.0.0.1:$port" --health-probe-bind-address="127.0.0.1:$health"
  start_container "controller-$arch"
  succeeds "$arch: the controller starts" wait_for 20 curl -sf "http://127.0.0.1:$health/healthz"
  is "$arch: and serves its store without an API server" "$(fetch gzip "http://127.0.0.1:$port/catalogs/c/api/v1/all" | sha256)" "$(content_hash "$WORK/expected" c)"
  ends_well "$arch: SIGTERM ends it" "$STARTED_PID"
}

# podman run --publish PORTS IMAGE ARGUMENT...: a stand-in, because podman cannot set its limits in every machine that runs checks. It
# runs the image, from where skopeo has put it for podman, as the other containers.
podman() {
  is "podman is asked to run a published port" "$1 $2 $3" "run --publish 8080:8080"
  skopeo copy --quiet "containers-storage:$4" "oci:$WORK/own-layout:image"
  IMAGE=oci:$WORK/own-layout:image
  unpack_image amd64 "$WORK/own"
  MOUNTS=("$WORK/auth.json:/etc/auth.json:ro" "$REGISTRY_CA:/etc/ssl/certs/ca-certificates.crt:ro")
  VARIABLES=(REGISTRY_AUTH_FILE=/etc/auth.json CATALOG_MIRROR_STORE=/tmp/store CATALOG_MIRROR_LISTEN="127.0.0.1:$OWN_PORT")
  RUNNER='' new_container own "$WORK/own" "${@:5}"
  start_container own
}

# The README's way to a first catalog of one's own, in its words but for the registry.
first_catalog() {
  local lines
  lines=$(sed -n '/^scripts\/image/,/^```/{/^```/!p}' "$ROOT/README.md")
  lines=${lines//quay.io\/operatorhubio\/catalog:latest/$REGISTRY/ns/catalog:v1}
  lines=${lines/--arch amd64/--arch amd64 --profile $PROFILE_OF_IMAGES}
  lines=${lines/target\/image/$(target_folder)\/image}
  OWN_PORT=$(free_port)
  cat >"$WORK/storage.conf" <<TOML
[storage]
driver = "vfs"
graphroot = "$WORK/storage"
runroot = "$WORK/storage-run"
TOML
  cd "$ROOT" || return
  export CONTAINERS_STORAGE_CONF=$WORK/storage.conf
  eval "$lines" >"$WORK/own.out" 2>&1
  wait_for 30 curl -sf "http://127.0.0.1:$OWN_PORT/readyz"
  is "the README's lines mirror a catalog" "$(fetch gzip "http://127.0.0.1:$OWN_PORT/catalogs/operatorhubio/api/v1/all" | sha256)" "$(content_hash "$WORK/expected" c)"
  ends_well "and end by SIGTERM" "$STARTED_PID"
}

# Loads the roots of the image and not those of this machine; a debug line tells how many.
roots() {
  MOUNTS=() VARIABLES=(RUST_LOG=catalog_mirror_fetch=debug)
  matches "the program finds the CA certificates of the image" \
    "$(mirror_in roots amd64 render "127.0.0.1:1/ns/catalog:v1" 2>&1)" "added=$(grep -c BEGIN.CERT "$WORK/catalog-mirror-amd64/rootfs/etc/ssl/certs/ca-certificates.crt") ignored=0"
}

# A clone in a folder of another name. Libraries, tools and the caches of the compilers are fetched and made again, each in a folder of
# another name too.
same_bytes_again() {
  local program elsewhere=$WORK/elsewhere
  git clone --quiet "$ROOT" "$elsewhere/clone of the tree"
  git -C "$elsewhere/clone of the tree" checkout --quiet "$(git -C "$ROOT" rev-parse HEAD)"
  CARGO_HOME=$elsewhere/crates XDG_CACHE_HOME=$elsewhere/caches CARGO_TARGET_DIR=$elsewhere/target \
    build_images "$elsewhere/clone of the tree" "$WORK/again" >"$WORK/again.log" 2>&1 ||
    not_ok "the images are built elsewhere" "$(tail -n 20 "$WORK/again.log")"
  for program in "${PROGRAMS[@]}"; do
    is "$program: a build elsewhere has the same digests" "$(digests "$WORK/again/$program")" "$(digests "$IMAGES/$program")"
  done
}

# unpack_images PROGRAM FOLDER
unpack_images() {
  local arch
  for arch in "${ARCHITECTURES[@]}"; do
    unpack_image "$arch" "$WORK/$1-$arch"
    files_of_image "$1" "$arch" "$2"
    bill_of_materials "$1" "$arch"
  done
}

need_debian runc=runc umoci=umoci skopeo=skopeo qemu-aarch64-static=qemu-user-static file=file
declare -A RUNNERS=([amd64]="" [arm64]=$(command -v qemu-aarch64-static))
[[ -n ${CATALOG_MIRROR_IMAGES:-} ]] || build_images "$ROOT" "$IMAGES"
copy_image "oci:$LAYOUT:$LAST_TAG" "docker://$REGISTRY/ns/catalog:v1"
outcome "$WORK/expected" "c=$REGISTRY/ns/catalog:v1" >/dev/null
use_image "$IMAGES/catalog-mirror"
documents catalog-mirror '["65532:0",["/usr/bin/catalog-mirror"],["serve"],["8080/tcp"]]'
unpack_images catalog-mirror var/lib/catalog-mirror
for arch in "${ARCHITECTURES[@]}"; do runs "$arch"; done
roots
first_catalog
use_image "$IMAGES/catalog-mirror-controller"
documents catalog-mirror-controller '["65532:0",["/usr/bin/catalog-mirror-controller"],[],["7443/tcp","8081/tcp","8443/tcp","9443/tcp"]]'
unpack_images catalog-mirror-controller var/cache
for arch in "${ARCHITECTURES[@]}"; do controller_runs "$arch"; done
if [[ -n ${IMAGE_TWICE:-} ]]; then same_bytes_again; fi
