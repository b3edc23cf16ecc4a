# Everything around the mirrors of scripts/chaos: registries, a bucket whose clock is wrong, disks that are full.
# shellcheck shell=bash

# Bytes of the spool of the site with a bucket, if it can be mounted. Ten times what its processes use at a time.
SPOOL_SIZE=256m

# start_proxy PROGRAM ARGUMENT...: PROXY is its address.
start_proxy() {
  local port
  port=$(free_port)
  start "$WORK/$1-$port.log" python3 -B "$ROOT/scripts/lib/$1" "$port" "${@:2}"
  PROXY=127.0.0.1:$port
}

# A registry of which each piece comes late, and one that fails one request in ten: not all of it is hidden by retries.
start_bad_registries() {
  start_proxy slow_proxy.py "${PLAIN_REGISTRY##*:}" 200
  SLOW_REGISTRY=$PROXY
  start_proxy failing_proxy.py "$PLAIN_REGISTRY" 10 "$SEED"
  FAILING_REGISTRY=$PROXY
  for registry in "$SLOW_REGISTRY" "$FAILING_REGISTRY"; do wait_for 20 curl -sf "http://$registry/v2/"; done
}

# start_store_clock: MinIO, and before it a proxy with a clock of its own. STORE_CLOCK is the file of its steps.
start_store_clock() {
  start_s3 minio
  make_bucket chaos
  # The proxy removes signatures: a signature of a process whose clock is wrong by an hour would be refused.
  jq -nc '{Version: "2012-10-17", Statement: [{Effect: "Allow", Principal: {AWS: ["*"]},
    Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"],
    Resource: ["arn:aws:s3:::chaos", "arn:aws:s3:::chaos/*"]}]}' >"$WORK/policy.json"
  s3_curl -f -X PUT --data-binary "@$WORK/policy.json" '/chaos?policy='
  STORE_CLOCK=$WORK/store-clock
  : >"$STORE_CLOCK"
  start_proxy s3_clock.py "${S3_URL##*/}" "$STORE_CLOCK"
  export AWS_ENDPOINT_URL_S3=http://$PROXY
  wait_for 20 curl -sf "$AWS_ENDPOINT_URL_S3/minio/health/ready"
}

# The preload that simulates a full disk. A program on which it has no effect would pass without a test.
build_preload() {
  FULL_DISK_LIBRARY=$WORK/full_disk.so
  cc -shared -fPIC -O2 -o "$FULL_DISK_LIBRARY" "$ROOT/scripts/lib/full_disk.c" -ldl
  : >"$WORK/is-full"
  mkdir "$WORK/tried"
  echo '{"schema":"olm.package","name":"p"}' >"$WORK/tried/catalog.json"
  if env LD_PRELOAD="$FULL_DISK_LIBRARY" FULL_DISK="$WORK/is-full" "$CATALOG_MIRROR" poll --store "$WORK/tried-store" \
    --catalog "a=dir:$WORK/tried" >"$WORK/tried.log" 2>&1 || ! grep -q 'No space' "$WORK/tried.log"; then
    die "the preload has no effect on $CATALOG_MIRROR: $(tail -3 "$WORK/tried.log")"
  fi
  rm "$WORK/is-full"
}

# The spool of the site with a bucket is a file system of its own where one may be mounted: IN_SPOOL runs a command that sees it, and it
# ends with the last process that does. Stores in folders grow too large for memory, so those processes have the preload.
make_spool() {
  mkdir -p "$WORK/s3/spool" "$WORK/folder/spool"
  MOUNTED=$WORK/s3/spool
  # shellcheck disable=SC2016
  IN_SPOOL=(unshare --mount sh -c 'mount -t tmpfs -o "size=$0" tmpfs "$1" && shift && exec "$@"' "$SPOOL_SIZE" "$MOUNTED")
  "${IN_SPOOL[@]}" true 2>/dev/null || IN_SPOOL=() MOUNTED=''
}

# What is known of a run that failed stays where CHAOS_LOGS says, or else is printed in part.
keep_logs() {
  tail -5 "$WORK/chaos.err" >&2
  [[ -n ${CHAOS_LOGS:-} ]] || return 0
  mkdir -p "$CHAOS_LOGS"
  CHAOS_LOGS=$(realpath "$CHAOS_LOGS")
  # Both sites have logs of the same names.
  (cd "$WORK" && cp --parents -- *.log *.err */*.log "$CHAOS_LOGS")
}

write_settings() {
  local faketime
  faketime=$(dpkg -L libfaketime | grep '/libfaketime\.so\.1$')
  jq -n --arg work "$WORK" --arg program "$CATALOG_MIRROR" --arg series "$SERIES" --arg direct "$PLAIN_REGISTRY" \
    --arg slow "$SLOW_REGISTRY" --arg failing "$FAILING_REGISTRY" --arg clock "$STORE_CLOCK" \
    --arg faketime "$faketime" --arg full "$FULL_DISK_LIBRARY" --arg mounted "$MOUNTED" --argjson seed "$SEED" \
    --argjson minutes "$MINUTES" \
    '$ARGS.named' >"$WORK/settings.json"
}
