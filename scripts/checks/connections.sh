# Connections to the registry API that do nothing, as those of clusters do: none is closed, and each takes little memory. Here
# for seconds; scripts/long-checks holds 10,000 of them for ten minutes.
# shellcheck shell=bash

COUNT=${IDLE_CONNECTIONS:-1000}
SECONDS_IDLE=${IDLE_SECONDS:-15}
# Memory that a connection may take of the server, in kB.
CONNECTION_MAX=30

# closed REASON: connections that the server closed for it.
closed() {
  curl -sSf "$URL/metrics" | sed -n "s/^catalog_mirror_grpc_connections_closed_total{reason=\"$1\"} //p" | grep . || echo 0
}

# The server wants two descriptors for each connection, and some for everything else.
DESCRIPTORS=$((2 * COUNT + 200))
if (($(ulimit -n) < DESCRIPTORS)); then
  ulimit -n "$DESCRIPTORS" || die "$COUNT connections need $DESCRIPTORS open files, which ulimit -n does not allow"
fi
need_opm
publish_state "$WORK/store" first
serve_grpc "$WORK/store"
# A client that says nothing at all is no client of gRPC.
start "$WORK/silent" python3 "$LIB/hold.py" "${GRPC%:*}" "${GRPC##*:}" 50 60
HELD=$(hold_connections "$COUNT" "$SECONDS_IDLE")
is "$COUNT connections are held for $SECONDS_IDLE s without a reconnect, and answer then" \
  "$(jq -c 'del(.kbEach)' <<<"$HELD")" "{\"connections\":$COUNT,\"lost\":0,\"answered\":$COUNT}"
is "each takes $(jq .kbEach <<<"$HELD") kB, at most $CONNECTION_MAX" "$(jq ".kbEach <= $CONNECTION_MAX" <<<"$HELD")" true
is "connections that say nothing are closed meanwhile" "$(closed silent)" 50
