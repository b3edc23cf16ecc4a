# The Lambda functions in cargo-lambda's emulator of the service: its runtime API, its function URLs, and invocations.
# shellcheck shell=bash

# start_emulator: LAMBDA is its address. The functions are started by hand, so that each has its own environment. It
# knows them by the names of the workspace's programs: the same one with another environment needs another emulator.
start_emulator() {
  local port
  need_python_tools
  port=$(free_port)
  LAMBDA=127.0.0.1:$port
  start "$WORK/lambda-$port.log" env -C "$ROOT" cargo-lambda lambda watch --only-lambda-apis --disable-cors --timeout 60 -A 127.0.0.1 -P "$port"
  wait_for 30 port_is_open "$port"
}

port_is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# use_function PROGRAM: FUNCTION is its path: $CATALOG_MIRROR_FUNCTIONS/PROGRAM, or a build of this checkout, and a quick
# one that the tests need too: what is checked here is not how fast it is.
use_function() {
  local folder=${CATALOG_MIRROR_FUNCTIONS:-}
  if [[ -z $folder ]]; then
    [[ -n ${TESTED:-} ]] || use_tested
    folder=$TESTED
  fi
  FUNCTION=$folder/$1
  [[ -x $FUNCTION ]] || die "$FUNCTION is no program"
}

# start_function NAME PROGRAM [VARIABLE=VALUE...]: runs a function; FUNCTION_LOG, FUNCTION_PID and FUNCTION_URL are set
# afterwards. It has the environment that the service gives it and nothing else of ours but the path.
start_function() {
  local name=$1
  use_function "$2"
  FUNCTION_LOG=$WORK/$name-${LAMBDA##*:}.log
  FUNCTION_URL=http://$LAMBDA/lambda-url/$name
  start "$FUNCTION_LOG" env -i PATH="$PATH" AWS_LAMBDA_RUNTIME_API="http://$LAMBDA/.rt/$name" AWS_LAMBDA_FUNCTION_NAME="$name" \
    AWS_LAMBDA_FUNCTION_VERSION='$LATEST' AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256 "${@:3}" "$FUNCTION"
  FUNCTION_PID=$STARTED_PID
}

# invoke NAME EVENT-FILE: prints what the function answers to an event; fails if it fails.
invoke() {
  cargo-lambda lambda invoke --invoke-address 127.0.0.1 --invoke-port "${LAMBDA##*:}" --data-file "$2" "$1"
}

# start_reader PLACE [VARIABLE=VALUE...]: the reader over a store in the bucket of moto. URL is its address afterwards.
start_reader() {
  start_emulator
  start_function reader reader STORE="$1" AWS_ENDPOINT_URL_S3="$AWS_ENDPOINT_URL_S3" AWS_REGION=us-east-1 \
    AWS_ACCESS_KEY_ID="$S3_KEY" AWS_SECRET_ACCESS_KEY="$S3_SECRET" "${@:2}"
  URL=$FUNCTION_URL
  wait_for 30 curl -sf --max-time 5 "$URL/healthz"
}
