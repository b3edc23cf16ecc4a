# A release as its users meet it: two runs of scripts/release have the same bytes; signatures, checksums and the statement of provenance
# verify, and a changed file is found; the commands of infra/INSTALL.md install the program in empty systems without a compiler and without
# a network, by file, deb, rpm, image and chart, and the file for sites without a connection brings image and chart to a cluster. A long
# check, because it builds static programs.
#
# RELEASE_PROFILE is the profile of the programs (default: dist), RELEASE_ARCH their processors (default: all). RELEASE_PARTS names some
# parts. To be run by root, who may install packages into another root.
# shellcheck shell=bash

# shellcheck source=/dev/null
use revision container

VERSION=$(cargo metadata --manifest-path "$ROOT/Cargo.toml" --format-version 1 --no-deps | jq -r '.packages[] | select(.name == "catalog-mirror").version')
RELEASE=$WORK/release KEY=$WORK/key/cosign.key
MOUNTS=() VARIABLES=()
DOWNLOADS=https://github.com/catalog-mirror/catalog-mirror/releases/download/v$VERSION
read -ra PARTS <<<"${RELEASE_PARTS:-}"

# run_release OPTION...
run_release() {
  "$ROOT/scripts/release" "$VERSION" ${PARTS[@]+"${PARTS[@]}"} --profile "${RELEASE_PROFILE:-dist}" --arch "${RELEASE_ARCH:-all}" "$@"
}

# changed NAME MESSAGE COMMAND [sums]: a release that was changed by the command is not signed. With `sums` its checksums are changed too.
changed() {
  local folder=$WORK/changed-release
  rm -rf "$folder"
  cp -r "$WORK/again" "$folder"
  (cd "$folder" && bash -c "$3")
  [[ ${4:-} != sums ]] || (cd "$folder" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS)
  fails "$1 is not signed" "$2" run_release --made "$folder" --key "$KEY"
  is "and has no signature" "$(find "$folder" -name '*.sig' -o -name '*.intoto.jsonl' | wc -l)" 0
}

# The programs of a second run come from cargo's cache: that two builds of them are equal is a check of the images (IMAGE_TWICE=1).
twice() {
  need_cosign
  mkdir "$(dirname "$KEY")"
  export COSIGN_PASSWORD=throwaway
  (cd "$(dirname "$KEY")" && cosign generate-key-pair 2>/dev/null)
  fails "a key that cannot be read is seen before anything is built" "cannot be read" env COSIGN_PASSWORD=other "$ROOT/scripts/release" "$VERSION" --key "$KEY"
  succeeds "a release is made, signed and verified" run_release --key "$KEY" --out "$RELEASE"
  # Modes and folders of the second one are those of somebody else.
  succeeds "and once more, without a key" bash -c "umask 077; $(declare -f run_release); $(declare -p ROOT VERSION PARTS); run_release --out '$WORK/again'"
  # All that follows would say nothing of a release that is not there.
  [[ -f $RELEASE/SHA256SUMS && -f $WORK/again/SHA256SUMS ]] || die "there is no release"
  changed "a changed file" "the files of .* are not those of its SHA256SUMS" 'echo more >>catalog-mirror.yaml'
  changed "a changed file with its hash" "other files or hashes: catalog-mirror.yaml" 'echo more >>catalog-mirror.yaml' sums
  changed "one file more" "other files or hashes: evil.provenance.json" 'echo {} >evil.provenance.json' sums
  changed "a statement of another commit" "but this checkout" 'sed -i "s/gitCommit\": \"./gitCommit\": \"x/" *.provenance.json' sums
  changed "a statement that says a thing twice" "its bytes are not those" 'sed -i "1s/{/{\"_type\": \"other\",/" *.provenance.json' sums
  changed "a statement of another builder" "but this checkout" 'sed -i "s/blob.main.scripts/elsewhere/" *.provenance.json' sums
  succeeds "what was not changed is checked, and signed by another run" run_release --made "$WORK/again" --key "$KEY"
  is "a second run has the same bytes, but for the signatures" \
    "$(diff -rq --exclude '*.sig' --exclude '*.intoto.jsonl' "$RELEASE" "$WORK/again")" ""
  fails "the version must be that of Cargo.toml" "Cargo.toml has the version $VERSION, not 9.9.9" "$ROOT/scripts/release" 9.9.9
}

# block NAME: the commands that the page marks with `sh NAME`, with the release where it will be.
block() {
  awk -v begin="^\`\`\`sh $1\$" '$0 ~ begin {found = 1; next} /^```$/ {found = 0} found' "$ROOT/infra/INSTALL.md" |
    sed "s|$DOWNLOADS|file://$2|g; s|0\.1\.0|$VERSION|g; s|docker://registry.example|docker://$PLAIN_REGISTRY|; s|sudo ||"
}

# verify_by ENVELOPE FILE
verify_by() {
  cosign verify-blob-attestation --key "$RELEASE/cosign.pub" --insecure-ignore-tlog --type slsaprovenance1 --signature "$1" "$RELEASE/$2"
}

verifies() {
  local statement=$RELEASE/catalog-mirror-$VERSION.provenance.json file
  is "each file has a signature" "$(cd "$RELEASE" && for file in *; do [[ $file == *.sig || $file == *.intoto.jsonl || $file == cosign.pub || -f $file.sig ]] || echo "$file"; done)" ""
  # The page takes the public key from another place.
  mkdir "$WORK/downloaded"
  cp "$RELEASE/cosign.pub" "$WORK/downloaded"
  succeeds "the page's commands fetch a file, and verify its checksum" bash -ec "cd '$WORK/downloaded' && $(block checksums "$RELEASE")"
  succeeds "and the signature of that" bash -ec "cd '$WORK/downloaded' && $(block signatures "$RELEASE")"
  cp -r "$WORK/downloaded" "$WORK/changed"
  echo changed >>"$WORK/changed/SHA256SUMS"
  fails "a changed file does not verify" "invalid signature|failed to verify" bash -c "cd '$WORK/changed' && $(block signatures "$RELEASE" | grep -v ^curl)"
  is "the statement is one of in-toto with a predicate of SLSA" "$(jq -c '[._type, .predicateType]' "$statement")" \
    '["https://in-toto.io/Statement/v1","https://slsa.dev/provenance/v1"]'
  succeeds "the page's command verifies a file by the signed statement" bash -ec "cd '$WORK/downloaded' && $(block attestation "$RELEASE")"
  fails "but none that it does not name" "no matching subject digest" verify_by "$RELEASE/catalog-mirror-$VERSION.intoto.jsonl" SHA256SUMS
  jq -c '.payload |= (@base64d | sub("\"profile\": \"[a-z]*"; "\"profile\": \"other") | @base64)' "$RELEASE/catalog-mirror-$VERSION.intoto.jsonl" \
    >"$WORK/changed.jsonl"
  fails "and none by a changed statement" "accepted signatures do not match" verify_by "$WORK/changed.jsonl" "catalog-mirror-$VERSION-linux-amd64.tar.gz"
  is "the SBOM of the program names it" "$(jq -r '.metadata.component | "\(.name) \(.version)"' "$RELEASE/catalog-mirror-$VERSION-linux-amd64.cdx.json")" "catalog-mirror $VERSION"
}

# new_root NAME: ROOTFS is a system with busybox alone: no compiler, no library, no package.
new_root() {
  ROOTFS=$WORK/root-$1
  mkdir -p "$ROOTFS"/{bin,usr/bin,usr/sbin,etc,tmp,proc,dev,var/lib,root,release}
  cp "$(command -v busybox)" "$ROOTFS/bin/busybox"
  chroot "$ROOTFS" /bin/busybox --install -s /bin
  echo root:x:0:0:root:/root:/bin/sh >"$ROOTFS/etc/passwd"
  echo root:x:0: >"$ROOTFS/etc/group"
}

# inside COMMAND...: in the system, without a network but loopback.
inside() {
  unshare --net --mount --pid --fork bash -c 'ip link set lo up 2>/dev/null || ifconfig lo up; mount -t proc proc "$0/proc"; mount --bind /dev "$0/dev"; exec chroot "$0" "$@"' \
    "$ROOTFS" "$@"
}

# demo_answers PROGRAM: seconds from its start to its first answer in the system.
demo_answers() {
  inside /bin/sh -c "$1"' demo --listen 127.0.0.1:8080 >/tmp/demo.log 2>&1 & pid=$!; i=0
    while [ $i -lt 200 ]; do if wget -q -O /tmp/hash http://127.0.0.1:8080/catalogs/demo/content-hash 2>/dev/null; then break; fi; i=$((i + 1)); sleep 0.05; done
    kill $pid; cat /tmp/hash' 2>&1
}

# first_answer NAME PROGRAM BEGIN: BEGIN is the time before the installation, in ms.
first_answer() {
  matches "$1: the demo answers, in a system without a compiler and without a network" "$(demo_answers "$2")" '^[0-9a-f]{64}$'
  say "$1: $(($(now_ms) - $3)) ms from the file to the first answer"
}

by_file() {
  local begin
  new_root file
  begin=$(now_ms)
  succeeds "file: the first line of the page fetches and unpacks it" bash -ec "cd '$ROOTFS/release' && $(block program "$RELEASE" | head -1)"
  first_answer file "/release/catalog-mirror-$VERSION-linux-amd64/catalog-mirror" "$begin"
  matches "file: with manual pages, and completions for five shells" "$(ls "$ROOTFS"/release/*/man | wc -l) $(ls "$ROOTFS"/release/*/completions | wc -l)" '^[2-9][0-9] 5$'
  is "readme: its first minute names the same file" "$(grep -c "$DOWNLOADS/catalog-mirror-$VERSION-linux-amd64.tar.gz" "$ROOT/README.md")" 1
}

# files_of_package: what each package must have installed into the system.
files_of_package() {
  local unit
  is "$1: user, settings, completions and manual pages are there" "$(cd "$ROOTFS" && ls etc/catalog-mirror/catalogs.yaml usr/lib/sysusers.d/catalog-mirror.conf usr/share/bash-completion/completions/catalog-mirror \
    usr/share/man/man1/catalog-mirror.1.gz usr/share/man/man1/catalog-mirror-serve.1.gz usr/share/doc/catalog-mirror/copyright 2>&1 | wc -l)" 6
  for unit in catalog-mirror.service catalog-mirror-serve.service catalog-mirror-sync.service catalog-mirror-sync.timer; do
    succeeds "$1: systemd takes $unit" systemd-analyze verify --root "$ROOTFS" --man=no --recursive-errors=no "$unit"
  done
}

by_deb() {
  local begin deb=$RELEASE/catalog-mirror_$VERSION-1_amd64.deb
  new_root deb
  # Debian's own dpkg, with what it needs; the system has no apt and no package.
  mkdir -p "$ROOTFS/var/lib/dpkg"/{info,updates,triggers}
  touch "$ROOTFS/var/lib/dpkg"/{status,available}
  begin=$(now_ms)
  succeeds "deb: the page's command fetches it" bash -ec "cd '$ROOTFS/release' && $(block deb "$RELEASE" | head -1)"
  succeeds "deb: dpkg installs it" dpkg --root "$ROOTFS" --install "$ROOTFS/release/$(basename "$deb")"
  first_answer deb catalog-mirror "$begin"
  files_of_package deb
  is "deb: it needs no other package" "$(dpkg-deb --field "$deb" Depends)" ""
  # A stand-in says what systemd would be told.
  mkdir -p "$ROOTFS/run/systemd/system"
  printf '#!/bin/sh\necho "$*" >>/tmp/told\n' >"$ROOTFS/bin/systemctl"
  chmod +x "$ROOTFS/bin/systemctl"
  echo '# mine' >>"$ROOTFS/etc/catalog-mirror/catalogs.yaml"
  succeeds "deb: dpkg updates it" dpkg --root "$ROOTFS" --install "$ROOTFS/release/$(basename "$deb")"
  is "deb: an update keeps the settings" "$(tail -1 "$ROOTFS/etc/catalog-mirror/catalogs.yaml")" "# mine"
  is "deb: and starts what runs again" "$(tail -1 "$ROOTFS/tmp/told")" "try-restart catalog-mirror.service catalog-mirror-serve.service"
  succeeds "deb: dpkg removes it" dpkg --root "$ROOTFS" --remove catalog-mirror
  matches "deb: and stops all of it" "$(cat "$ROOTFS/tmp/told")" \
    'disable --now catalog-mirror.service catalog-mirror-serve.service catalog-mirror-sync.timer catalog-mirror-sync.service'
  is "deb: and the settings stay" "$(cd "$ROOTFS" && ls usr/bin/catalog-mirror etc/catalog-mirror/catalogs.yaml 2>/dev/null)" etc/catalog-mirror/catalogs.yaml
}

by_rpm() {
  local begin rpm=$RELEASE/catalog-mirror-$VERSION-1.x86_64.rpm
  new_root rpm
  rpm --root "$ROOTFS" --initdb
  begin=$(now_ms)
  succeeds "rpm: the page's command fetches it" bash -ec "cd '$ROOTFS/release' && $(block rpm "$RELEASE" | head -1)"
  succeeds "rpm: rpm installs it" rpm --root "$ROOTFS" --install --ignorearch --nosignature --nodeps "$ROOTFS/release/$(basename "$rpm")"
  first_answer rpm catalog-mirror "$begin"
  files_of_package rpm
  # /bin/sh runs its scripts; what rpm itself can do is no package.
  is "rpm: it needs no other package" "$(rpm --query --requires --package "$rpm" 2>/dev/null | grep -v -e '^rpmlib(' -e '^/bin/sh$' -e '^config(')" ""
  echo '# mine' >>"$ROOTFS/etc/catalog-mirror/catalogs.yaml"
  succeeds "rpm: rpm updates it" rpm --root "$ROOTFS" --upgrade --force --ignorearch --nosignature --nodeps "$ROOTFS/release/$(basename "$rpm")"
  is "rpm: an update keeps the settings" "$(tail -1 "$ROOTFS/etc/catalog-mirror/catalogs.yaml")" "# mine"
  succeeds "rpm: rpm removes it" rpm --root "$ROOTFS" --erase catalog-mirror
  is "rpm: and keeps changed settings under another name" "$(cd "$ROOTFS/etc/catalog-mirror" && ls)" catalogs.yaml.rpmsave
}

# The container has no privileges, and a root that it cannot write.
by_image() {
  local begin port
  # The registry has no TLS, which skopeo has to be told for the user.
  export HOME=$WORK/home
  mkdir -p "$HOME/.config/containers" "$WORK/image"
  printf '[[registry]]\nlocation = "%s"\ninsecure = true\n' "$PLAIN_REGISTRY" >"$HOME/.config/containers/registries.conf"
  begin=$(now_ms)
  succeeds "image: the page's commands bring it to a registry" bash -ec "cd '$WORK/image' && $(block image "$RELEASE")"
  is "image: with the program of this version" \
    "$(skopeo inspect --tls-verify=false --override-arch amd64 "docker://$PLAIN_REGISTRY/catalog-mirror:$VERSION" | jq -r '.Labels["org.opencontainers.image.version"]')" "$VERSION"
  IMAGE=docker://$PLAIN_REGISTRY/catalog-mirror:$VERSION
  unpack_image amd64 "$WORK/image/bundle"
  port=$(free_port)
  new_container image "$WORK/image/bundle" demo --listen "127.0.0.1:$port"
  start_container image
  succeeds "image: the demo answers" wait_for 20 curl -sfo "$WORK/image/hash" "http://127.0.0.1:$port/catalogs/demo/content-hash"
  say "image: $(($(now_ms) - begin)) ms from the file to the first answer"
}

# by_processor ARCH EMULATOR GLIBC: the program of a processor that this machine has not. GLIBC is the folder of its C library.
by_processor() {
  local folder=$WORK/elsewhere/$1 port
  mkdir -p "$folder"
  port=$(free_port)
  tar -xzf "$RELEASE/catalog-mirror-$VERSION-linux-$1.tar.gz" --strip-components=1 -C "$folder"
  # With the variable the program does not start itself again, which needs the kernel to know the emulator.
  start "$folder/log" env MALLOC_ARENA_MAX=4 "$2" -L "$3" "$folder/catalog-mirror" demo --listen "127.0.0.1:$port"
  succeeds "$1: the demo answers" wait_for 60 curl -sfo "$folder/hash" "http://127.0.0.1:$port/catalogs/demo/content-hash"
  is "$1: with the content of this machine" "$(cat "$folder/hash")" "$(demo_answers "/release/catalog-mirror-$VERSION-linux-amd64/catalog-mirror")"
  succeeds "$1: and serves what has the hash" wait_for 20 has_hash "http://127.0.0.1:$port/catalogs/demo"
}

# has_hash URL: the demo changes the content once.
has_hash() { [[ $(curl -sf "$1/api/v1/all" | sha256) == $(curl -sf "$1/content-hash") ]]; }

on_other_processors() {
  new_root file
  bash -ec "cd '$ROOTFS/release' && $(block program "$RELEASE" | head -1)"
  by_processor arm64 qemu-aarch64-static /
  by_processor s390x qemu-s390x-static /usr/s390x-linux-gnu
  is "s390x: the deb needs glibc" "$(dpkg-deb --field "$RELEASE/catalog-mirror_$VERSION-1_s390x.deb" Architecture Depends | paste -sd' ')" \
    "Architecture: s390x Depends: libc6 (>= 2.28)"
  is "s390x: the rpm needs glibc" "$(rpm --query --requires --package "$RELEASE/catalog-mirror-$VERSION-1.s390x.rpm" 2>/dev/null | grep glibc)" "glibc >= 2.28"
}

by_krew() {
  local archive=$RELEASE/catalog-mirror-$VERSION-linux-amd64.tar.gz
  "$VENV/bin/python" -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))' <"$RELEASE/catalog-mirror.yaml" >"$WORK/krew.json"
  is "krew: the manifest has the address and the hash of the archive" "$(jq -r '.spec.platforms[0] | "\(.uri) \(.sha256)"' "$WORK/krew.json")" \
    "$DOWNLOADS/$(basename "$archive") $(sha256 "$archive")"
  is "krew: the files that it takes are in the archive" \
    "$(comm -23 <(jq -r '.spec.platforms[0].files[].from' "$WORK/krew.json" | sort) <(tar -tzf "$archive" | sort))" ""
}

# The chart, and the file for sites without a connection, each with a cluster of its own.
in_cluster() {
  local script begin
  for script in chart airgap; do
    begin=$(now_ms)
    (
      mkdir -p "$WORK/$script"
      [[ $script != airgap ]] || cp "$RELEASE/catalog-mirror-$VERSION-airgap.tar" "$WORK/airgap"
      cd "$WORK/$script" && bash -ec "$(block "$script" "$RELEASE")"
    ) >"$WORK/$script.log" 2>&1 || not_ok "$script: the page's commands succeed" "$(tail -5 "$WORK/$script.log")"
    is "$script: the cluster has the mirror with its image" "$(kubectl get statefulset -n mirrors catalog-mirror -o jsonpath='{.spec.template.spec.containers[0].image}')" \
      "registry.example/catalog-mirror:$VERSION"
    say "$script: $(($(now_ms) - begin)) ms from the file to the objects in the cluster"
    succeeds "$script: helm removes it" helm uninstall catalog-mirror --namespace mirrors
  done
  is "airgap: the three commands of the page are three" "$(block airgap "$RELEASE" | wc -l)" 3
  is "airgap: the image in the registry is that of the release" \
    "$(skopeo inspect --raw --tls-verify=false "docker://$PLAIN_REGISTRY/catalog-mirror:$VERSION" | sha256)" \
    "$(skopeo inspect --raw "oci-archive:$RELEASE/catalog-mirror-$VERSION-image.tar" | sha256)"
  is "airgap: the manual is there" "$(ls "$WORK/airgap/catalog-mirror-$VERSION-airgap/manual/index.html" | wc -l)" 1
  cp "$WORK/airgap/catalog-mirror-$VERSION-airgap/bin/catalog-mirror-linux-amd64" "$WORK/airgap/program"
  matches "airgap: and the program" "$("$WORK/airgap/program" --version)" "^catalog-mirror $VERSION "
}

need_python_tools
need_debian runc=runc umoci=umoci busybox=busybox-static rpm=rpm dpkg=dpkg systemd-analyze=systemd unshare=util-linux skopeo=skopeo
set_time_and_revision
start_plain_registry
twice
verifies
by_file
by_deb
by_rpm
by_image
if [[ ${RELEASE_ARCH:-all} == all ]]; then
  need_debian qemu-s390x-static=qemu-user-static
  # It has no commands.
  as_root apt-get install -qq -y --no-install-recommends libc6-s390x-cross >/dev/null
  on_other_processors
fi
need_helm
prepare_cluster
by_krew
in_cluster
stop_cluster
