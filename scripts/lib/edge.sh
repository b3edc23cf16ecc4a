# The Worker: builds it for WebAssembly, and runs it in workerd over a local R2.
# shellcheck shell=bash

MINIFLARE=miniflare@4.20260426.0

# use_worker FOLDER: MODULES has the modules of the Worker, as `worker-build` makes them, without its packing: $CATALOG_MIRROR_WORKER, or a
# build of this checkout in FOLDER.
use_worker() {
  local target
  MODULES=${CATALOG_MIRROR_WORKER:-$1}
  [[ $MODULES == "$1" ]] || return 0
  need_wasm_bindgen
  # Compiles what ring has in C.
  need_debian clang=clang llvm-ar=llvm
  target=$(target_folder)/wasm
  need_rust_target wasm32-unknown-unknown
  with_flags -- env CARGO_TARGET_DIR="$target" cargo build "${WORKER_BUILD[@]}" &&
    "$WASM_BINDGEN" --target web --no-typescript --out-dir "$1" "$target/wasm32-unknown-unknown/lambda/edge.wasm" ||
    die "the Worker does not build"
}
WORKER_BUILD=(--manifest-path "$ROOT/Cargo.toml" --locked --quiet --profile lambda --package edge --target wasm32-unknown-unknown)

# The tool must have the version of the library. It is not optimised: it runs for a second. Not every registry has all of its lock.
need_wasm_bindgen() {
  local version folder
  version=$(cargo metadata --locked --format-version 1 --manifest-path "$ROOT/Cargo.toml" | jq -r '.packages[] | select(.name == "wasm-bindgen").version')
  folder=$CACHE/wasm-bindgen-$version
  WASM_BINDGEN=$folder/bin/wasm-bindgen
  [[ -x $WASM_BINDGEN ]] || CARGO_PROFILE_RELEASE_OPT_LEVEL=0 cargo install --quiet --no-default-features --root "$folder" "wasm-bindgen-cli@$version"
}

# start_worker MODULES STORE [VARIABLE=VALUE...]: URL, WORKER_LOG and WORKER_PID (of workerd) are set afterwards.
start_worker() {
  local port
  need_npm "$MINIFLARE" "$MINIFLARE"
  port=$(free_port)
  URL=http://127.0.0.1:$port WORKER_LOG=$WORK/worker-$port.log
  start "$WORKER_LOG" env MINIFLARE_WORKERD_PATH="$NPM_FOLDER/node_modules/@cloudflare/workerd-linux-64/bin/workerd" \
    node "$LIB/edge.mjs" "$NPM_FOLDER" "$1" "$2" "$port" "${@:3}"
  wait_for 300 grep -q ^ready "$WORKER_LOG" || { cat "$WORKER_LOG" >&2; return 1; }
  WORKER_PID=$(pgrep -P "$STARTED_PID" workerd)
}
