# Two polls at once, and polls that are killed at any moment: what is served is always a whole state.
# shellcheck shell=bash

REPOSITORY=$REGISTRY/ns/crashes

# tag STEP: of the image of a step.
tag() { printf 'step-%03d' "$1"; }

race() {
  local store=$WORK/race first second
  outcome "$store" "r=$REPOSITORY:$(tag 0)" >/dev/null
  copy_image "oci:$LAYOUT:$(tag 1)" "docker://$REPOSITORY:race"
  poll "$store" "r=$REPOSITORY:race" >"$WORK/first" 2>&1 &
  first=$!
  poll "$store" "r=$REPOSITORY:race" >"$WORK/second" 2>&1 &
  second=$!
  wait "$first" || true
  wait "$second" || true
  same_lines "of two polls at once one publishes" "$(jq -r .outcome "$WORK/first" "$WORK/second")" $'published\nunchanged'
  is "the serial grows by one" "$(jq .serial "$store/catalogs/r/current.json")" 2
  succeeds "verify finds nothing wrong after a race" "$CATALOG_MIRROR" verify --store "$store"
}

# Kills a poll of a changed image after a random time, then asks what is served and verifies everything.
killed_polls() {
  local store=$WORK/killed round step before after begin limit process finished=0 fine=0
  local -A hash
  begin=$(now_ms)
  outcome "$store" "k=$REPOSITORY:$(tag 0)" >/dev/null
  # A little longer than a poll takes here, so that some of the polls are not hit.
  limit=$((($(now_ms) - begin) * 6 / 5))
  serve "$store"
  for round in $(seq 1 20); do
    step=$((round % 2 ? 1 : 0))
    ((round > 2)) || hash[$step]=$("$CATALOG_MIRROR" render "oci:$LAYOUT:$(tag $step)" | sha256)
    before=$(content_hash "$store" k)
    # Forced, so that it pulls and renders all of it, whatever the poll before it did.
    "$CATALOG_MIRROR" poll --store "$store" --catalog "k=$REPOSITORY:$(tag "$step")" --force \
      --auth-file "$AUTH_FILE" --ca-file "$REGISTRY_CA" >/dev/null 2>&1 &
    process=$!
    sleep "$(random_seconds "$limit")"
    kill -9 "$process" 2>/dev/null || finished=$((finished + 1))
    wait "$process" 2>/dev/null || true
    after=$(curl -sSf "$URL/catalogs/k/content-hash")
    if [[ $after == "$before" || $after == "${hash[$step]}" ]] && "$CATALOG_MIRROR" verify --store "$store" >"$WORK/verify" 2>&1; then
      fine=$((fine + 1))
    else
      not_ok "kill -9 in round $round leaves a whole state" "$before -> $after" "$(cat "$WORK/verify")"
    fi
  done
  is "20 polls killed ($finished were done before) left a whole state" "$fine" 20
  hash[2]=$("$CATALOG_MIRROR" render "oci:$LAYOUT:$(tag 2)" | sha256)
  is "the next poll finishes the job" "$(outcome "$store" "k=$REPOSITORY:$(tag 2)")" "published 10"
  is "and it is served" "$(curl -sSf "$URL/catalogs/k/api/v1/all" | sha256)" "${hash[2]}"
  succeeds "verify finds nothing wrong after 20 kills" "$CATALOG_MIRROR" verify --store "$store"
}

for step in 0 1 2; do copy_image "oci:$LAYOUT:$(tag "$step")" "docker://$REPOSITORY:$(tag "$step")"; done
race
killed_polls
