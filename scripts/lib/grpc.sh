# A mirror that answers the registry API, and clients of it.
# shellcheck shell=bash

# serve_grpc STORE [OPTION...]: GRPC is the address of the registry API afterwards; the rest as by `serve`.
serve_grpc() {
  local port
  port=$(free_port)
  GRPC=127.0.0.1:$port
  serve "$1" --grpc "$GRPC" "${@:2}"
}

# memory_kb KIND: what the server holds (VmRSS) or has held at most (VmHWM), in kB.
memory_kb() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/${2:-$SERVER_PID}/status"; }

# ask_grpc METHOD [JSON] [OPTION...]: grpcurl without TLS.
ask_grpc() { grpcurl -plaintext "${@:3}" -d "${2:-{\}}" "$GRPC" "$1"; }

# health SERVICE: the status, or the code of the error.
health() {
  ask_grpc grpc.health.v1.Health/Check "{\"service\": \"$1\"}" 2>&1 | sed -n 's/.*"status": "\(.*\)".*/\1/p; s/.*Code: //p'
}

# flood KIND HOST:PORT PATH [SECONDS [MESSAGE]]: how an attack over HTTP/2 ends, without the seconds.
flood() {
  python3 "$LIB/h2_attack.py" "$1" "${2%:*}" "${2##*:}" "${@:3}" | tee -a "$WORK/floods" | sed 's/ [0-9.]*$//'
}

# publish_padded STORE NAME PACKAGES PADDINGS: packages whose one bundle has so many properties of 10 kB.
publish_padded() {
  mkdir -p "$1-files"
  # Of several properties, because one string of 2 MB is not what real bundles have.
  jq -nc --argjson packages "$3" --argjson paddings "$4" '("x" * 10000) as $padding |
    range($packages) | "package-\(.)" as $name | "\($name).v1.0.0" as $bundle |
    {schema: "olm.package", name: $name, defaultChannel: "stable"},
    {schema: "olm.channel", package: $name, name: "stable", entries: [{name: $bundle}]},
    {schema: "olm.bundle", package: $name, name: $bundle, image: "registry.example/\($name):v1", properties: [
      {type: "olm.package", value: {packageName: $name, version: "1.0.0"}}, {type: "olm.gvk", value: {group: "example.com", kind: $name, version: "v1"}},
      (range($paddings) | {type: "test.padding", value: "\(.)\($padding)"})]}' >"$1-files/catalog.json"
  "$CATALOG_MIRROR" poll --store "$1" --catalog "$2=dir:$1-files" >>"$WORK/poll.out" 2>&1
}

# hold_connections COUNT SECONDS: prints what became of them as JSON, and what each of them takes of the server's memory.
hold_connections() {
  local before after result
  # The first calls fill the caches that all connections share.
  opm-oracle bench "$GRPC" packages 4 0.5 >/dev/null
  before=$(memory_kb VmRSS)
  start "$WORK/hold" opm-oracle hold "$GRPC" "$1" "$2"
  wait_for 120 grep -q held "$WORK/hold" || return 1
  sleep "$2"
  # Of the whole time, because a connection must not grow either.
  after=$(memory_kb VmRSS)
  wait "$STARTED_PID" || return 1
  result=$(tail -1 "$WORK/hold")
  jq -c --argjson kb "$(((after - before) / $1))" '. + {kbEach: $kb}' <<<"$result"
}
