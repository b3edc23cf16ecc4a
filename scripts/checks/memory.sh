# Memory beside the worst documents: sixteen good catalogs and four bad ones in one process with the default settings, and
# some of them in a function of 128 MB.
# Only an optimised program says something: scripts/long-checks runs this part.
# shellcheck shell=bash

# Figure that functions/catalog-mirror/CONFIGURATION.md documents, in MB.
PROCESS_MAX=512
FUNCTION_MAX=128

good_folder() {
  mkdir -p "$1"
  printf '{"schema":"olm.package","name":"good"}' >"$1/catalog.json"
}

twenty_catalogs() {
  local folder=$WORK/twenty store=$WORK/store name peak
  python3 "$LIB/worst_inputs.py" documents "$folder" $((31 << 20))
  for number in $(seq -w 16); do good_folder "$folder/good$number"; done
  echo "catalogs:" >"$WORK/twenty.yaml"
  for name in "$folder"/*/; do
    name=$(basename "$name")
    echo "- {name: $name, source: 'dir:$folder/$name'}" >>"$WORK/twenty.yaml"
  done
  # shellcheck disable=SC2016
  peak=$(python3 "$LIB/measure.py" 1 true sh -c '"$@" || true' sh "$CATALOG_MIRROR" poll --store "$store" --config "$WORK/twenty.yaml" | cut -d' ' -f3)
  is "all good catalogs are published" "$(cd "$store/catalogs" && ls -d good*/current.json | wc -l)" 16
  succeeds "twenty catalogs take $peak MB, at most $PROCESS_MAX" at_most "$peak" "$PROCESS_MAX"
}

small_function() {
  local folder=$WORK/small name peak
  python3 "$LIB/worst_inputs.py" documents "$folder" $((7 << 20))
  good_folder "$folder/good"
  start_plain_registry
  start_s3 moto
  make_bucket mirror
  {
    printf 'registries: {plainHttp: ["%s"]}\ncatalogs:\n' "$PLAIN_REGISTRY"
    for name in "$folder"/*/; do
      name=$(basename "$name")
      push_folder "$name" "$folder/$name" >&2
      printf -- '- {name: %s, source: "%s/ns/%s:v1"}\n' "$name" "$PLAIN_REGISTRY" "$name"
    done
  } >"$WORK/small.yaml"
  start_emulator
  start_function poller poller STORE=s3://mirror/small CATALOGS="$(cat "$WORK/small.yaml")" AWS_ENDPOINT_URL="$S3_URL" \
    AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID="$S3_KEY" AWS_SECRET_ACCESS_KEY="$S3_SECRET" AWS_LAMBDA_FUNCTION_MEMORY_SIZE=$FUNCTION_MAX \
    MALLOC_ARENA_MAX=2
  echo '{"action": "poll"}' >"$WORK/poll.json"
  invoke poller "$WORK/poll.json" >"$WORK/answer.json"
  is "the good catalog is published" "$(jq -r '.reports[] | select(.catalog == "good").outcome' "$WORK/answer.json")" published
  peak=$(awk '/VmHWM/ {print $2 / 1024}' "/proc/$FUNCTION_PID/status")
  succeeds "a function takes $peak MB, at most $FUNCTION_MAX" at_most "$peak" "$FUNCTION_MAX"
}

twenty_catalogs
small_function
