# `validate` against opm itself, operator-registry v1.73.0: catalogs that break each rule in at least five ways, valid ones
# that nearly break one, and both again made of real packages.
# shellcheck shell=bash

DATA=$(data_folder)
CASES=$WORK/cases.jsonl

need_opm
"$TESTED/examples/mutations" >"$CASES"
"$CATALOG_MIRROR" render "$SERIES/000/configs" >"$WORK/lines"
jq -r 'select(.schema == "olm.bundle") | .package' "$WORK/lines" | sort | uniq -c | awk '$1 > 2 {print $2}' | head -3 >"$WORK/names"
# Each package takes other mutations, every seventh of the table.
at=0
while read -r name; do
  jq -c --arg name "$name" 'select(.package == $name or (.schema == "olm.package" and .name == $name))' "$WORK/lines" \
    >"$WORK/package"
  "$TESTED/examples/mutations" "$WORK/package" | awk -v at=$((at += 1)) 'NR % 7 == at' >>"$CASES"
done <"$WORK/names"
for folder in "$ROOT"/tests/catalogs/v?; do
  "$CATALOG_MIRROR" render "$folder" | jq --raw-input --slurp -c '{rule: "valid", edits: "", package: "", text: .}' >>"$CASES"
done
opm-oracle validate <"$CASES" >"$WORK/answers.jsonl"
succeeds "opm and the mirror agree on $(wc -l <"$CASES") catalogs" \
  python3 "$LIB/validations.py" "$CATALOG_MIRROR" "$CASES" "$WORK/answers.jsonl" "$WORK/catalogs"

if [[ -n $DATA ]]; then
  unpack "$DATA/community-full.tar.zst" "$WORK/full"
  is "the real catalog of 333 packages is valid" \
    "$("$CATALOG_MIRROR" validate --json "$WORK/full/configs" | jq -c '[.valid, .servable]')" '[true,true]'
  rm -r "$WORK/full"
fi
