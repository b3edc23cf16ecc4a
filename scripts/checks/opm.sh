# The registry API against opm itself, operator-registry v1.73.0: every package, channel, bundle and custom schema, the APIs
# that bundles provide, and names that are not there. Messages are compared as bytes, and errors by code and text. Then the edges of
# upgrade graphs, the fewest steps along them as the page finds them, and those that OLM v0 takes from every installed version, by its own
# resolver. The part cluster_upgrade has the manifests that the page writes.
# shellcheck shell=bash

DATA=$(data_folder)
RECORDED=$ROOT/shared/serving/grpc/tests/recorded

# answers_agree NAME FOLDER: its server goes on until the next one.
answers_agree() {
  [[ -z ${SERVER_PID:-} ]] || kill "$SERVER_PID"
  "$CATALOG_MIRROR" render "$2" >"$WORK/lines"
  OPM_ORACLE_CUSTOM=$(jq -r 'select(.schema | startswith("olm.") | not) | "\(.schema)/\(.package // "")"' "$WORK/lines" | sort -u)
  export OPM_ORACLE_CUSTOM
  opm-oracle answers "$2" >"$WORK/expected"
  rm -rf "$WORK/store"
  "$CATALOG_MIRROR" poll --store "$WORK/store" --catalog "c=dir:$2" >"$WORK/poll.out"
  serve_grpc "$WORK/store"
  succeeds "opm and the mirror agree on $(wc -l <"$WORK/expected") answers about $1" opm-oracle ask "$GRPC" <"$WORK/expected"
}

# olm_agrees NAME FOLDER: a plan of all versions of the published catalog has the steps that OLM v0 takes. Not in a short run: OLM takes
# minutes to compile.
olm_agrees() {
  if $SHORT; then return; fi
  need_olm
  olm-oracle "$2" >"$WORK/steps"
  succeeds "a plan of $(wc -l <"$WORK/steps") versions of $1 has the steps of OLM v0" \
    python3 -B "$LIB/olm_steps.py" "$WORK/steps" "$CATALOG_MIRROR" "$WORK/store" c
}

# edges: those that `graph` draws of all packages of the published catalog, as lines of `opm-oracle graph`.
edges() {
  local name
  "$CATALOG_MIRROR" ls --json --store "$WORK/store" c | jq -r '.[].name // empty' | while read -r name; do
    "$CATALOG_MIRROR" graph --store "$WORK/store" --format dot c "$name" | awk -F'"' -v OFS='\t' -v package="$name" '
      /^    label=/ {channel = $2}
      /^    n[0-9]+ \[/ {split($1, node, " "); names[node[1]] = $2}
      /^    n[0-9]+ -> / {split($1, edge, " "); print package, channel, names[edge[1]], $2, names[edge[3]]}'
  done
}

# page_agrees FOLDER: what the page makes of the published catalog: upgrades, ways, and a basket.
page_agrees() {
  opm-oracle graph "$1" >"$WORK/edges"
  page() { node "$LIB/page_catalog.mjs" "$1" "$WORK/lines" "${@:2}"; }
  succeeds "the page shows the upgrades that opm draws" page edges "$WORK/edges"
  succeeds "and the ways of upgrade" page ways "$($SHORT && echo 100 || echo 1000)" "$CATALOG_MIRROR" "$WORK/store" c
  for seed in $($SHORT && echo 1 || echo 1 2 3); do
    page basket "$seed" "$HOST/c:latest" "$WORK/basket.yaml" >"$WORK/chosen"
    "$CATALOG_MIRROR" compose --plain-http "$HOST" "$WORK/basket.yaml" >"$WORK/composed" 2>"$WORK/compose.err"
    same_lines "basket $seed selects its channels" "$(jq -r 'select(.schema == "olm.channel") | "\(.package) \(.name)"' "$WORK/composed")" "$(cut -d' ' -f1,2 "$WORK/chosen")"
    is "and its versions" "$(comm -23 <(awk 'NF > 2 {print $1, $3}' "$WORK/chosen" | sort -u) <(jq -r 'select(.schema == "olm.bundle")
      | "\(.package) \(.properties[] | select(.type == "olm.package").value.version)"' "$WORK/composed" | sort -u))" ""
  done
}

need_opm
need_debian node=nodejs
mkdir "$WORK/crafted"
cp "$RECORDED/crafted.jsonl" "$WORK/crafted/catalog.json"
for folder in "$WORK/crafted" "$ROOT/tests/catalogs/v1"; do
  name=${folder##*/}
  answers_agree "the catalog $name" "$folder"
  # To record them again: `OPM_ORACLE_FULL=1 OPM_ORACLE_CUSTOM=... opm-oracle answers FOLDER`, as here.
  succeeds "the recorded answers about $name are those of opm" \
    cmp <(OPM_ORACLE_FULL=1 opm-oracle answers "$folder") "$RECORDED/$name.answers.jsonl"
done
answers_agree "its next version" "$ROOT/tests/catalogs/v2"
answers_agree "the series" "$SERIES/000/configs"
olm_agrees "the series" "$SERIES/000/configs"
page_agrees "$SERIES/000/configs"

if [[ -n $DATA ]]; then
  for catalog in $(real_catalogs); do
    unpack "$DATA/community-$catalog.tar.zst" "$WORK/data"
    folder=$(configs_folder "$WORK/data")
    answers_agree "the real catalog $catalog" "$folder"
    olm_agrees "the real catalog $catalog" "$folder"
    page_agrees "$folder"
    same_lines "upgrades of $catalog are those that opm draws: $(sort -u "$WORK/edges" | wc -l) edges" "$(edges | sort -u)" "$(sort -u "$WORK/edges")"
    rm -r "$WORK/data"
  done
fi
