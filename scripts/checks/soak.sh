# Half a minute of scripts/soak: clients on every route while the catalog changes, its registry fails, and others write.
# shellcheck shell=bash

# How it ended; what it said last, if that was not well.
ended_well() {
  tail -n 12 "$WORK/soak.log"
  return "$1"
}

half_a_minute() {
  local report=$WORK/soak.json status=0
  CATALOG_MIRROR_LOAD=$TESTED/load "$ROOT/scripts/soak" --minutes 0.5 --json "$report" >"$WORK/soak.log" 2>&1 || status=$?
  succeeds "a mirror with everything against it serves for half a minute" ended_well "$status"
  is "$(jq .bodiesChecked "$report") bodies were what their tags say" "$(jq -c .errors "$report")" '[]'
  is "no path of the contract was left out" "$(jq -c .neverChecked "$report")" '[]'
  matches "the catalog changed meanwhile" "$(jq .publications.moving "$report")" '^[1-9]'
  is "no descriptor stayed open" "$(jq .descriptorsLeaked "$report")" 0
}

half_a_minute
