# The HTTP contract, asked by curl: what every server of a mirror answers, whatever runs it. The tests of shared/http have more rows.
# shellcheck shell=bash

# contract NAME HASH PACKAGES PACKAGE: asks URL for every row. The catalog NAME has that content hash and so many
# packages, one of which is PACKAGE. It has to be small enough to be answered without redirects.
contract() {
  NAME=$1 HASH=$2 PACKAGES=$3 PACKAGE=$4
  C=$URL/catalogs/$NAME
  ALL=$C/api/v1/all
  bodies
  conditions
  heads
  ranges
  metas
  errors
  documents
}

# The fields of an answer that HEAD must repeat; only the date may differ, and what a cache says of itself.
fields() { curl -sS -o /dev/null -D - "$@" | tr -d '\r' | grep -viE '^(date|age|cf-cache-status):'; }

bodies() {
  is "curl | sha256sum is the content hash" "$(curl -sSf "$ALL" | sha256)" "$HASH"
  is "curl --compressed is too" "$(curl -sSf --compressed "$ALL" | sha256)" "$HASH"
  is "so is all.json" "$(curl -sSf "$C/all.json" | sha256)" "$HASH"
  is "content-hash is a line of text" "$(curl -sSf "$C/content-hash")" "$HASH"
  matches "the type is JSON lines" "$(field "$ALL" content-type)" '^application/jsonl'
  is "every line is JSON" "$(curl -sSf "$ALL" | jq -c 'select(.schema == "olm.package") | 1' | wc -l)" "$PACKAGES"
  is "gzip goes out where it is asked for" "$(field "$ALL" content-encoding -H 'Accept-Encoding: gzip')" gzip
  is "zstd is preferred where both are" "$(field "$ALL" content-encoding -H 'Accept-Encoding: gzip, zstd')" zstd
  is "current.json has the same bytes in each coding" "$(for coding in identity gzip; do curl -sSf --compressed -H "Accept-Encoding: $coding" "$C/current.json" | sha256; done | sort -u | wc -l)" 1
  matches "the coding varies" "$(field "$ALL" vary)" '[Aa]ccept-[Ee]ncoding'
}

conditions() {
  local tag date
  tag=$(field "$ALL" etag)
  date=$(field "$ALL" last-modified)
  matches "the ETag is strong" "$tag" '^"[^"]+"$'
  is "its own tag gives 304" "$(status "$ALL" -H "If-None-Match: $tag")" 304
  is "another tag gives 200" "$(status "$ALL" -H 'If-None-Match: "a"')" 200
  is "a date gives 304" "$(status "$ALL" -H "If-Modified-Since: $date")" 304
  is "If-Match of another tag gives 412" "$(status "$ALL" -H 'If-Match: "a"')" 412
  [[ $(field "$ALL" etag -H 'Accept-Encoding: gzip') != "$tag" ]] && ok "each coding has its tag" || not_ok "each coding has its tag"
}

heads() {
  local path coding
  for path in catalogs catalogs/"$NAME"/{current.json,content-hash,api/v1/all,all.json,packages,packages/"$PACKAGE",api/v1/metas?schema=olm.package} healthz openapi.json; do
    for coding in identity gzip zstd; do
      is "HEAD $path as GET, $coding" "$(fields -I -H "Accept-Encoding: $coding" "$URL/$path")" "$(fields -H "Accept-Encoding: $coding" "$URL/$path")"
    done
  done
}

ranges() {
  local size
  size=$(curl -sSf "$ALL" | wc -c)
  is "Range gives 206" "$(status "$ALL" -r 10-29)" 206
  is "with the place" "$(field "$ALL" content-range -r 10-29)" "bytes 10-29/$size"
  is "and those bytes" "$(curl -sSf -r 10-29 "$ALL")" "$(head -c 30 <(curl -sSf "$ALL" 2>/dev/null) | tail -c 20)"
  is "the last ones as well" "$(curl -sSf -r -50 "$ALL" | sha256)" "$(curl -sSf "$ALL" | tail -c 50 | sha256)"
  is "behind the end there is nothing" "$(status "$ALL" -r "$size-")" 416
  is "If-Range of another tag gives all" "$(status "$ALL" -r 0-9 -H 'If-Range: "a"')" 200
}

# As catalogd: the fields as they stand in the document, so `package` does not find the olm.package itself.
metas() {
  local query expected
  for query in "package=$PACKAGE" "schema=olm.package" "schema=olm.bundle&package=$PACKAGE" "schema=olm.package&name=$PACKAGE"; do
    expected=$(curl -sSf "$ALL" | jq -c --arg q "$query" '. as $meta | ($q / "&" | map(. / "=" | {(.[0]): .[1]}) | add) as $want
      | select(all($want | to_entries[]; .value == $meta[.key]))' | sha256)
    is "metas?$query" "$(curl -sSf "$C/api/v1/metas?$query" | jq -c . | sha256)" "$expected"
  done
  is "an unknown parameter is 400" "$(status "$C/api/v1/metas?foo=1")" 400
  is "metas has a tag" "$(status "$C/api/v1/metas?package=$PACKAGE" -H "If-None-Match: $(field "$C/api/v1/metas?package=$PACKAGE" etag)")" 304
}

errors() {
  is "a wrong method is 405" "$(status "$ALL" -X POST)" 405
  is "with Allow" "$(field "$ALL" allow -X DELETE)" "GET, HEAD, OPTIONS"
  is "OPTIONS is 204" "$(status "$ALL" -X OPTIONS)" 204
  is "an unknown catalog is 404" "$(status "$URL/catalogs/none/api/v1/all")" 404
  is "an unknown package is 404" "$(status "$C/packages/none")" 404
  is "a bad name is 400" "$(status "$URL/catalogs/A_/content-hash")" 400
  is "errors are problems" "$(field "$URL/nothing" content-type)" application/problem+json
  is "nothing above the store is served" "$(status "$URL/packages/sha256/../../../etc/passwd" --path-as-is)" 404
}

documents() {
  need_python_tools
  curl -sSf "$URL/openapi.json" >"$WORK/openapi.json"
  succeeds "openapi-spec-validator accepts the document" openapi-spec-validator "$WORK/openapi.json"
  is "it is ready" "$(status "$URL/readyz")" 200
}
