# This program beside an older one, in turn.
# shellcheck shell=bash

# BEFORE names the older program. A figure that is worse by more than 5 % is marked.
bench_history() {
  local turn turns=15 what columns
  [[ -z $QUICK ]] || turns=2
  [[ -x ${BEFORE:-} ]] || die "name an older program in BEFORE"
  start_registry
  push_large
  push_bench "oci:$LAYOUT:step-000" yaml
  for ((turn = 0; turn < turns; turn++)); do
    # Each is the first in every other turn.
    if ((turn % 2)); then publish_history now "$CATALOG_MIRROR" "$turn"; fi
    publish_history before "$BEFORE" "$turn"
    if ((turn % 2 == 0)); then publish_history now "$CATALOG_MIRROR" "$turn"; fi
  done
  for what in cold changed yaml; do
    for columns in "1 wall ms" "2 CPU ms" "3 memory MB"; do history_row "$what" $columns; done
  done
  serve_history "$turns"
}

# publish_history NAME PROGRAM TURN
publish_history() {
  local CATALOG_MIRROR=$2
  our_turn "cold-$1" large "store-$1-$3"
  our_turn "changed-$1" changed "store-$1-$3"
  our_turn "yaml-$1" yaml "yaml-$1-$3"
}

# history_row WHAT COLUMN NAME UNIT: the medians, and the smallest and the largest in brackets.
history_row() {
  local now before mark=''
  now=$(spread "$WORK/ours-$1-now" "$2") before=$(spread "$WORK/ours-$1-before" "$2")
  if awk -v now="${now%% *}" -v before="${before%% *}" -v unit="$4" \
    'BEGIN {exit !(unit == "/s" ? now < before / 1.05 : now > before * 1.05)}'; then mark=' <- worse'; fi
  row "$1, $3$mark" "$now" "$4" before "$before"
}

# serve_history TURNS: requests a second of both, each from what it has published.
serve_history() {
  local turn name what path header
  local -A program=([before]=$BEFORE [now]=$CATALOG_MIRROR) url=()
  for name in before now; do
    CATALOG_MIRROR=${program[$name]} serve "$WORK/store-$name-0"
    url[$name]=$URL
  done
  while IFS='|' read -r what path header; do
    for ((turn = 0; turn < $1; turn++)); do
      for name in before now; do rate "${url[$name]}/catalogs/c/$path" "$header" >>"$WORK/ours-$what-$name"; done
    done
    history_row "$what" 1 rate /s
  done <<END
304|content-hash|If-None-Match: $(field "$URL/catalogs/c/content-hash" etag)
shard|packages/$(package_near "$WORK/store-now-0" .size 10000)|Accept-Encoding: zstd
metas|api/v1/metas?package=$(package_near "$WORK/store-now-0" .lines.size 69000)|Accept-Encoding: identity
all-gzip|api/v1/all|Accept-Encoding: gzip
END
}
