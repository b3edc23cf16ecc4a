# What curl, jq and other programs make of the answers of `serve`. The tests of shared/http have the HTTP contract.
# shellcheck shell=bash

STORE=$WORK/store
is "a catalog to serve is published" "$(outcome "$STORE" "h=oci:$LAYOUT:$LAST_TAG")" "published 10"
HASH=$(content_hash "$STORE" h)
serve "$STORE"
ALL=$URL/catalogs/h/api/v1/all
PACKAGE=$(shards "$STORE" h | head -1 | cut -d' ' -f1)

is "curl | sha256sum is the content hash" "$(curl -sSf "$ALL" | sha256)" "$HASH"
is "curl --compressed is too" "$(curl -sSf --compressed "$ALL" | sha256)" "$HASH"
# As catalogd: the fields as they stand in the document, so `package` does not find the olm.package itself.
for query in "package=$PACKAGE" "schema=olm.package" "schema=olm.bundle&package=$PACKAGE" "schema=olm.package&name=$PACKAGE"; do
  expected=$(curl -sSf "$ALL" | jq -c --arg q "$query" '. as $meta | ($q / "&" | map(. / "=" | {(.[0]): .[1]}) | add) as $want
    | select(all($want | to_entries[]; .value == $meta[.key]))' | sha256)
  is "metas?$query" "$(curl -sSf "$URL/catalogs/h/api/v1/metas?$query" | jq -c . | sha256)" "$expected"
done
need_python_tools
curl -sSf "$URL/openapi.json" >"$WORK/openapi.json"
succeeds "openapi-spec-validator accepts the document" openapi-spec-validator "$WORK/openapi.json"

# An answer under way is finished, though slowly.
curl -sSf --limit-rate 8M "$ALL" >"$WORK/slow" &
DOWNLOAD=$!
wait_for 5 test -s "$WORK/slow"
ends_well "SIGTERM ends serve" "$SERVER_PID"
wait "$DOWNLOAD"
is "an answer under way is finished before" "$(sha256 "$WORK/slow")" "$HASH"
