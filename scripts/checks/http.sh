# The description of the HTTP API, and the end of `serve` while curl reads. The tests of shared/serving/api have the HTTP contract.
# shellcheck shell=bash

STORE=$WORK/store
is "a catalog to serve is published" "$(outcome "$STORE" "h=oci:$LAYOUT:$LAST_TAG")" "published 10"
HASH=$(content_hash "$STORE" h)
serve "$STORE"

need_python_tools
curl -sSf "$URL/openapi.json" >"$WORK/openapi.json"
succeeds "openapi-spec-validator accepts the document" openapi-spec-validator "$WORK/openapi.json"
need_redocly
succeeds "redocly accepts the document" "$REDOCLY" lint "$WORK/openapi.json"

# An answer under way is finished, though slowly.
curl -sSf --limit-rate 8M "$URL/catalogs/h/api/v1/all" >"$WORK/slow" &
DOWNLOAD=$!
wait_for 5 test -s "$WORK/slow"
ends_well "SIGTERM ends serve" "$SERVER_PID"
wait "$DOWNLOAD"
is "an answer under way is finished before" "$(sha256 "$WORK/slow")" "$HASH"
