# The server under attack and behind locks: floods of HTTP/2, TLS as openssl and curl speak it, readers as skopeo, crane and htpasswd know
# them, and its units. The part image has a process without rights that may write nowhere.
# shellcheck shell=bash

STORE=$WORK/store
WHOLE=/catalogs/all/api/v1/all
need_debian h2load=nghttp2-client systemd-analyze=systemd python3=python3
need_crane

is "a catalog to serve is published" "$(outcome "$STORE" "all=oci:$LAYOUT:$LAST_TAG")" "published 10"
HASH=$(content_hash "$STORE" all)

whole() { curl -sSfk "$@" "$URL$WHOLE" | sha256; }

busy() {
  serve "$STORE"
  h2load -n 50000 -c 100 -m 100 "$URL/catalogs" >"$WORK/h2load" 2>&1
  matches "50,000 requests on 100 connections of HTTP/2 are all answered" "$(grep '^requests:' "$WORK/h2load")" \
    '50000 succeeded, 0 failed, 0 errored'
}

floods() {
  local before kind attacks=()
  echo "server: {limits: {stalled: 2s, firstRequest: 2s}}" >"$WORK/server.yaml"
  serve "$STORE" --config "$WORK/server.yaml"
  h2load -n 2000 -c 10 -m 100 "$URL/catalogs" >"$WORK/h2load" 2>&1
  before=$(memory_kb VmRSS)
  # 11 is ENHANCE_YOUR_CALM (RFC 9113, section 7).
  # What it says before it closes is lost where the attacker still sends.
  matches "a rapid reset ends the connection, as ENHANCE_YOUR_CALM" "$(flood reset "$HOST" "$WHOLE")" '^(goaway 11|closed)'
  matches "a head without end ends the connection" "$(flood continuation "$HOST" "$WHOLE")" '^(goaway|closed)'
  matches "an answer whose flow-control window stays empty ends the connection" "$(flood window "$HOST" "$WHOLE")" '^closed'
  is "it is counted" "$(counted 'connections_closed_total{reason="stalled"}')" 1
  for kind in ping settings; do
    matches "$kind without end and without a request ends the connection" "$(flood "$kind" "$HOST" "$WHOLE")" '^(goaway|closed)'
  done
  for _ in $(seq 1 20); do
    flood reset "$HOST" "$WHOLE" >/dev/null &
    attacks+=("$!")
  done
  wait "${attacks[@]}" || true
  is "it serves on" "$(whole)" "$HASH"
  is "its memory is what it was, within 64 MB" "$(($(memory_kb VmRSS) - before < 65536))" 1
  say "resident: $before kB before the floods, $(memory_kb VmRSS) kB after; attacks ended: $(tr '\n' ',' <"$WORK/floods")"
}

tls() {
  local one=$WORK/one
  make_certificates "$one"
  SCHEME=https serve "$STORE" --tls-cert "$one/tls.crt" --tls-key "$one/tls.key"
  is "curl speaks HTTP/2 over TLS" "$(curl -sS --cacert "$one/ca.crt" -o /dev/null -w '%{http_version} %{http_code}' "$URL/catalogs")" "2 200"
  is "and HTTP/1.1" "$(curl -sS --http1.1 --cacert "$one/ca.crt" -o /dev/null -w '%{http_version} %{http_code}' "$URL/catalogs")" "1.1 200"
  matches "openssl agrees on h2 and TLS 1.3" "$(openssl s_client -connect "$HOST" -alpn h2 </dev/null 2>/dev/null)" 'ALPN protocol: h2'
  is "TLS 1.1 is refused" "$(openssl s_client -connect "$HOST" -tls1_1 -cipher ALL:@SECLEVEL=0 </dev/null 2>&1 | grep -c 'BEGIN CERTIFICATE')" 0
  is "skopeo reads an image over it" "$(SSL_CERT_FILE=$one/ca.crt skopeo inspect --raw "docker://$HOST/all:latest" | sha256)" "$(jq -r .image.index.sha256 <<<"$(snapshot "$STORE" all)")"
}

readers() {
  local auth=$WORK/auth.json index token=a-long-random-token docker=$WORK/docker
  index=sha256:$(snapshot "$STORE" all | jq -r .image.index.sha256)
  htpasswd -nbB alice "correct horse" >"$WORK/readers"
  printf 'robot:sha256:%s\n' "$(printf %s "$token" | sha256)" >>"$WORK/readers"
  serve "$STORE" --readers "$WORK/readers"
  is "a password of htpasswd is taken" "$(whole -u "alice:correct horse")" "$HASH"

  succeeds "skopeo logs in" skopeo login --authfile "$auth" --tls-verify=false -u alice -p "correct horse" "$HOST"
  is "and reads" "sha256:$(skopeo inspect --authfile "$auth" --tls-verify=false --raw "docker://$HOST/all:latest" | sha256)" "$index"
  is "but not with a wrong password" "$(skopeo login --authfile "$WORK/other.json" --tls-verify=false -u alice -p wrong "$HOST" >/dev/null 2>&1 || echo refused)" refused
  succeeds "crane logs in" env DOCKER_CONFIG="$docker" crane auth login --insecure -u robot -p "$token" "$HOST"
  is "and reads" "$(DOCKER_CONFIG=$docker crane digest --insecure "$HOST/all:latest")" "$index"
  is "a mirror polls it as a registry" "$(AUTH_FILE=$auth outcome "$WORK/of-mirror" "all=$HOST/all:latest" --plain-http "$HOST")" "published 10"
  is "no secret is in its log" "$(grep -c -e "$token" -e 'correct horse' "$SERVER_LOG" || true)" 0
  flood_of_passwords "alice:correct horse"
}

# Wrong passwords cost the server more than the client; those who were let in before must not notice.
flood_of_passwords() {
  local wrong slowest
  wrong=$(printf 'alice:wrong' | base64)
  h2load -n 100000 -c 50 -m 20 -T 8 -H "authorization: Basic $wrong" "$URL/catalogs" >"$WORK/flood" 2>&1 &
  local flood=$!
  sleep 1
  slowest=$(for _ in $(seq 1 20); do curl -sS -o /dev/null -w '%{http_code} %{time_total}\n' -u "$1" "$URL/catalogs"; done | sort -k2 -n | tail -1)
  kill "$flood" 2>/dev/null || true
  wait "$flood" 2>/dev/null || true
  matches "who was let in before is served during a flood of wrong passwords, within a second" "$slowest" '^200 0\.'
  say "the slowest of 20 during the flood: $slowest s; logins: busy $(counted 'logins_total{outcome="busy"}' -u "$1"), refused $(counted 'logins_total{outcome="refused"}' -u "$1")"
}

units() {
  local unit exposure
  for unit in catalog-mirror-serve.service catalog-mirror-sync.service; do
    # The program is not installed here; everything else has to be right.
    sed "s|/usr/local/bin/catalog-mirror|$CATALOG_MIRROR|" "$ROOT/infra/disconnected/$unit" >"$WORK/$unit"
    succeeds "systemd takes $unit" systemd-analyze verify --man=no --recursive-errors=no "$WORK/$unit"
    # 0 is a program without the outside world, 10 one that may do everything.
    exposure=$(systemd-analyze security --offline=true "$WORK/$unit" | sed -n 's/.*exposure level.*: \([0-9.]*\) .*/\1/p')
    is "its exposure is at most 1.1 ($exposure)" "$(jq -n "$exposure <= 1.1")" true
  done
}

busy
floods
tls
readers
units
