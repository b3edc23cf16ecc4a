# The HTTP contract, asked by curl of the program itself.
# shellcheck shell=bash

STORE=$WORK/store
is "a catalog to serve is published" "$(outcome "$STORE" "h=oci:$LAYOUT:$LAST_TAG")" "published 10"
serve "$STORE"

metrics() {
  matches "metrics count requests" "$(curl -sSf "$URL/metrics")" 'catalog_mirror_[a-z_]*requests'
}

# An answer under way is finished, though slowly, and then the server is gone, with exit code 0.
draining() {
  local download code=0
  curl -sSf --limit-rate 8M "$ALL" >"$WORK/slow" &
  download=$!
  wait_for 5 test -s "$WORK/slow"
  kill -TERM "$SERVER_PID"
  wait "$download" || true
  is "SIGTERM lets an answer under way finish" "$(sha256 "$WORK/slow")" "$HASH"
  wait "$SERVER_PID" || code=$?
  is "and then serve exits" "$code" 0
}

contract h "$(content_hash "$STORE" h)" "$(shards "$STORE" h | wc -l)" "$(shards "$STORE" h | head -1 | cut -d' ' -f1)"
metrics
draining
