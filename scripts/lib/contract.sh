# The HTTP contract: a server of a mirror answers curl as `serve` does, whatever runs it. The tests of shared/serving/api have what `serve` answers.
# shellcheck shell=bash

# contract NAME PACKAGE: asks URL, and SERVED, which is a `serve` of the same store. The catalog NAME has that package. It has to be small
# enough to be answered without redirects.
contract() {
  local name=catalogs/$1 all=catalogs/$1/api/v1/all path tag date size row
  for path in catalogs "$name"/{current.json,content-hash,api/v1/all,all.json,packages,"packages/$2",api/v1/metas?schema=olm.package} openapi.json; do
    same_answers "$path"
    same_head "$path"
  done
  same_head healthz
  tag=$(field "$SERVED/$all" etag)
  date=$(field "$SERVED/$all" last-modified)
  size=$(curl -sSf "$SERVED/$all" | wc -c)
  while IFS='|' read -ra row; do
    is "as serve: ${row[*]}" "$(answer 'etag|content-range|allow' identity "$URL" "${row[@]}")" \
      "$(answer 'etag|content-range|allow' identity "$SERVED" "${row[@]}")"
  done <<END
$all|-H|If-None-Match: $tag
$all|-H|If-None-Match: "a"
$all|-H|If-Modified-Since: $date
$all|-H|If-Match: "a"
$all|-r|10-29
$all|-r|-50
$all|-r|$size-
$all|-r|0-9|-H|If-Range: "a"
$all|-X|POST
$all|-X|DELETE
$all|-X|OPTIONS
$name/api/v1/metas?package=$2
$name/api/v1/metas?schema=olm.bundle&package=$2
$name/api/v1/metas?schema=olm.package&name=$2
$name/api/v1/metas?foo=1
$name/packages/none
catalogs/none/api/v1/all
catalogs/A_/content-hash
nothing
packages/sha256/../../../etc/passwd|--path-as-is
readyz
END
}

# answer FIELDS CODING URL PATH [CURL-OPTION...]: the status, these fields, and the plain bytes. A cache has its own words for 416.
answer() {
  local code
  : >"$WORK/body"
  code=$(curl -sS --compressed -H "Accept-Encoding: $2" -D "$WORK/head" -o "$WORK/body" -w '%{http_code}' "${@:5}" "$3/$4")
  echo "$code"
  tr -d '\r' <"$WORK/head" | tr '[:upper:]' '[:lower:]' | grep -E "^($1):" | sort
  [[ $code == 416 ]] || sha256 "$WORK/body"
}

# same_answers PATH...: in each coding, the second time perhaps from a cache.
same_answers() {
  local path coding time fields='content-type|content-encoding|cache-control|etag|vary|location'
  for path in "$@"; do
    for coding in identity gzip zstd; do
      for time in once again; do
        is "as serve: $path, $coding, $time" "$(answer "$fields" "$coding" "$URL" "$path")" "$(answer "$fields" "$coding" "$SERVED" "$path")"
      done
    done
  done
}

# same_head PATH: HEAD repeats the fields of GET; only the date may differ, and what a cache says of itself.
same_head() {
  local coding
  for coding in identity gzip zstd; do
    is "HEAD $1 as GET, $coding" "$(fields -I -H "Accept-Encoding: $coding" "$URL/$1")" "$(fields -H "Accept-Encoding: $coding" "$URL/$1")"
  done
}
fields() { curl -sS -o /dev/null -D - "$@" | tr -d '\r' | grep -viE '^(date|age|cf-cache-status):'; }

# redirected NAME HASH: the server at URL sends no body of a thousand bytes, so each coding is redirected to the stored object.
redirected() {
  local coding all=$URL/catalogs/$1/api/v1/all
  for coding in identity gzip zstd; do
    is "$coding above the limit is redirected" "$(status "$all" -H "Accept-Encoding: $coding")" 307
    is "to where its bytes are" "$(fetch "$coding" "$all" -L | sha256)" "$2"
  done
}
