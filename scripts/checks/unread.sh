# Four thousand answers that nobody reads, of every route of the contract in every coding, over HTTP/1.1 and HTTP/2: the memory of the server,
# and the rate of another client that reads. Of rates only an optimised program says something: scripts/long-checks runs this part.
# shellcheck shell=bash

# Figure that functions/catalog-mirror/CONFIGURATION.md documents, in MB.
PROCESS_MAX=512
STORE=$WORK/store

# One package above what is kept in memory, and many below it. The last publication has one package more.
publish_large() {
  python3 "$LIB/worst_inputs.py" noise "$WORK/noise" $((24 << 20))
  python3 "$LIB/worst_inputs.py" packages "$WORK/packages" $((2 << 20))
  mkdir "$WORK/catalog"
  mv "$WORK/noise" "$WORK/packages" "$WORK/catalog"
  is "a catalog to attack is published" "$(outcome "$STORE" "c=dir:$WORK/catalog" --identity)" "published 10"
  BEFORE=$(content_hash "$STORE" c)
  json_package added x/y:1 | jq -c 'if .schema == "olm.package" then .icon = {mediatype: "image/svg+xml", base64data: "PHN2Zy8+"} else . end' >"$WORK/catalog/added.json"
  is "and once more" "$(outcome "$STORE" "c=dir:$WORK/catalog" --identity)" "published 10"
}

# paths: those of the contract, and more where a route has answers of several kinds.
paths() {
  local layer page
  layer=$(snapshot "$STORE" c | jq -r .image.layer.sha256)
  page=$(curl -sSf "$URL/" | grep -o '/\?page/[^"]*' | head -1)
  jq -r '.paths | keys[]' "$ROOT/shared/serving/api/openapi.json" | sed "
    s|icons/{file}|icons/added.svg|; s|{package}/icon|added/icon|; s|versions/{file}|versions/p.json|; s|versions/{package}/{file}|versions/p/s.json|
    s|{channel}|s|; s|{catalog}|c|; s|{package}|p|; s|{reference}|latest|; s|{digest}|sha256:$layer|; s|/page/{file}|/${page#/}|
    s|/{kind}/sha256/{object}|/$(current "$STORE" c | jq -r .all.gzip.key)|
    s|/changes$|&?since=$BEFORE|; s|/metas$|&?schema=olm.bundle|; s|/search$|&?q=p\&limit=100|"
  printf '%s\n' /catalogs/c/packages/p0 '/catalogs/c/api/v1/metas?package=p' "/$(current "$STORE" c | jq -r .all.zstd.key)" \
    "/$(current "$STORE" c | jq -r .all.identity.key)" "/$(shard_keys "$STORE" c | sed -n 's/^p //p')"
}

# attacked PATH CODING PROTOCOL
attacked() {
  local result
  serve "$STORE"
  result=$(python3 "$LIB/unread.py" "$SERVER_PID" "${HOST##*:}" "$3" "$1" "$2" "${UNREAD_SECONDS:-8}")
  say "| $1 | $2 | $3 | $(jq -r '"\(.peak) | \(.alone) | \(.attacked) | \(.statuses)"' <<<"$result") |"
  succeeds "unread answers take $(jq .peak <<<"$result") MB: $1 $2 $3" at_most "$(jq .peak <<<"$result")" "$PROCESS_MAX"
  is "and another client is served at half its rate: $1 $2 $3" "$(jq '.attacked * 2 >= .alone' <<<"$result")" true
  end_process "$SERVER_PID"
}

publish_large
serve "$STORE"
paths >"$WORK/paths"
end_process "$SERVER_PID"
is "each route has a path" "$(grep -c '[{}]' "$WORK/paths")" 0
while read -r ASKED; do
  for CODING in identity gzip zstd; do
    for PROTOCOL in h1 h2; do attacked "$ASKED" "$CODING" "$PROTOCOL"; done
  done
done <"$WORK/paths"
