# Catalogs to measure with, medians, and the rows of the table.
# shellcheck shell=bash

# row WHAT FIGURE UNIT [FLOOR ITS-FIGURE]: and the ratio. A figure may have its spread behind it.
row() {
  awk -v CONVFMT=%.6g -v what="$1" -v figure="$2" -v unit="$3" -v floor="${4:-}" -v its="${5:-}" '
    function shown(value) { return (value ~ /^[0-9.]+$/ ? value + 0 : value) " " unit }
    BEGIN {
      ratio = its + 0 ? sprintf("%.2f", figure / its) : ""
      printf "%-44s %16s   %-34s %16s %7s\n", what, shown(figure), floor, floor ? shown(its) : "", ratio
    }'
}

# measure RUNS PREPARE COMMAND...: `wall cpu peak` in ms and MB, and one of them.
measure() { python3 "$LIB/measure.py" "$@"; }
wall() { cut -d' ' -f1 <<<"$1"; }
cpu() { cut -d' ' -f2 <<<"$1"; }
peak() { cut -d' ' -f3 <<<"$1"; }

runs() { case $1 in huge) echo 1 ;; *) if [[ -n $QUICK ]]; then echo 3; else echo 5; fi ;; esac }

# The canonical bytes of a published catalog, in MB.
lines_mb() { snapshot "$1" c | jq '.size / 1048576'; }

# publish STORE CATALOG
publish() { "${POLL[@]}" --store "$1" --catalog "c=$PLAIN_REGISTRY/ns/$2:v1" >/dev/null; }

# full_catalog: FULL is the folder of the full catalog, or that of the series' first state in a quick run or without a data folder.
full_catalog() {
  local data
  data=$(data_folder)
  FULL=$SERIES/000/configs
  [[ -n $data && -z $QUICK ]] || return 0
  FULL=$WORK/full/configs
  [[ -d $FULL ]] || unpack "$data/community-full.tar.zst" "$WORK/full"
}

# publish_full STORE
publish_full() {
  full_catalog
  "${POLL[@]}" --store "$1" --catalog "c=dir:$FULL" >/dev/null || true
}

# make_catalogs: small (YAML, the series' first state).
make_catalogs() {
  SMALL=small CATALOGS=(small)
  AUTH_FILE=$WORK/no-auth.json
  echo '{}' >"$AUTH_FILE"
  push_folder small "$SERIES/000/configs"
}

# make_large_catalogs: of many packages as JSON: large (150 MB), huge (1.5 GB).
make_large_catalogs() {
  full_catalog
  if [[ $FULL == "$SERIES"/* ]]; then
    say "only the small example catalog is measured"
    return
  fi
  make_catalog large 150000000
  make_catalog huge 1500000000
}

make_catalog() {
  CATALOGS+=("$1")
  say "making the $1 catalog"
  python3 "$LIB/multiply.py" "$FULL" "$WORK/$1" "$2"
  push_folder "$1" "$WORK/$1"
  rm -r "$WORK/${1:?}"
}

# serve_static FOLDER: nginx, tuned as one would for static files. STATIC is its URL.
serve_static() {
  start_nginx "$1" "sendfile on; tcp_nopush on; keepalive_requests 1000000000; open_file_cache max=100;"
  STATIC=$NGINX
}

# package_near STORE SIZE BYTES: the package whose SIZE, `.size` as it is stored or `.lines.size`, is nearest.
package_near() { snapshot "$1" c | jq -r --argjson bytes "$3" "[.packages[]] | min_by(($2 - \$bytes) | fabs) | .name"; }

# size_of PATH CODING: the bytes of an answer.
size_of() { curl -sSf -H "Accept-Encoding: $2" "$URL/$1" | wc -c; }

# compare WHAT FILE PATH HEADER: requests a second for the path, for the same answer by hyper alone, and for the same bytes as a
# static file of nginx, in turn: the medians, and the smallest and the largest in brackets.
compare() {
  local turn turns=5 theirs=$4 figures=$WORK/rate-$2
  [[ -z $QUICK ]] || turns=2
  curl -sSf "$URL/$3" -H "${4/If-None-Match:*/X-None: x}" >"$WORK/static/$2"
  # A 304 has no body, of which curl makes no file.
  curl -sS "$URL/$3" -H "$4" -D "$WORK/floor-head" >"$WORK/floor-body"
  start_floor "$WORK/floor-head" "$WORK/floor-body"
  # nginx has its own tags.
  if [[ $4 == If-None-Match:* ]]; then theirs="If-None-Match: $(field "$STATIC/$2" etag)"; fi
  for ((turn = 0; turn < turns; turn++)); do
    rate "$URL/$3" "$4" >>"$figures-ours"
    rate "http://$FLOOR/$3" "$4" >>"$figures-floor"
    rate "$STATIC/$2" "$theirs" >>"$figures-theirs"
  done
  end_process "$STARTED_PID"
  row "$1" "$(spread "$figures-ours" 1)" /s nginx "$(spread "$figures-theirs" 1)"
  row "  beside hyper alone" "$(spread "$figures-ours" 1)" /s hyper "$(spread "$figures-floor" 1)"
}

# spread FILE COLUMN: the median, and the smallest and the largest in brackets.
spread() { sort -n -k"$2,$2" "$1" | awk -v c="$2" '{v[NR] = $c} END {m = v[int((NR + 1) / 2)]; printf "%.1f (%.1f-%.1f)", m, v[1], v[NR]}'; }

# start_floor HEAD BODY: a server with one answer, at FLOOR.
start_floor() {
  if [[ ! -x ${FLOOR_PROGRAM:-} ]]; then
    (cd "$ROOT" && cargo build --locked --quiet --profile dist -p server --example floor)
    FLOOR_PROGRAM=$(target_folder)/dist/examples/floor
  fi
  FLOOR=127.0.0.1:$(free_port)
  start "$WORK/floor.log" "$FLOOR_PROGRAM" "$FLOOR" "$1" "$2"
  wait_for 10 curl -s -o "$WORK/null" "http://$FLOOR/"
}

# rate URL HEADER [OPTION...]: wrk's requests a second; answers that are errors end the run.
rate() {
  local output
  output=$(wrk -t2 -c16 -d2s -H "$2" "${@:3}" "$1")
  if grep -q 'Non-2xx or 3xx' <<<"$output"; then die "errors from $1: $output"; fi
  awk '/Requests\/sec/ {print $2}' <<<"$output"
}
