# The program under test as the parts use it, and functions that read a store without it.
# shellcheck shell=bash

# outcome_of COMMAND...: `outcome exit-code` of the first catalog. The report is in $WORK/report, errors are in $WORK/poll.err.
outcome_of() {
  local code=0
  "$@" --json --detailed-exitcode >"$WORK/report" 2>"$WORK/poll.err" || code=$?
  printf '%s %s\n' "$(jq -r '.[0].outcome' "$WORK/report" 2>/dev/null)" "$code"
}

# outcome STORE NAME=SOURCE [OPTION...]: the same of a poll.
outcome() {
  outcome_of "$CATALOG_MIRROR" poll --store "$1" --catalog "$2" --auth-file "$AUTH_FILE" --ca-file "$REGISTRY_CA" "${@:3}"
}

# serve STORE [OPTION...]: URL, HOST, SERVER_LOG and SERVER_PID are set afterwards. SCHEME is https where the options want TLS.
serve() {
  local port
  port=$(free_port)
  HOST=127.0.0.1:$port URL=${SCHEME:-http}://127.0.0.1:$port
  SERVER_LOG=$WORK/serve-$port.log
  start "$SERVER_LOG" "$CATALOG_MIRROR" serve --no-poll --store "$1" --listen "$HOST" "${@:2}"
  SERVER_PID=$STARTED_PID
  wait_for 10 curl -sfk "$URL/healthz" || { say "the server does not answer: $(tail -3 "$SERVER_LOG")"; return 1; }
}

# content_hash STORE NAME; current STORE NAME: the pointer; snapshot STORE NAME: the published snapshot as JSON.
content_hash() { jq -r .contentHash "$1/catalogs/$2/current.json"; }
current() { cat "$1/catalogs/$2/current.json"; }
# `zstd -f` passes through what is not compressed: scripts/bench compares with binaries of format 1.
snapshot() { zstd -qdcf <"$1/$(current "$1" "$2" | jq -r .snapshot.key)"; }

# shards STORE NAME: `package sha256` of each shard of the published snapshot; the hash is that of its uncompressed lines.
shards() { snapshot "$1" "$2" | jq -r '.packages[] | "\(.name) \(.lines.sha256)"' | sort; }

# shard_keys STORE NAME: `package key` of each shard.
shard_keys() { snapshot "$1" "$2" | jq -r '.packages[] | "\(.name) packages/sha256/\(.sha256).json.zst"' | sort; }

# object_keys STORE NAME: the key of the published snapshot, and of each object that it names.
object_keys() {
  current "$1" "$2" | jq -r .snapshot.key
  snapshot "$1" "$2" | jq -r '(.packages[], (.global // empty) | "packages/sha256/\(.sha256).json.zst"), "indexes/sha256/\(.index.sha256).json.zst",
    ((.facts // {})[] | "facts/sha256/\(.sha256).json.zst"),
    (.all | "all/sha256/\(.zstd.sha256).json.zst", "all/sha256/\(.gzip.sha256).json.gz", (.identity // empty | "all/sha256/\(.sha256).json")),
    (.image | .layer, .manifests[], .configs[], .index | "blobs/sha256/\(.sha256)")'
}

# listing STORE: every object with what changes when it is written again; .tmp holds no objects.
listing() { (cd "$1" && find . -name .tmp -prune -o -type f -printf '%P %i %T@\n' | sort); }

# written BEFORE AFTER: the keys that are new or were written between two listings.
written() { comm -13 <(printf '%s\n' "$1") <(printf '%s\n' "$2") | cut -d' ' -f1; }

# fetch CODING URL [CURL-OPTION...]: a body as its plain bytes, as the client of that coding sees them.
fetch() {
  case $1 in
    identity) curl -sSf "${@:3}" "$2" ;;
    gzip) curl -sSf -H 'Accept-Encoding: gzip' "${@:3}" "$2" | gzip -dc ;;
    zstd) curl -sSf -H 'Accept-Encoding: zstd' "${@:3}" "$2" | zstd -qdc ;;
  esac
}

# field URL NAME [CURL-OPTION...]: a header of the answer.
field() {
  curl -sS -o /dev/null -D - "${@:3}" "$1" | tr -d '\r' | sed -n "s/^$2: //Ip"
}

# counted NAME{LABELS} [CURL-OPTION...]: a counter of the metrics, 0 if it is not there.
counted() { curl -sSfk "${@:2}" "$URL/metrics" | grep -F "catalog_mirror_$1" | cut -d' ' -f2 | grep . || echo 0; }

# status URL [CURL-OPTION...]: the status of the answer.
status() { curl -sS -o /dev/null -w '%{http_code}' "${@:2}" "$1"; }

# kills NAME STORE COMMAND...: kills the running command KILLS times. After each kill the store must verify, and its serials must not be lower
# than before. `{}` in the command is 0 and 1 alternately, so that each run has something to do. With FRESH the store is emptied before
# every other run. PAUSE is the number of seconds before each run.
kills() {
  local name=$1 store=$2 hits=0 finished=0 torn=0 before after begin limit round=0 process
  shift 2
  begin=$(now_ms)
  "${@//\{\}/1}" >/dev/null 2>&1 || true
  limit=$(($(now_ms) - begin + 1))
  while ((hits < KILLS && finished < 20 * KILLS)); do
    round=$((round + 1))
    [[ -z ${FRESH:-} ]] || ((round % 2)) || rm -rf "$store"
    [[ -z ${PAUSE:-} ]] || sleep "$PAUSE"
    before=$(serials "$store")
    "${@//\{\}/$((round % 2))}" >/dev/null 2>&1 &
    process=$!
    sleep "$(shuf -n 1 -i "0-$limit")e-3"
    # The first run may have taken much longer than the others. So about every other run is killed, at any time of it.
    if kill -9 "$process" 2>/dev/null; then
      hits=$((hits + 1)) limit=$((limit * 11 / 10 + 1))
    else
      finished=$((finished + 1)) limit=$((limit * 9 / 10 + 1))
    fi
    wait "$process" 2>/dev/null || true
    after=$(serials "$store")
    # A store in which nothing was published yet is none.
    if ((after < before)) || { ((after)) && ! "$CATALOG_MIRROR" verify --store "$store" >"$WORK/verify" 2>&1; }; then
      torn=$((torn + 1))
      not_ok "kill -9 of $name, number $hits" "serial $before, then $after" "$(cat "$WORK/verify")"
    fi
  done
  is "$KILLS times a running $name was killed ($finished more were done before) and left a whole state" "$hits $torn" "$KILLS 0"
  succeeds "the next $name ends well" "${@//\{\}/0}"
  succeeds "verify finds nothing wrong after $name" "$CATALOG_MIRROR" verify --store "$store"
}

# serials STORE: the sum of those of all catalogs, -1 if a pointer cannot be read.
serials() { jq -s 'map(.serial) | add // 0' < <(cat "$1"/catalogs/*/current.json 2>/dev/null) || echo -1; }
