# The files of a release: each function make_PART writes into $OUT. $WORK/files has what they pack.
# shellcheck shell=bash

PROGRAMS_OF_IMAGES=(catalog-mirror catalog-mirror-controller)
REPOSITORY=https://github.com/catalog-mirror/catalog-mirror
# What `uname -m` and Lambda say.
declare -gA MACHINES_OF=([amd64]=x86_64 [arm64]=aarch64) LAMBDA_ARCHS=([amd64]=x86_64 [arm64]=arm64)

# need_built: BUILT has the programs and their SBOMs, PROGRAM-ARCH and PROGRAM-ARCH.cdx.json, and the layouts of the images, as
# layout-PROGRAM.
need_built() {
  local program arch
  [[ -z $BUILT ]] || return 0
  BUILT=$WORK/built
  for program in "${PROGRAMS_OF_IMAGES[@]}"; do
    scripts/image --program "$program" --arch "${OPTION[arch]}" --profile "${OPTION[profile]}" --programs "$BUILT" --out "$BUILT/layout-$program" >&2
  done
  # An image has no glibc, so these have none.
  need_image_tools
  for arch in "${GLIBC_ARCHS[@]}"; do build_program "$(package_of catalog-mirror)" "$arch" "${OPTION[profile]}" "$BUILT/catalog-mirror-$arch"; done
}

# own_program: the program that runs on this machine.
own_program() {
  local arch
  for arch in "${ARCHS[@]}"; do
    if [[ ${MACHINES_OF[$arch]} == "$(uname -m)" ]]; then
      printf '%s\n' "$BUILT/catalog-mirror-$arch"
      return
    fi
  done
  die "the program writes its manual pages, and none of ${ARCHS[*]} runs on $(uname -m)"
}

# pack FOLDER FILE NAME...: a .tar, or a compressed one, with these names of a folder. Equal files give equal bytes.
pack() {
  local archive=$WORK/archive.tar
  tar -C "$1" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' -h \
    -cf "$archive" "${@:3}"
  case $2 in
    *.tar) mv "$archive" "$2" ;;
    *) gzip -9n <"$archive" >"$2" && rm "$archive" ;;
  esac
}

# The archive is one of an OCI layout, as `skopeo copy oci-archive:FILE` takes it.
make_images() {
  local program
  need_built
  for program in "${PROGRAMS_OF_IMAGES[@]}"; do
    pack "$BUILT/layout-$program" "$OUT/$program-$VERSION-image.tar" blobs index.json oci-layout
  done
}

# use_program_files ARCH: FILES has the program of a processor with what belongs to it.
use_program_files() {
  local own shell
  need_built
  own=$(own_program)
  FILES=$WORK/files/catalog-mirror-$VERSION-linux-$1
  [[ ! -d $FILES ]] || return 0
  mkdir -p "$FILES/man" "$FILES/completions"
  cp "$BUILT/catalog-mirror-$1" "$FILES/catalog-mirror"
  cp "$BUILT/catalog-mirror-$1.cdx.json" "$FILES/sbom.cdx.json"
  cp LICENSE functions/catalog-mirror/CONFIGURATION.md "$FILES"
  "$own" man "$FILES/man"
  for shell in bash zsh fish elvish powershell; do "$own" completions "$shell" >"$FILES/completions/catalog-mirror.$shell"; done
}

make_programs() {
  local arch
  for arch in "${ARCHS[@]}" "${GLIBC_ARCHS[@]}"; do
    use_program_files "$arch"
    pack "$WORK/files" "$OUT/$(basename "$FILES").tar.gz" "$(basename "$FILES")"
    cp "$FILES/sbom.cdx.json" "$OUT/$(basename "$FILES").cdx.json"
  done
  for arch in "${ARCHS[@]}"; do cp "$BUILT/catalog-mirror-controller-$arch.cdx.json" "$OUT/catalog-mirror-controller-$VERSION-linux-$arch.cdx.json"; done
}

# Packages for Debian and for Red Hat. The units are those of infra/disconnected, with the program in the place of a package.
make_packages() {
  local arch packages=infra/packages folder=$WORK/package kind deb rpm
  need_nfpm
  for arch in "${ARCHS[@]}" "${GLIBC_ARCHS[@]}"; do
    deb='' rpm=''
    [[ ${TARGETS[$arch]} == *-musl ]] || deb="libc6 (>= $GLIBC)" rpm="glibc >= $GLIBC"
    use_program_files "$arch"
    rm -rf "$folder"
    cp -r "$FILES" "$folder"
    mkdir "$folder/units"
    cp $packages/catalog-mirror.service infra/disconnected/*.service infra/disconnected/*.timer "$folder/units"
    # The package has the user, and so the folder of its state is not that of a passing one.
    sed -i 's|/usr/local/bin/|/usr/bin/|; /^DynamicUser=/d; s|/var/lib/private/|/var/lib/|' "$folder"/units/*
    cp $packages/sysusers.conf $packages/catalogs.yaml "$folder"
    gzip -9n "$folder"/man/*
    chmod 644 "$folder"/man/* "$folder"/units/*
    find "$folder" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    sed "s|ARCH|$arch|; s|VERSION|$VERSION|; s|CREATED|$CREATED|; s|FILES|$folder|; s|SCRIPTS|$ROOT/$packages|; s|LIBC_DEB|$deb|; s|LIBC_RPM|$rpm|" $packages/nfpm.yaml >"$WORK/nfpm.yaml"
    for kind in deb rpm; do nfpm package --config "$WORK/nfpm.yaml" --packager $kind --target "$OUT" >&2; done
  done
}

# As `sam build` leaves them, so that `scripts/deploy --built` and `sam deploy` take the folder.
make_lambda() {
  local arch folder function
  for arch in "${ARCHS[@]}"; do
    folder=$WORK/files/catalog-mirror-$VERSION-lambda-${LAMBDA_ARCHS[$arch]}
    scripts/build --arch "${LAMBDA_ARCHS[$arch]}" --out "$WORK/lambda" >&2
    for function in Poller Reader; do
      mkdir -p "$folder/$function"
      unzip -q -o "$WORK/lambda/${function,}/bootstrap.zip" bootstrap -d "$folder/$function"
    done
    sed "/^    Metadata: {BuildMethod: rust-cargolambda}\$/d; s|CodeUri: ../../functions/poller\$|CodeUri: Poller|; s|CodeUri: ../../functions/reader-function\$|CodeUri: Reader|" \
      infra/aws/template.yaml >"$folder/template.yaml"
    [[ $(grep -c 'CodeUri: \(Poller\|Reader\)$' "$folder/template.yaml") == 2 ]] || die "infra/aws/template.yaml has other functions than Poller and Reader"
    cp LICENSE infra/aws/README.md "$folder"
    pack "$WORK/files" "$OUT/$(basename "$folder").tar.gz" "$(basename "$folder")"
  done
}

make_worker() {
  local folder=$WORK/files/catalog-mirror-$VERSION-worker
  CATALOG_MIRROR_WORKER='' use_worker "$WORK/worker"
  mkdir -p "$folder"
  cp -r "$MODULES/." "$folder"
  cp LICENSE infra/edge/wrangler.toml infra/edge/README.md "$folder"
  pack "$WORK/files" "$OUT/$(basename "$folder").tar.gz" "$(basename "$folder")"
}

# A chart is its folder, whose name in the archive is that of the chart. `helm package` would write the time of the run into it.
make_charts() {
  local chart name
  need_helm
  for chart in mirror controller; do
    name=$(sed -n 's/^name: //p' "infra/kubernetes/$chart/Chart.yaml")
    mkdir -p "$WORK/charts"
    cp -rL "infra/kubernetes/$chart" "$WORK/charts/$name"
    helm lint --quiet "$WORK/charts/$name" >&2
    pack "$WORK/charts" "$OUT/$name-$VERSION.tgz" "$name"
    helm template check "$OUT/$name-$VERSION.tgz" >/dev/null
  done
}

# `kubectl krew install` takes the archives of the programs by their hashes.
make_krew() {
  local arch name
  [[ -f $OUT/catalog-mirror-$VERSION-linux-${ARCHS[0]}.tar.gz ]] || make_programs
  {
    cat <<YAML
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: catalog-mirror
spec:
  version: v$VERSION
  homepage: $REPOSITORY
  shortDescription: Mirror operator catalogs and plan upgrades
  description: |
    Mirrors operator catalogs (OLM file-based catalogs), lists the images that they need, writes
    the manifests that lead a cluster to the mirror, and plans upgrades of installed operators.
  platforms:
YAML
    for arch in "${ARCHS[@]}" "${GLIBC_ARCHS[@]}"; do
      name=catalog-mirror-$VERSION-linux-$arch
      cat <<YAML
  - selector: {matchLabels: {os: linux, arch: $arch}}
    uri: $REPOSITORY/releases/download/v$VERSION/$name.tar.gz
    sha256: $(sha256 "$OUT/$name.tar.gz")
    bin: catalog-mirror
    files:
    - {from: $name/catalog-mirror, to: .}
    - {from: $name/LICENSE, to: .}
YAML
    done
  } >"$OUT/catalog-mirror.yaml"
}

make_manual() {
  build_book "$WORK/book" "v$VERSION"
  mkdir -p "$WORK/files"
  cp -r "$WORK/book" "$WORK/files/catalog-mirror-$VERSION-manual"
  pack "$WORK/files" "$OUT/catalog-mirror-$VERSION-manual.tar.gz" "catalog-mirror-$VERSION-manual"
}

# One file with all that a site without a connection needs. infra/INSTALL.md has the commands of the other side.
make_airgap() {
  local folder=$WORK/files/catalog-mirror-$VERSION-airgap program arch
  need_built
  [[ -f $OUT/catalog-mirror-$VERSION.tgz ]] || make_charts
  [[ -d $WORK/book ]] || build_book "$WORK/book" "v$VERSION"
  mkdir -p "$folder/images" "$folder/charts" "$folder/bin"
  for program in "${PROGRAMS_OF_IMAGES[@]}"; do
    cp -r "$BUILT/layout-$program" "$folder/images/$program"
    cp "$OUT/$program-$VERSION.tgz" "$folder/charts"
  done
  for arch in "${ARCHS[@]}" "${GLIBC_ARCHS[@]}"; do cp "$BUILT/catalog-mirror-$arch" "$folder/bin/catalog-mirror-linux-$arch"; done
  cp -r "$WORK/book" "$folder/manual"
  cp LICENSE infra/INSTALL.md "$folder"
  checksums "$folder" >"$WORK/sums"
  mv "$WORK/sums" "$folder/SHA256SUMS"
  pack "$WORK/files" "$OUT/catalog-mirror-$VERSION-airgap.tar" "$(basename "$folder")"
}

# checksums FOLDER: prints those of all files below it but signatures.
checksums() {
  (
    cd "$1" || die "there is no folder $1"
    find . -type f ! -name SHA256SUMS ! -name '*.sig' ! -name '*.intoto.jsonl' ! -name cosign.pub -printf '%P\n' | LC_ALL=C sort |
      xargs -d '\n' sha256sum
  )
}

# provenance COMMAND: writes or checks the statement.
provenance() {
  python3 -B "$LIB/provenance.py" "$1" "$OUT" "$VERSION" "$REVISION" "$CREATED" "${OPTION[profile]}" "${OPTION[arch]}" "${PARTS[@]}"
}

# check_files: against the checksums and the statement, which say what this checkout, compiler and command would say.
check_files() {
  [[ -f $OUT/SHA256SUMS && -f $OUT/$STATEMENT ]] || die "$OUT has no SHA256SUMS or no $STATEMENT, so it is no release"
  checksums "$OUT" >"$WORK/sums"
  cmp "$WORK/sums" "$OUT/SHA256SUMS" >&2 || die "the files of $OUT are not those of its SHA256SUMS"
  provenance check
}

# run_cosign WHAT ARGUMENT...: WHAT is what has failed if it fails. By default cosign compares no file of more than 128 MiB with a statement.
run_cosign() { COSIGN_MAX_ATTACHMENT_SIZE=1GB cosign "${@:2}" >"$WORK/cosign.log" 2>&1 || die "$1: $(tail -3 "$WORK/cosign.log")"; }

# check_key: before hours of building. $WORK/cosign.pub is the public key afterwards.
check_key() {
  [[ $REVISION =~ ^[0-9a-f]{40}$ ]] || die "the tree differs from its commit, or has none: only what others can fetch is signed"
  run_cosign "$KEY cannot be read" public-key --key "$KEY" --outfile "$WORK/cosign.pub"
}

# sign_blob FILE SIGNATURE
sign_blob() {
  run_cosign "$1 cannot be signed" sign-blob --yes --key "$KEY" --tlog-upload=false --output-signature "$2" "$1"
}

# sign_files: each signature is verified at once, as INSTALL.md does it. The statement is signed as an envelope too (DSSE), from which
# `cosign verify-blob-attestation` and admission controllers read it.
sign_files() {
  local file
  rm -f "$OUT"/*.sig "$OUT/$ENVELOPE" "$OUT/cosign.pub"
  for file in "$OUT"/*; do
    sign_blob "$file" "$file.sig"
    run_cosign "the signature of $file does not verify" verify-blob --key "$WORK/cosign.pub" --insecure-ignore-tlog --signature "$file.sig" "$file"
  done
  python3 -B "$LIB/provenance.py" payload "$OUT/$STATEMENT" >"$WORK/payload"
  sign_blob "$WORK/payload" "$WORK/payload.sig"
  python3 -B "$LIB/provenance.py" envelope "$OUT/$STATEMENT" "$WORK/payload.sig" >"$OUT/$ENVELOPE"
  jq -r '.subject[].name' "$OUT/$STATEMENT" >"$WORK/subjects"
  while read -r file; do
    run_cosign "the signed statement does not verify $file" verify-blob-attestation --key "$WORK/cosign.pub" --insecure-ignore-tlog \
      --type slsaprovenance1 --signature "$OUT/$ENVELOPE" "$OUT/$file"
  done <"$WORK/subjects"
  cp "$WORK/cosign.pub" "$OUT"
}
