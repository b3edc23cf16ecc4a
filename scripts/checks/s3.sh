# The store in a bucket: the server passes the suite that the folder passes, and updates and races of publishers end as they do in a
# folder. The server is moto; the part minio has MinIO. The tests of shared/core/store have servers that ignore the conditions of writes.
# shellcheck shell=bash

# passes_suite NAME PLACE [OPTION...]
passes_suite() {
  succeeds "$1 passes the conformance suite of all stores" "$TESTED/examples/conformance" "${@:2}"
}

# pointer PLACE: current.json; whole PLACE FORM [CURL-OPTION...]: the whole catalog as zstd, gzip or identity.
pointer() { s3_object "$1" catalogs/up/current.json; }
whole() { s3_object "$1" "$(pointer "$1" | jq -r ".all.$2.key")" "${@:3}"; }

# updates NAME PLACE STEP...: after each the stored bytes are what `render` makes of the same files.
updates() {
  local name=$1 place=$2 files=$WORK/files-$1 step hash
  mkdir "$files"
  for step in "${@:3}"; do
    lay_over "$step" "$files"
    is "$name: step $step is published" \
      "$(outcome "$place" "up=oci:$LAYOUT:$(printf 'step-%03d' "$step")")" "published 10"
    hash=$("$CATALOG_MIRROR" render "$files" | sha256)
    is "$name: step $step is stored whole: content hash, plain, gzip, zstd" \
      "$(pointer "$place" | jq -r .contentHash) $(whole "$place" identity | sha256) \
$(whole "$place" gzip | gzip -dc | sha256) $(whole "$place" zstd | zstd -qdc | sha256)" \
      "$hash $hash $hash $hash"
  done
  is "$name: the serial counts every update" "$(pointer "$place" | jq .serial)" "$(($# - 2))"
  is "$name: a poll of the same image is unchanged" "$(outcome "$place" "up=oci:$LAYOUT:$(printf 'step-%03d' "$step")")" "unchanged 0"
  succeeds "$name: verify finds nothing wrong" "$CATALOG_MIRROR" verify --store "$place"
}

# Each object has its media type, its encoding and its caching rule as header fields.
headers() {
  local place=$1 pointer snapshot key type coding cache immutable='public, max-age=31536000, immutable'
  pointer=$(pointer "$place")
  snapshot=$(s3_object "$place" "$(jq -r .snapshot.key <<<"$pointer")" | zstd -qdc)
  while IFS='|' read -r key type coding cache; do
    is "$key has its type, encoding and caching rule" \
      "$(s3_field "$place" "$key" content-type)|$(s3_field "$place" "$key" content-encoding)|$(s3_field "$place" "$key" cache-control)" \
      "$type|$coding|$cache"
  done <<END
catalogs/up/current.json|application/json||public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
catalogs/up/status.json|application/json||no-store
$(jq -r .snapshot.key <<<"$pointer")|application/json|zstd|$immutable
$(jq -r .all.identity.key <<<"$pointer")|application/jsonl||$immutable
$(jq -r .all.gzip.key <<<"$pointer")|application/jsonl|gzip|$immutable
$(jq -r .all.zstd.key <<<"$pointer")|application/jsonl|zstd|$immutable
packages/sha256/$(jq -r '.packages[0].sha256' <<<"$snapshot").json.zst|application/jsonl|zstd|$immutable
END
}

# The local server over a bucket, and what the other commands make of it.
commands() {
  local place=$1 hash
  hash=$(pointer "$place" | jq -r .contentHash)
  serve "$place"
  is "served from the bucket: the whole, and a range of it" \
    "$(fetch identity "$URL/catalogs/up/api/v1/all" | sha256) $(curl -sSf -r 5-99 "$URL/catalogs/up/api/v1/all" | sha256)" \
    "$hash $(whole "$place" identity -r 5-99 | sha256)"
  is "ls lists the bucket's catalog" "$("$CATALOG_MIRROR" ls --json --store "$place" | jq -r '.[].name // .[].catalog')" up
  succeeds "rm takes it out" "$CATALOG_MIRROR" rm --store "$place" up
  is "nothing of it stays" "$("$CATALOG_MIRROR" ls --json --store "$place" | jq length)" 0
}

# race NAME PLACE VERSION SERIAL: eight processes find the same version of the example; one commits, the others find it published. The
# example is small, so that they write at the same time, and moto, which answers one request after the other, keeps nobody waiting.
race() {
  local number outcomes
  for number in {1..8}; do
    mkdir -p "$WORK/race-$number"
    WORK=$WORK/race-$number outcome "$2" "up=dir:$ROOT/tests/catalogs/$3" >"$WORK/race-$number.outcome" 2>&1 &
    racers+=($!)
  done
  wait "${racers[@]}" || true
  racers=()
  outcomes=$(sort "$WORK"/race-*.outcome | uniq -c | awk '{print $1, $2, $3}' | paste -sd,)
  # Two that write the same bytes in the same second, one of them again after an answer that was lost, cannot tell whose they are:
  # both say published. The serial tells the number of commits.
  matches "$1: each of eight publishers sees $3 published" "$outcomes" '^[1-8] published 10(,[1-7] unchanged 0)?$'
  is "$1: one of them commits: after $3 the serial is $4" "$(pointer "$2" | jq .serial)" "$4"
}

races() {
  racers=()
  race "$1" "$2" v1 1
  race "$1" "$2" v2 2
  succeeds "$1: what racing publishers leave is sound" "$CATALOG_MIRROR" verify --store "$2"
}

# over_tls NAME STEPS [SUITE-OPTION]: everything on the server in use, with the first STEPS updates.
over_tls() {
  make_bucket bucket
  passes_suite "$1 over TLS" s3://bucket/suite "${@:3}"
  races "$1" s3://bucket/races
  updates "$1" s3://bucket/updates/v4 "${ALL_STEPS[@]:0:$2}"
  headers s3://bucket/updates/v4
  commands s3://bucket/updates/v4
  AWS_CA_BUNDLE='' fails "$1: an unknown authority is refused" 'certificate|UnknownIssuer' \
    "$CATALOG_MIRROR" poll --catalog "up=oci:$LAYOUT:step-000" --store s3://bucket/unknown
}

on_moto() {
  start_s3 moto tls
  over_tls moto 5
  start_s3 moto
  make_bucket bucket
  # Without a prefix, and without TLS.
  updates "a whole bucket" s3://bucket "${ALL_STEPS[@]:0:2}"
}

# MinIO also checks signatures, and it answers requests side by side.
on_minio() {
  start_s3 minio tls
  over_tls MinIO ${#ALL_STEPS[@]} waiting
  AWS_SECRET_ACCESS_KEY=wrong fails "a wrong secret is refused" 'not allowed.*SignatureDoesNotMatch' \
    "$CATALOG_MIRROR" poll --catalog "up=oci:$LAYOUT:step-000" --store s3://bucket/denied
}

mapfile -t ALL_STEPS < <(steps)
"on_${S3_SERVER:-moto}"
