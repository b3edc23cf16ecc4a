# Builds programs for the processor of this machine and for others. The same sources, compiler and tools give the same bytes.
# shellcheck shell=bash

# Programs for musl are static. Where the compiler has no musl, a program needs glibc as old as that of Red Hat 8.
GLIBC=2.28
declare -gA TARGETS=([amd64]=x86_64-unknown-linux-musl [arm64]=aarch64-unknown-linux-musl [s390x]=s390x-unknown-linux-gnu)
# The logarithm of the largest page of a kernel, which is 64 kB on some. The allocator stops where pages are larger than it was compiled for.
declare -gA PAGES=([amd64]=12 [arm64]=16 [s390x]=12)

# with_flags FLAG... -- COMMAND...: cargo under these flags of rustc, in place of RUSTFLAGS. Names of folders are in the texts of panics, so
# they are written otherwise.
with_flags() {
  local sources pair flags=()
  while [[ $1 != -- ]]; do
    flags+=("$1")
    shift
  done
  shift
  # Where the sources of the standard library are installed, rustc writes their folder instead of this name. Of two folders that match, it
  # takes the later one.
  sources=$(rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')
  for pair in "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$sources" "$ROOT=/src" "$(target_folder)=/target"; do
    flags+=("--remap-path-prefix=$pair")
  done
  env -u RUSTFLAGS CARGO_INCREMENTAL=0 CARGO_ENCODED_RUSTFLAGS="$(IFS=$'\x1f' && printf %s "${flags[*]}")" "$@"
}

# build_program PACKAGE ARCH PROFILE FILE: with zig, by need_image_tools. Writes the program to FILE and its SBOM to FILE.cdx.json.
build_program() {
  local target=${TARGETS[$2]} suffix=
  [[ $target == *-musl ]] || suffix=.$GLIBC
  need_rust_target "$target"
  with_flags -- env PATH="$VENV/bin:$PATH" JEMALLOC_SYS_WITH_LG_PAGE="${PAGES[$2]}" cargo zigbuild --locked --profile "$3" \
    --target "$target$suffix" --package "$1" --message-format json-render-diagnostics >"$WORK/messages-$2"
  cp "$(jq -r 'select(.reason == "compiler-artifact").executable // empty' "$WORK/messages-$2")" "$4"
  write_sbom "$1" "$2" "$4.cdx.json"
}

# write_sbom PACKAGE ARCH FILE [OPTION...]: of what build_program has built last for the processor.
write_sbom() {
  [[ -f $WORK/metadata ]] || cargo metadata --locked --format-version 1 >"$WORK/metadata"
  python3 "$LIB/sbom.py" "$1" "${TARGETS[$2]}" "$WORK/metadata" "$CREATED" --component "pkg:generic/rust-std@$(rustc -V | cut -d' ' -f2)" "${@:4}" \
    <"$WORK/messages-$2" >"$3"
}
