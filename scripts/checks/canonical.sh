# The canonical form against what catalogd made of the same files: a real catalog of 200 MB, and a table of odd cases.
# Both need the folder of real catalogs; for everyone else the repository's own tests hold the form.
# shellcheck shell=bash

DATA=$(data_folder)
if [[ -z $DATA ]]; then
  say "no data folder: the canonical form is left to cargo test"
  is "the example catalog renders twice to the same bytes" \
    "$("$CATALOG_MIRROR" render "$ROOT/tests/catalogs/v1" | sha256)" "$("$CATALOG_MIRROR" render "$ROOT/tests/catalogs/v1" | sha256)"
else
  unpack "$DATA/community-full.tar.zst" "$WORK/full"
  is "community-full renders as catalogd serves it" "$("$CATALOG_MIRROR" render "$WORK/full/configs" | sha256)" \
    "$(grep -o 'sha256 [0-9a-f]\{64\}' "$DATA/README.md" | head -1 | cut -d' ' -f2)"
  rm -r "$WORK/full"
  unpack "$DATA/canonical-cases.tar.zst" "$WORK/cases"
  CASES=$(dirname "$(find "$WORK/cases" -maxdepth 3 -name fbc -type d | head -1)")
  cd "$ROOT" || exit
  CATALOG_MIRROR_CASES=$(dirname "$CASES") succeeds "every case gives the bytes of catalogd" \
    cargo test --quiet --workspace --test it -- --ignored recorded_cases
fi
