# The canonical form against what catalogd made of the same files: a real catalog of 200 MB, and a table of odd cases.
# Both need the folder of real catalogs; for everyone else the repository's own tests hold the form.
# shellcheck shell=bash

DATA=$(data_folder)
if [[ -z $DATA ]]; then
  say "no data folder: the canonical form is left to cargo test"
else
  unpack "$DATA/community-full.tar.zst" "$WORK/full"
  is "community-full renders as catalogd serves it" "$("$CATALOG_MIRROR" render "$WORK/full/configs" | sha256)" \
    "$(grep -o 'sha256 [0-9a-f]\{64\}' "$DATA/README.md" | head -1 | cut -d' ' -f2)"
  rm -r "$WORK/full"
  unpack "$DATA/canonical-cases.tar.zst" "$WORK/cases"
  # catalogd loses or refuses what these hold; see shared/core/fbc/deviations.md. The last one is not in the order of its packages.
  different=(bigints json-numbers2 quoted-slash pkg-meta)
  found=()
  for fbc in "$WORK"/cases/*/fbc; do
    case=$(dirname "$fbc")
    if [[ -e $case/all.jsonl ]]; then
      "$CATALOG_MIRROR" render "$fbc" 2>/dev/null | cmp -s - "$case/all.jsonl" || found+=("$(basename "$case")")
    elif "$CATALOG_MIRROR" render "$fbc" &>/dev/null; then
      found+=("$(basename "$case")")
    fi
  done
  same_lines "every other case gives the bytes of catalogd" "$(printf '%s\n' "${found[@]}")" "$(printf '%s\n' "${different[@]}")"
fi
