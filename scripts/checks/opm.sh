# The registry API against opm itself, operator-registry v1.73.0: every package, channel, bundle and custom schema, the APIs
# that bundles provide, and names that are not there. Messages are compared as bytes, and errors by code and text. Then the edges of
# upgrade graphs, and the fewest steps along them, of the page too.
# shellcheck shell=bash

DATA=$(data_folder)
RECORDED=$ROOT/shared/grpc/tests/recorded

# answers_agree NAME FOLDER
answers_agree() {
  local port
  port=$(free_port)
  "$CATALOG_MIRROR" render "$2" >"$WORK/lines"
  OPM_ORACLE_CUSTOM=$(jq -r 'select(.schema | startswith("olm.") | not) | "\(.schema)/\(.package // "")"' "$WORK/lines" | sort -u)
  export OPM_ORACLE_CUSTOM
  opm-oracle answers "$2" >"$WORK/expected"
  rm -rf "$WORK/store"
  "$CATALOG_MIRROR" poll --store "$WORK/store" --catalog "c=dir:$2" >"$WORK/poll.out"
  serve "$WORK/store" --grpc "127.0.0.1:$port"
  opm-oracle ask "127.0.0.1:$port" <"$WORK/expected" >"$WORK/actual"
  kill "$SERVER_PID"
  succeeds "opm and the mirror agree on $(wc -l <"$WORK/expected") answers about $1" \
    python3 "$LIB/registry_answers.py" "$WORK/expected" "$WORK/actual"
}

need_opm
need_debian node=nodejs
mkdir "$WORK/crafted"
cp "$RECORDED/crafted.jsonl" "$WORK/crafted/catalog.json"
answers_agree "crafted bundles" "$WORK/crafted"
# To record them again: `OPM_ORACLE_FULL=1 OPM_ORACLE_CUSTOM=... opm-oracle answers FOLDER`, as here.
succeeds "the recorded answers about crafted bundles are those of opm" \
  cmp <(OPM_ORACLE_FULL=1 opm-oracle answers "$WORK/crafted") "$RECORDED/crafted.answers.jsonl"
answers_agree "the example catalog" "$ROOT/tests/catalogs/v1"
succeeds "the recorded answers about the example catalog are those of opm" \
  cmp <(OPM_ORACLE_FULL=1 opm-oracle answers "$ROOT/tests/catalogs/v1") "$RECORDED/v1.answers.jsonl"
answers_agree "its next version" "$ROOT/tests/catalogs/v2"
answers_agree "the series" "$SERIES/000/configs"

if [[ -n $DATA ]]; then
  for catalog in $(real_catalogs); do
    unpack "$DATA/community-$catalog.tar.zst" "$WORK/data"
    answers_agree "the real catalog $catalog" "$(configs_folder "$WORK/data")"
    opm-oracle graph "$(configs_folder "$WORK/data")" >"$WORK/edges"
    succeeds "upgrades of $catalog are those that opm draws: $(sort -u "$WORK/edges" | wc -l) edges" \
      python3 "$LIB/upgrades.py" "$WORK/edges" "$CATALOG_MIRROR" "$WORK/store" c
    succeeds "and those that the page shows" node "$LIB/page_catalog.mjs" edges "$WORK/lines" "$WORK/edges"
    succeeds "with the same ways between versions" \
      node "$LIB/page_catalog.mjs" ways "$WORK/lines" "$($SHORT && echo 100 || echo 1000)" "$CATALOG_MIRROR" "$WORK/store" c
    rm -r "$WORK/data"
  done
fi
