# The controller: three replicas with many ClusterCatalogs, and one large catalog beside catalogd.
# shellcheck shell=bash

CONTROLLER_CATALOGS=200
# Seconds at rest, over which CPU and what is written to etcd are counted.
CONTROLLER_IDLE=${CONTROLLER_IDLE:-300}

bench_controller() {
  start_registry
  prepare_controller
  secret login "$REGISTRY"
  one_catalog
  many_catalogs
  stop_cluster
}

# memory PID: what it has now and had at most, in MB. seconds PID: of CPU until now.
memory() { awk '/^VmRSS|^VmHWM/ {value[$1] = $2 / 1000} END {printf "%.1f MB now, %.1f MB at most", value["VmRSS:"], value["VmHWM:"]}' "/proc/$1/status"; }
seconds() { awk '{print ($14 + $15) / 100}' "/proc/$1/stat"; }

# catalog NAME TAG: prints a ClusterCatalog with the label that nothing else sets for catalogd here.
catalog() { clustercatalog "$1" "$REGISTRY/bench/catalog:$2" 'pollIntervalMinutes: 1' '' "labels: {olm.operatorframework.io/metadata.name: $1}"; }
create_large() { catalog large large | kubectl apply -f - >/dev/null; }
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
bench_digest() { skopeo inspect --authfile "$AUTH_FILE" --tls-verify=false --format '{{.Digest}}' "docker://$REGISTRY/bench/catalog:$1"; }
elapsed() { awk -v ms="$(($(now_ms) - $1))" 'BEGIN {printf "%.1f s", ms / 1000}'; }

# The memory of whole processes for one large catalog.
one_catalog() {
  local began data image=oci:$LAYOUT:step-000
  data=$(data_folder)
  if [[ -n $data && -z $QUICK ]]; then
    unpack "$data/community-full.tar.zst" "$WORK/full"
    new_image "$WORK/full-layout:base"
    add_layer "$WORK/full-layout:base" "$WORK/full" v1
    image=oci:$WORK/full-layout:v1
    rm -r "$WORK/full"
  fi
  push_bench "$image" large
  began=$(now_ms)
  create_large
  start_controller alone --webhook-server-port "$(free_port)"
  wait_for 300 serve_all 1
  say "the controller serves the large catalog after $(elapsed "$began"): $(memory "$CONTROLLER_PID")"
  sleep 30
  say "after half a minute: $(memory "$CONTROLLER_PID"), $(seconds "$CONTROLLER_PID") s of CPU"
  end_process "$CONTROLLER_PID"
  delete_large
  began=$(now_ms)
  create_large
  run_catalogd "$WORK/catalogd.log" --external-address="$SERVICE" --tls-cert="$WORK/tls/tls.crt" --tls-key="$WORK/tls/tls.key" \
    --pull-cas-dir="$WORK/authorities" --cache-dir="$WORK/catalogd-cache" --catalogs-server-addr="127.0.0.1:$(free_port)" \
    --metrics-bind-address="127.0.0.1:$(free_port)" --health-probe-bind-address="127.0.0.1:$(free_port)"
  wait_for 300 serve_all 1
  say "catalogd serves it after $(elapsed "$began"): $(memory "$STARTED_PID")"
  sleep 30
  say "after half a minute: $(memory "$STARTED_PID"), $(seconds "$STARTED_PID") s of CPU"
  end_process "$STARTED_PID"
  delete_large
}

# Three replicas at rest, with one catalog that changes, and with all that change.
many_catalogs() {
  local each began revision pids=() before=() index
  push_bench "oci:$LAYOUT:step-000" one
  push_bench "oci:$LAYOUT:step-000" all
  for each in a b c; do
    start_controller "$each" --leader-elect --webhook-server-port "$(free_port)"
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
