# The instructions of the main job, which a busy machine does not change, beside those of the last release.
# shellcheck shell=bash

# lib/instructions has the figures of the last release: for the real catalog v4.20 and, where there is no data folder, for the example
# catalog with its packages copied until it is as large. More than 5 % more is marked. Publications vary by 0.3 %, requests by 4 %, and
# all.json.gz by a tenth, as often as its threads wait for each other. RECORD=1 writes the figures of this run there. They depend on the
# build: lib/instructions has those of the one in scripts/long-checks, which keeps its symbols.
bench_instructions() {
  local configs=$SERIES/000/configs lines=$WORK/lines store=$WORK/counted tag package
  need_debian valgrind=valgrind nm=binutils
  (($(nm "$CATALOG_MIRROR" 2>/dev/null | wc -l))) || die "$CATALOG_MIRROR has no symbols"
  COUNTED=$(basename "$SERIES") COUNTS=$WORK/counts
  if [[ $COUNTED == series ]]; then
    COUNTED=example configs=$WORK/copies
    python3 -B "$LIB/multiply.py" "$ROOT/tests/catalogs/v1" "$configs" 14000000
  fi
  # The program starts itself again.
  printf '#!/bin/sh\nexec valgrind --tool=callgrind --trace-children=yes --callgrind-out-file="%s" "%s" "$@"\n' "$COUNTS" "$CATALOG_MIRROR" >"$WORK/counting"
  chmod +x "$WORK/counting"
  mkdir "$lines"
  "$CATALOG_MIRROR" render "dir:$configs" >"$lines/catalog.json"

  counted_poll "publication of YAML" "$store-yaml" "$configs"
  counted_poll "publication of JSON" "$store" "$lines"
  counted_poll "unchanged catalog" "$store" "$lines"
  package=$(package_near "$store" .lines.size 69000)
  jq -nc --arg package "$package" '{schema: "example.note", package: $package}' >>"$lines/catalog.json"
  counted_poll "one changed package" "$store" "$lines"

  CATALOG_MIRROR=$WORK/counting serve "$store"
  tag=$(field "$URL/catalogs/c/content-hash" etag)
  counted_requests "304" 1000 content-hash "If-None-Match: $tag"
  counted_requests "metas of a package" 1000 "api/v1/metas?package=$package" "Accept-Encoding: identity"
  counted_requests "all.json.gz" 300 api/v1/all "Accept-Encoding: gzip"
  end_process "$SERVER_PID"
}

# counted_poll WHAT STORE FOLDER
counted_poll() {
  "$WORK/counting" poll --json --store "$2" --catalog "c=dir:$3" >"$WORK/report" 2>"$WORK/valgrind.log" || die "no poll under valgrind: $(cat "$WORK/valgrind.log")"
  count_row "$1" "$COUNTS" 1
}

# counted_requests WHAT NUMBER PATH HEADER: the instructions of one request, by that many after each other on one connection.
counted_requests() {
  local before after
  curl -sSf -o "$WORK/null" -H "$4" "$URL/catalogs/c/$3"
  before=$(dumps)
  callgrind_control --dump "$SERVER_PID" >/dev/null 2>&1
  curl -sSf -o "$WORK/null" -H "$4" "$URL/catalogs/c/$3#[1-$2]"
  callgrind_control --dump "$SERVER_PID" >/dev/null 2>&1
  after=$(dumps)
  ((after == before + 2)) || die "callgrind did not write what it counted"
  count_row "$1" "$COUNTS.$after" "$2"
}
dumps() { find "$WORK" -maxdepth 1 -name "$(basename "$COUNTS").*" | wc -l; }

# count_row WHAT DUMP DIVISOR
count_row() {
  local count recorded mark='' file=$LIB/instructions
  count=$(python3 -B "$LIB/instructions.py" "$2" "$CATALOG_MIRROR" "$3")
  recorded=$(awk -F'\t' -v of="$COUNTED" -v what="$1" '$1 == of && $2 == what {print $3}' "$file")
  if awk -v now="$count" -v before="${recorded:-0}" 'BEGIN {exit !(before && now > before * 1.05)}'; then mark=' <- more'; fi
  row "$1, $COUNTED$mark" "$count" "M instructions" "${recorded:+last release}" "$recorded"
  if [[ -n ${RECORD:-} ]]; then
    { awk -F'\t' -v of="$COUNTED" -v what="$1" '$1 != of || $2 != what' "$file"; printf '%s\t%s\t%s\n' "$COUNTED" "$1" "$count"; } >"$WORK/recorded"
    cp "$WORK/recorded" "$file"
  fi
}
