# GraphQL beside catalogd's own packages, over the same lines.
# shellcheck shell=bash

bench_graphql() {
  local store=$WORK/graphql-store port
  need_catalogd_oracle
  catalog_for_opm
  "${POLL[@]}" --store "$store" --catalog "c=dir:$OPM_FOLDER" >/dev/null || true
  serve "$store"
  mkdir "$WORK/graphql-lines"
  curl -sSf "$URL/catalogs/c/all.json" >"$WORK/graphql-lines/catalog.json"
  port=$(free_port)
  start "$WORK/catalogd-graphql.log" catalogd-oracle "$WORK/graphql-lines" "127.0.0.1:$port"
  CATALOGD_GRAPHQL=http://127.0.0.1:$port/catalogs/c/api/v1/graphql
  wait_for 60 curl -sf -o /dev/null -d '{"query":"{__typename}"}' "$CATALOGD_GRAPHQL"
  compare_query "summary" '{summary{totalSchemas schemas{name totalObjects}}}'
  compare_query "names of 100 bundles" '{olmbundles(limit: 100){name package}}'
  compare_query "properties of 100 bundles" '{olmbundles(limit: 100){name package properties{type value}}}'
  # Queries that the mirror has not answered before, and one package.
  python3 "$HERE/lib/graphql_answers.py" rates "${CATALOGD_GRAPHQL%/api*}" "$URL/catalogs/c"
  end_process "$STARTED_PID"
}

# compare_query WHAT QUERY: answers a second, to one query again and again.
compare_query() {
  local ours theirs
  jq -nr --arg body "$(jq -nc --arg query "$2" '{query: $query}')" \
    '"wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\nwrk.body = \($body | tojson)"' >"$WORK/query.lua"
  ours=$(rate "$URL/catalogs/c/api/v1/graphql" "Accept-Encoding: identity" -s "$WORK/query.lua")
  theirs=$(rate "$CATALOGD_GRAPHQL" "Accept-Encoding: identity" -s "$WORK/query.lua")
  row "GraphQL, $1" "$ours/s" "catalogd" "$theirs/s" "$ours" "$theirs"
}
