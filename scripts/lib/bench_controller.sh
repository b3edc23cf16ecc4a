# The controller: three replicas with many ClusterCatalogs, and one large catalog beside catalogd.
# shellcheck shell=bash

CONTROLLER_CATALOGS=200
# Seconds at rest, over which CPU and what is written to etcd are counted.
CONTROLLER_IDLE=${CONTROLLER_IDLE:-300}

# The same images by catalogd and by us in turn: a catalog of YAML, the whole catalog, and then one changed package, by a new process
# and by a server. TURNS is how often, 5 unless it is given. Nothing is deleted between the turns: for each new file, ext4 looks at
# the inodes that were deleted in the last minutes, here for a tenth of the processor time. TMPDIR=/dev/shm measures without a disk.
bench_peer() {
  local turn turns=${TURNS:-5} changed what columns
  [[ -z $QUICK ]] || turns=2
  start_registry
  prepare_service
  secret login "$REGISTRY"
  push_large
  push_bench "docker://$PLAIN_REGISTRY/ns/$SMALL:v1" yaml
  changed=$(bench_digest changed)
  start_peer
  for ((turn = 0; turn < turns; turn++)); do
    peer_turn yaml create yaml kubectl wait --for=condition=Serving clustercatalog yaml --timeout 300s
    peer_turn cold create large kubectl wait --for=condition=Serving clustercatalog large --timeout 300s
    peer_turn changed kubectl patch clustercatalog large --type merge -p "{\"spec\": {\"source\": {\"image\": {\"ref\": \"$REGISTRY/bench/catalog:changed\"}}}}" \
      kubectl wait --for="jsonpath={.status.resolvedSource.image.ref}=$REGISTRY/bench/catalog@$changed" clustercatalog large --timeout 300s
    kubectl delete clustercatalog large yaml >/dev/null
    our_turn yaml yaml "yaml-$turn"
    our_turn cold large "store-$turn"
    our_turn changed changed "store-$turn"
    served_turn "$WORK/served-$turn"
  done
  cp "$WORK/peer-changed" "$WORK/peer-served"
  for what in yaml cold changed served; do
    for columns in "1 wall ms" "2 CPU ms" "3 memory MB"; do peer_row "$what" $columns; done
  done
  stop_cluster
}

# peer_turn WHAT ACTION... WAIT...: `wall cpu peak` of catalogd, from an action until kubectl sees its end.
peer_turn() {
  local began cpu action=()
  while [[ $2 != kubectl || ${3:-} != wait ]]; do action+=("$2"); set -- "$1" "${@:3}"; done
  began=$(now_ms) cpu=$(seconds "$STARTED_PID")
  "${action[@]}" >/dev/null
  "${@:2}" >/dev/null
  figures "$(($(now_ms) - began))" "$cpu" >>"$WORK/peer-$1"
}

# figures MS SECONDS: `wall cpu peak` of the process that runs, which took so long and had used so much CPU before.
figures() {
  awk -v ms="$1" -v before="$2" -v after="$(seconds "$STARTED_PID")" '/^VmHWM/ {print ms, (after - before) * 1000, $2 / 1024}' "/proc/$STARTED_PID/status"
}

# our_turn WHAT TAG STORE
our_turn() {
  measure 1 true "$CATALOG_MIRROR" poll --json --ca-file "$REGISTRY_CA" --auth-file "$AUTH_FILE" --store "$WORK/$3" --catalog "c=$REGISTRY/bench/catalog:$2" >>"$WORK/ours-$1"
}

# served_turn STORE: the changed package in a server that published the whole catalog before, as catalogd did. Its peak is that of both.
served_turn() {
  local store=$1 peer=$STARTED_PID cpu
  push_bench "docker://$REGISTRY/bench/catalog:large" served
  start "$WORK/served.log" "$CATALOG_MIRROR" serve --ca-file "$REGISTRY_CA" --auth-file "$AUTH_FILE" --store "$store" --interval 1s \
    --listen "127.0.0.1:$(free_port)" --catalog "c=$REGISTRY/bench/catalog:served"
  wait_for 60 has_serial "$store" 1
  cpu=$(seconds "$STARTED_PID")
  push_bench "docker://$REGISTRY/bench/catalog:changed" served
  wait_for 60 has_serial "$store" 2
  figures "$(jq .durationMs "$store/catalogs/c/status.json")" "$cpu" >>"$WORK/ours-served"
  end_process "$STARTED_PID"
  STARTED_PID=$peer
}
has_serial() { jq -e ".serial == $2" "$1/catalogs/c/current.json" && jq -e '.outcome == "published"' "$1/catalogs/c/status.json"; }

# peer_row WHAT COLUMN NAME UNIT: medians, and the smallest and the largest in brackets.
peer_row() {
  row "$1 publication, $3" "$(spread "$WORK/ours-$1" "$2")" "$4" catalogd "$(spread "$WORK/peer-$1" "$2")"
}

bench_controller() {
  # Beside the program, which is all that the other parts need.
  [[ -x $(dirname "$CATALOG_MIRROR")/catalog-mirror-controller ]] ||
    (cd "$ROOT" && cargo build --locked --quiet --profile dist --bin catalog-mirror-controller)
  start_registry
  prepare_service
  secret login "$REGISTRY"
  one_catalog
  many_clustercatalogs
  stop_cluster
}

# memory PID: what it has now and had at most, in MB. seconds PID: of CPU until now.
memory() { awk '/^VmRSS|^VmHWM/ {value[$1] = $2 / 1000} END {printf "%.1f MB now, %.1f MB at most", value["VmRSS:"], value["VmHWM:"]}' "/proc/$1/status"; }
seconds() { awk '{print ($14 + $15) / 100}' "/proc/$1/stat"; }

# catalog NAME TAG: prints a ClusterCatalog with the label that nothing else sets for catalogd here.
catalog() { clustercatalog "$1" "$REGISTRY/bench/catalog:$2" 'pollIntervalMinutes: 1' '' "labels: {olm.operatorframework.io/metadata.name: $1}"; }
create() { catalog "$1" "$1" | kubectl apply -f - >/dev/null; }
delete_large() {
  kubectl patch clustercatalog large --type merge -p '{"metadata": {"finalizers": []}}' >/dev/null
  kubectl delete clustercatalog large >/dev/null
}

serve_all() { (($(serving) == $1)) || not_yet; }
# on DIGEST: number of ClusterCatalogs whose status names it.
on() { kubectl get clustercatalogs -o json | jq --arg digest "$1" '[.items[] | select(.status.resolvedSource.image.ref // "" | endswith($digest))] | length'; }
are_on() { (($(on "$1") == $2)) || not_yet; }
# To ask all the time would take a core from what is measured.
not_yet() { sleep 1; false; }
push_bench() { copy_image "$1" "docker://$REGISTRY/bench/catalog:$2"; }
bench_digest() { registry_digest "$REGISTRY/bench/catalog:$1"; }
elapsed() { awk -v ms="$(($(now_ms) - $1))" 'BEGIN {printf "%.1f s", ms / 1000}'; }

start_peer() { run_catalogd catalogd; }

# push_large: the full catalog as `large`, and with another document in one package as `changed`. Without a data folder, two states of the series.
push_large() {
  local tag
  full_catalog
  if [[ $FULL == "$SERIES"/* ]]; then
    push_bench "oci:$LAYOUT:step-000" large
    push_bench "oci:$LAYOUT:step-001" changed
    return
  fi
  for tag in large changed; do
    new_image "$WORK/full-layout:base-$tag"
    add_layer "$WORK/full-layout:base-$tag" "$WORK/full" "$tag"
    push_bench "oci:$WORK/full-layout:$tag" "$tag"
    for file in "$WORK"/full/configs/*/catalog.json; do break; done
    jq -nc --arg package "$(jq -rs '.[0].package // .[0].name' "$file")" '{schema: "example.note", package: $package}' >>"$file"
  done
  rm -r "$WORK/full" "$WORK/full-layout"
}

# The memory of whole processes for one large catalog.
one_catalog() {
  local server began
  push_large
  for server in start_alone start_peer; do
    began=$(now_ms)
    create large
    "$server"
    wait_for 300 serve_all 1
    say "$server: the large catalog is served after $(elapsed "$began"): $(memory "$STARTED_PID")"
    sleep 30
    say "after half a minute: $(memory "$STARTED_PID"), $(seconds "$STARTED_PID") s of CPU"
    end_process "$STARTED_PID"
    delete_large
  done
}
start_alone() { start_controller alone; }

# Three replicas at rest, with one catalog that changes, and with all that change.
many_clustercatalogs() {
  local each began revision pids=() before=() index
  push_bench "oci:$LAYOUT:step-000" one
  push_bench "oci:$LAYOUT:step-000" all
  for each in a b c; do
    start_controller "$each" --leader-elect
    pids+=("$CONTROLLER_PID")
  done
  began=$(now_ms)
  {
    catalog one one
    for ((index = 1; index < CONTROLLER_CATALOGS; index++)); do catalog "all-$index" all; done
  } | kubectl apply -f - >/dev/null
  wait_for 900 serve_all "$CONTROLLER_CATALOGS"
  say "$CONTROLLER_CATALOGS ClusterCatalogs are served after $(elapsed "$began")"
  # The other replicas pull.
  sleep 60

  revision=$(etcd_revision)
  for each in "${pids[@]}"; do before+=("$(seconds "$each")"); done
  sleep "$CONTROLLER_IDLE"
  for index in 0 1 2; do
    each=${pids[$index]}
    say "idle replica: $(memory "$each"), CPU $(awk -v now="$(seconds "$each")" -v before="${before[$index]}" -v idle="$CONTROLLER_IDLE" 'BEGIN {printf "%.2f", (now - before) / idle * 100}') % of a core"
  done
  say "written to etcd in these $CONTROLLER_IDLE s: $(etcd_written "$revision")"

  push_bench "oci:$LAYOUT:step-001" one
  began=$(now_ms)
  wait_for 120 are_on "$(bench_digest one)" 1
  say "one moved tag: its status after $(elapsed "$began"), with an interval of 60 s"
  push_bench "oci:$LAYOUT:step-002" all
  began=$(now_ms)
  wait_for 600 are_on "$(bench_digest all)" $((CONTROLLER_CATALOGS - 1))
  say "all tags moved: the last status after $(elapsed "$began")"
  for each in "${pids[@]}"; do say "replica after that: $(memory "$each")"; done
  for each in "${pids[@]}"; do end_process "$each"; done
}

etcd_range() { curl -sS "$ETCD_URL/v3/kv/range" -d "$1"; }
etcd_revision() { etcd_range '{"key": "AA==", "range_end": "AA==", "limit": 1}' | jq -r .header.revision; }
# etcd_written REVISION: keys that were written after it, and how often.
etcd_written() {
  etcd_range "{\"key\": \"AA==\", \"range_end\": \"AA==\", \"min_mod_revision\": $(($1 + 1))}" |
    jq -r --argjson revision "$1" '(.kvs // [])[] | "\(.key | @base64d) version \(.version)"' | sort | paste -sd';'
}
