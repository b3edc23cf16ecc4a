# GraphQL against catalogd v1.11.0 itself: pages, fields, fragments, aliases and errors of every list, in real catalogs and in one
# of odd values.
# shellcheck shell=bash

DATA=$(data_folder)

# publish_both NAME FOLDER: the mirror serves the folder, and catalogd what the mirror serves, so that both have one order.
publish_both() {
  local port
  port=$(free_port)
  rm -rf "$WORK/store" "$WORK/lines"
  mkdir "$WORK/lines"
  "$CATALOG_MIRROR" poll --store "$WORK/store" --catalog "c=dir:$2" >"$WORK/poll.out"
  serve "$WORK/store"
  MIRROR_PID=$SERVER_PID
  curl -sf "$URL/catalogs/c/all.json" >"$WORK/lines/catalog.json"
  start "$WORK/catalogd-$1.log" catalogd-oracle "$WORK/lines" "127.0.0.1:$port"
  CATALOGD_PID=$STARTED_PID
  CATALOGD=http://127.0.0.1:$port/catalogs/c
  wait_for 60 curl -sf -o /dev/null -r 0-0 "$CATALOGD/api/v1/all"
}

# answers_agree NAME FOLDER [rates]
answers_agree() {
  publish_both "$1" "$2"
  succeeds "catalogd and the mirror agree on GraphQL about $1" python3 "$LIB/graphql_answers.py" compare "$CATALOGD" "$URL/catalogs/c"
  [[ -z ${3:-} ]] || python3 "$LIB/graphql_answers.py" rates "$CATALOGD" "$URL/catalogs/c"
  [[ $1 != odd ]] || over_http
  kill "$CATALOGD_PID" "$MIRROR_PID"
}

# Content over real connections, which the tests of the router do not have.
over_http() {
  local path=$URL/catalogs/c/api/v1/graphql body='{"query":"{__typename}"}' expected='{"data":{"__typename":"Query"}}'
  is "one connection takes several queries" \
    "$(curl -sSf -w '%{num_connects} ' -d "$body" "$path" -: -sSf -w '%{num_connects} ' -d "$body" "$path" | tr -d '\n')" "${expected}1 ${expected}0 "
  is "in chunks too" "$(curl -sSf -H 'Transfer-Encoding: chunked' -d "$body" "$path")" "$expected"
  is "over HTTP/2 too" "$(curl -sSf --http2-prior-knowledge -d "$body" "$path")" "$expected"
  is "too much content is refused" \
    "$(head -c 1048577 /dev/zero | curl -sS -o /dev/null -w '%{http_code}' --data-binary @- "$path")" 413
  is "content of a GET is refused" "$(curl -sS -o /dev/null -w '%{http_code}' -X GET -d "$body" "$path")" 413
  is "and that of other routes is not read" "$(curl -sS -o /dev/null -w '%{http_code}' -d "$body" "$URL/catalogs/c/api/v1/all")" 405
}

need_catalogd_oracle
mkdir "$WORK/odd"
python3 "$LIB/graphql_odd.py" >"$WORK/odd/catalog.json"
answers_agree odd "$WORK/odd"
answers_agree example "$ROOT/tests/catalogs/v2"
answers_agree series "$SERIES/000/configs"
if [[ -n $DATA ]]; then
  for catalog in $(real_catalogs); do
    unpack "$DATA/community-$catalog.tar.zst" "$WORK/data"
    answers_agree "$catalog" "$(configs_folder "$WORK/data")" rates
    rm -r "$WORK/data"
  done
fi
