# Builds the programs of images and releases with zig, for the processor of this machine and for others.
# shellcheck shell=bash

# Programs for musl are static. Where the compiler has no musl, a program needs glibc as old as that of Red Hat 8.
GLIBC=2.28
declare -gA TARGETS=([amd64]=x86_64-unknown-linux-musl [arm64]=aarch64-unknown-linux-musl
  [ppc64le]=powerpc64le-unknown-linux-gnu [s390x]=s390x-unknown-linux-gnu)
# The logarithm of the largest page of a kernel, which is 64 kB on some. The allocator stops where pages are larger than it was compiled for.
declare -gA PAGES=([amd64]=12 [arm64]=16 [ppc64le]=16 [s390x]=12)

# prepare_builds: the flags of cargo, and what `cargo metadata` prints, as $WORK/metadata.
prepare_builds() {
  local sources pair flags=()
  cargo metadata --locked --format-version 1 >"$WORK/metadata"
  # Names of folders are in the texts of panics. Of two that match, rustc takes the later one.
  # Where the sources of the standard library are installed, rustc writes their folder instead of this name.
  sources=$(rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')
  for pair in "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$sources" "$ROOT=/src" "$(target_folder)=/target"; do
    flags+=("--remap-path-prefix=$pair")
  done
  # In place of RUSTFLAGS, which would make another program.
  CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf %s "${flags[*]}")
  export CARGO_ENCODED_RUSTFLAGS CARGO_INCREMENTAL=0
}

# build_program PACKAGE ARCH PROFILE FILE: writes the program to FILE and its SBOM to FILE.cdx.json.
build_program() {
  local target=${TARGETS[$2]} suffix=
  [[ $target == *-musl ]] || suffix=.$GLIBC
  need_rust_target "$target"
  JEMALLOC_SYS_WITH_LG_PAGE=${PAGES[$2]} cargo zigbuild --locked --profile "$3" --target "$target$suffix" --package "$1" \
    --message-format json-render-diagnostics >"$WORK/messages"
  cp "$(jq -r 'select(.reason == "compiler-artifact").executable // empty' "$WORK/messages")" "$4"
  python3 "$LIB/sbom.py" "$1" "$target" "$WORK/metadata" "$CREATED" \
    --component "pkg:pypi/${CERTIFI/==/@}" --component "pkg:generic/rust-std@$(rustc -V | cut -d' ' -f2)" \
    <"$WORK/messages" >"$4.cdx.json"
}
