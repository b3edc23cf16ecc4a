# The registry API as its clients find it: grpcurl with and without TLS, health, clients that read next to nothing, and floods of HTTP/2.
# The part opm compares answers. The tests of shared/serving/grpc have streams while the catalog changes.
# shellcheck shell=bash

STORE=$WORK/store
# Memory that floods may take of the server, in kB.
GROWTH_MAX=65536

tools() {
  serve_grpc "$STORE"
  same_lines "grpcurl lists the services" "$(grpcurl -plaintext "$GRPC" list)" "$(printf '%s\n' api.ExperimentalRegistry api.Registry \
    grpc.health.v1.Health grpc.reflection.v1.ServerReflection)"
  matches "and describes a method" "$(grpcurl -plaintext "$GRPC" describe api.Registry.GetBundle)" 'rpc GetBundle \( .api.GetBundleRequest \) returns \( .api.Bundle \)'
  is "and calls it" "$(ask_grpc api.Registry/GetBundle '{"pkgName": "package-7", "channelName": "stable", "csvName": "package-7.v1.0.0"}' | jq -r .csvName)" package-7.v1.0.0
  is "and reads a stream" "$(ask_grpc api.Registry/ListBundles | jq -r .csvName | sort -u | wc -l)" 200
  matches "and is told of what is not there" "$(ask_grpc api.Registry/GetPackage '{"name": "absent"}' 2>&1)" 'Code: Unknown'
  is "and asks for the health of the server, the API and the catalog" "$(health '') $(health api.Registry) $(health padded) $(health absent)" \
    "SERVING SERVING SERVING NotFound"
}

over_tls() {
  local keys=$WORK/keys
  make_certificates "$keys"
  printf 'server: {tlsCert: %s, tlsKey: %s}\ngrpc: {tls: true, anonymous: [padded]}\n' "$keys/tls.crt" "$keys/tls.key" >"$WORK/tls.yaml"
  SCHEME=https serve_grpc "$STORE" --config "$WORK/tls.yaml"
  is "over TLS grpcurl calls a method" "$(grpcurl -cacert "$keys/ca.crt" -d '{"name": "package-7"}' "$GRPC" api.Registry/GetPackage | jq -r .name)" package-7
  matches "a client without TLS is refused" "$(ask_grpc api.Registry/ListPackages '{}' -max-time 5 2>&1)" 'Failed|Code: Unavailable|deadline'
  kill "$SERVER_PID"
}

floods() {
  local before kind attacks=() calls
  before=$(memory_kb VmRSS)
  # 11 is ENHANCE_YOUR_CALM (RFC 9113, section 7). What the server says before it closes is lost where the attacker still sends.
  matches "a rapid reset of calls ends the connection" "$(flood reset "$GRPC" /api.Registry/ListBundles 30)" '^(goaway 11|closed)'
  matches "a head without end ends the connection" "$(flood continuation "$GRPC" /api.Registry/ListBundles 30)" '^(goaway|closed)'
  for kind in reset ping settings window hoard; do
    for _ in 1 2 3; do
      flood "$kind" "$GRPC" /api.Registry/ListBundles 4 >/dev/null &
      attacks+=("$!")
    done
  done
  sleep 1
  calls=$(opm-oracle bench "$GRPC" packages 2 2)
  say "during floods: $calls"
  is "during floods of resets, pings and settings no call fails" "$(jq '.failed' <<<"$calls")" 0
  is "and half of them are answered within a second" "$(jq '.p50Ms < 1000' <<<"$calls")" true
  succeeds "which take $(($(memory_kb VmRSS) - before)) kB" test $(($(memory_kb VmRSS) - before)) -lt "$GROWTH_MAX"
  wait "${attacks[@]}" || true
  is "it serves on" "$(ask_grpc api.Registry/ListBundles | jq -r .csvName | wc -l)" 200
  say "resident: $before kB before the floods, $(memory_kb VmRSS) kB after; attacks ended: $(tr '\n' ',' <"$WORK/floods")"
}

# A message of 2 MB for each of 300 calls, of which the clients take one byte.
hoarded_messages() {
  local before message attacks=()
  publish_padded "$WORK/large" large 1 200
  serve_grpc "$WORK/large"
  is "a bundle of 2 MB is answered" "$(ask_grpc api.Registry/GetBundle '{"pkgName": "package-0", "channelName": "stable", "csvName": "package-0.v1.0.0"}' \
    -max-msg-sz 9999999 | jq '.properties | length')" 202
  # The message that asks for it: pkgName, channelName and csvName.
  message=$(printf '\n\011package-0\022\006stable\032\020package-0.v1.0.0' | base64 -w0)
  before=$(memory_kb VmRSS)
  for _ in 1 2 3; do
    flood hoard "$GRPC" /api.Registry/GetBundle 4 "$message" >/dev/null &
    attacks+=("$!")
  done
  wait "${attacks[@]}" || true
  succeeds "clients that take a byte of each message make the server take $(($(memory_kb VmHWM) - before)) kB" \
    test $(($(memory_kb VmHWM) - before)) -lt "$GROWTH_MAX"
  kill "$SERVER_PID"
}

need_opm
need_grpcurl
# 2 MB.
publish_padded "$STORE" padded 200 1
tools
over_tls
serve_grpc "$STORE"
floods
hoarded_messages
