# The registry API beside `opm serve` (operator-registry), asked by the same clients in alternation.
# shellcheck shell=bash

# Clients that ask at the same time, each on a connection of its own.
GRPC_CLIENTS=16

bench_grpc() {
  local store=$WORK/grpc-store
  need_opm
  publish_full "$store"
  LARGEST=$(snapshot "$store" c | jq -r '[.packages[]] | max_by((.lines // .).size) | .name')
  GRPC=127.0.0.1:$(free_port) OPM=127.0.0.1:$(free_port)
  OURS_COMMAND=("$CATALOG_MIRROR" serve --no-poll --store "$store" --listen "127.0.0.1:$(free_port)" --grpc "$GRPC" --grpc-catalog c)
  OPM_COMMAND=(opm-oracle serve "$FULL" "$OPM" "$WORK/opm-cache")
  first_answers
  compare_rates
  compare_memory
}

# first_answer RUNS PREPARE ADDRESS COMMAND...: the median of milliseconds from the start of a server to its first answer.
first_answer() {
  local runs=$1 prepare=$2 address=$3
  for ((run = 0; run < runs; run++)); do
    eval "$prepare"
    opm-oracle first "$address" "$LARGEST" "${@:4}" 2>>"$WORK/first.log"
  done | middle
}

# middle: the median of lines of numbers.
middle() { sort -g | awk '{line[NR] = $1} END {print line[int((NR + 1) / 2)]}'; }

first_answers() {
  local ours cold warm
  ours=$(first_answer 5 true "$GRPC" "${OURS_COMMAND[@]}")
  cold=$(first_answer 1 "rm -rf '$WORK/opm-cache'" "$OPM" "${OPM_COMMAND[@]}")
  warm=$(first_answer 3 true "$OPM" "${OPM_COMMAND[@]}")
  row "gRPC, first answer after start" "$ours" ms "opm serve without a cache" "$cold"
  row "gRPC, first answer after start" "$ours" ms "opm serve with its cache" "$warm"
}

start_both() {
  start "$WORK/grpc-serve.log" "${OURS_COMMAND[@]}"
  OURS_PID=$STARTED_PID
  start "$WORK/opm-serve.log" "${OPM_COMMAND[@]}"
  OPM_PID=$STARTED_PID
  wait_for 60 listens "$GRPC"
  wait_for 120 listens "$OPM"
}

# listens ADDRESS: without a call, which would change the memory.
listens() { : <"/dev/tcp/${1%:*}/${1##*:}"; }

compare_rates() {
  start_both
  compare_calls "GetPackage, $GRPC_CLIENTS clients" packages "$GRPC_CLIENTS" rate
  compare_floor
  compare_calls "GetBundle, $GRPC_CLIENTS clients" bundles "$GRPC_CLIENTS" rate
  compare_calls "GetBundle of $LARGEST" "bundles:$LARGEST" "$GRPC_CLIENTS" rate
  compare_calls "ListBundles, 1 client" list 1 p50Ms
  compare_calls "ListBundles, $GRPC_CLIENTS clients" list "$GRPC_CLIENTS" p50Ms
  end_process "$OURS_PID" "$OPM_PID"
}

# compare_calls WHAT WORKLOAD CLIENTS FIELD: medians of rounds in alternation, and the CPU time of the servers for each call.
compare_calls() {
  local round ours=$WORK/calls-ours theirs=$WORK/calls-opm
  rm -f "$ours" "$theirs"
  for ((round = 0; round < $([[ -n $QUICK ]] && echo 1 || echo 3); round++)); do
    measure_calls "$GRPC" "$OURS_PID" "$2" "$3" >>"$ours"
    measure_calls "$OPM" "$OPM_PID" "$2" "$3" >>"$theirs"
  done
  row_of_calls "$1" "$4" "$ours" "$theirs"
  if [[ $4 == rate ]]; then row_of_calls "  99 of 100 calls" p99Ms "$ours" "$theirs"; fi
  row_of_calls "  CPU of the server for a call" cpuMs "$ours" "$theirs"
}

# compare_floor: GetPackage beside hyper alone with one finished answer.
compare_floor() {
  python3 -c 'import sys; name = sys.argv[1].encode(); text = bytes([10, len(name)]) + name; sys.stdout.buffer.write(bytes(4) + bytes([len(text)]) + text)' \
    "$LARGEST" >"$WORK/get-package"
  curl -sSf --http2-prior-knowledge -H 'content-type: application/grpc' -H 'te: trailers' --data-binary "@$WORK/get-package" \
    -D "$WORK/floor-head" -o "$WORK/floor-body" "http://$GRPC/api.Registry/GetPackage"
  start_floor "$WORK/floor-head" "$WORK/floor-body"
  measure_calls "$FLOOR" "$STARTED_PID" packages "$GRPC_CLIENTS" >"$WORK/calls-floor"
  end_process "$STARTED_PID"
  row_of_calls "  beside hyper alone" rate "$WORK/calls-ours" "$WORK/calls-floor" hyper
}

measure_calls() {
  local before result
  before=$(cpu_ticks "$2")
  result=$(opm-oracle bench "$1" "$3" "$4" "$([[ -n $QUICK ]] && echo 2 || echo 5)")
  (($(jq .failed <<<"$result") == 0)) || die "errors from $1: $result"
  jq -c --argjson ticks "$(($(cpu_ticks "$2") - before))" --argjson hertz "$(getconf CLK_TCK)" \
    '. + {cpuMs: ($ticks * 1000 / $hertz / .calls)}' <<<"$result"
}

# cpu_ticks PID: user and system time of a process so far.
cpu_ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }

# row_of_calls WHAT FIELD OURS THEIRS [NAME]
row_of_calls() {
  local unit=ms
  [[ $2 != rate ]] || unit=/s
  row "$1" "$(jq ".$2" "$3" | middle)" "$unit" "${5:-opm serve}" "$(jq ".$2" "$4" | middle)"
}

# The memory of new servers: what they hold and have held at most, after each kind of work.
compare_memory() {
  local custom
  start_both
  row_of_memory "memory after start"
  custom=$("$CATALOG_MIRROR" render "$FULL" | jq -r 'select(.schema | startswith("olm.") | not) | "\(.schema)/\(.package // "")"' | sort -u)
  OPM_ORACLE_CUSTOM=$custom opm-oracle answers "$FULL" >"$WORK/questions"
  for address in "$GRPC" "$OPM"; do opm-oracle ask "$address" <"$WORK/questions"; done
  row_of_memory "  after all methods for all packages"
  for address in "$GRPC" "$OPM"; do opm-oracle bench "$address" "bundles:$LARGEST" "$GRPC_CLIENTS" 5 >/dev/null; done
  row_of_memory "  after GetBundle of $LARGEST"
  for address in "$GRPC" "$OPM"; do opm-oracle bench "$address" list "$GRPC_CLIENTS" 5 >/dev/null; done
  row_of_memory "  after ListBundles, $GRPC_CLIENTS clients"
  end_process "$OURS_PID" "$OPM_PID"
}

row_of_memory() {
  row "$1, at most" "$(memory_kb VmHWM "$OURS_PID")" kB "opm serve" "$(memory_kb VmHWM "$OPM_PID")"
  row "  and now" "$(memory_kb VmRSS "$OURS_PID")" kB "opm serve" "$(memory_kb VmRSS "$OPM_PID")"
}
