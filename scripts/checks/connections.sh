# Connections to the registry API that do nothing, as those of clusters do: none is closed, and each takes little memory. Here
# for seconds; scripts/long-checks holds 10,000 of them for ten minutes, beside clients that let the server wait.
# shellcheck shell=bash

COUNT=${IDLE_CONNECTIONS:-1000}
SECONDS_IDLE=${IDLE_SECONDS:-15}
# Memory that a connection may take of the server, in kB.
CONNECTION_MAX=30

# The server wants two descriptors for each connection, also of those that say nothing, and some for everything else. With fewer it
# closes idle connections for new ones. Only the soft limit is changed, because the server raises its own.
DESCRIPTORS=$((2 * (COUNT + 100) + 200))
ulimit -Sn "$DESCRIPTORS" || die "$COUNT connections need $DESCRIPTORS open files, which ulimit -Hn does not allow"

# begin_waits: attacks that the server ends after half a minute, which short runs do not wait for.
begin_waits() {
  local kind
  WAITING=()
  ((SECONDS_IDLE > 60)) || return 0
  for kind in window unsent; do
    start "$WORK/$kind" python3 "$LIB/h2_attack.py" "$kind" "${GRPC%:*}" "${GRPC##*:}" /api.Registry/ListBundles 60
    WAITING+=("$STARTED_PID")
  done
}

waits_end() {
  ((${#WAITING[@]})) || return 0
  wait "${WAITING[@]}"
  matches "an answer whose flow-control window stays empty ends its connection" "$(cat "$WORK/window")" '^closed'
  matches "it is counted" "$(counted 'grpc_connections_closed_total{reason="stalled"}')" '^[12]$'
  matches "requests whose message never comes are answered" "$(cat "$WORK/unsent")" '^answered 1[0-2]'
}

need_opm
publish_padded "$WORK/store" padded 200 1
serve_grpc "$WORK/store"
# A client that says nothing at all is no client of gRPC.
# shellcheck disable=SC2016
start "$WORK/silent" bash -c 'for _ in {1..50}; do exec {silent}<>"$0"; done; sleep 60' "/dev/tcp/${GRPC/://}"
begin_waits
HELD=$(hold_connections "$COUNT" "$SECONDS_IDLE")
is "$COUNT connections are held for $SECONDS_IDLE s without a reconnect, and answer then" \
  "$(jq -c 'del(.kbEach)' <<<"$HELD")" "{\"connections\":$COUNT,\"lost\":0,\"answered\":$COUNT}"
is "each takes $(jq .kbEach <<<"$HELD") kB, at most $CONNECTION_MAX" "$(jq ".kbEach <= $CONNECTION_MAX" <<<"$HELD")" true
is "connections that say nothing are closed meanwhile" "$(counted 'grpc_connections_closed_total{reason="silent"}')" 50
waits_end
