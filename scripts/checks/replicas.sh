# Three replicas of the controller, each with a store of its own, at a real API server: what they serve is always what the statuses
# name, while images change, followers stop and die, and the leader ends.
# shellcheck shell=bash

CONTROLLER=$TESTED/catalog-mirror-controller
CATALOGS=20
IMAGES=8
declare -A API HEALTH PID

prepare() {
  need_kubernetes
  need_catalogd
  need_reader
  start_cluster
  prepare_olm
  make_service_certificate
  secret login "$REGISTRY"
  mkdir "$WORK/authorities"
  cp "$REGISTRY_CA" "$WORK/authorities/ca.crt"
  write_kubeconfig "$WORK/account.yaml" "$(account_token)"
  push_images
}

# Small images, and the hash of the content of each.
push_images() {
  local step tree digest
  : >"$WORK/refs"
  for ((step = 0; step < IMAGES; step++)); do
    tree=$WORK/tree-$step
    mkdir -p "$tree/configs/demo"
    printf 'schema: olm.package\nname: demo-%s\n---\nschema: olm.channel\npackage: demo-%s\nname: stable\n' "$step" "$step" >"$tree/configs/demo/catalog.yaml"
    new_image "$WORK/layout:base"
    add_layer "$WORK/layout:base" "$tree" "step-$step"
    copy_image "oci:$WORK/layout:step-$step" "docker://$REGISTRY/replicas/catalog:step-$step"
    digest=$(skopeo inspect --authfile "$AUTH_FILE" --tls-verify=false --format '{{.Digest}}' "docker://$REGISTRY/replicas/catalog:step-$step")
    echo "$REGISTRY/replicas/catalog@$digest $("$CATALOG_MIRROR" render "oci:$WORK/layout:step-$step" | sha256)" >>"$WORK/refs"
    rm -r "$WORK/layout"
  done
}

# image STEP: reference of an image; hash STEP: of its content.
image() { sed -n "$(($1 + 1))p" "$WORK/refs" | cut -d' ' -f1; }
hash() { sed -n "$(($1 + 1))p" "$WORK/refs" | cut -d' ' -f2; }

# start_replica NAME
start_replica() {
  API[$1]=$(free_port) HEALTH[$1]=$(free_port)
  start "$WORK/$1.log" env KUBECONFIG="$WORK/account.yaml" HOSTNAME="$1" "$CONTROLLER" --leader-elect \
    --external-address "$SERVICE" --tls-cert "$WORK/tls/tls.crt" --tls-key "$WORK/tls/tls.key" --pull-cas-dir "$WORK/authorities" \
    --cache-dir "$WORK/$1-cache" --catalogs-server-addr "127.0.0.1:${API[$1]}" --advertise-address "127.0.0.1:${API[$1]}" \
    --webhook-server-port "$(free_port)" --metrics-bind-address 0 --health-probe-bind-address "127.0.0.1:${HEALTH[$1]}"
  PID[$1]=$STARTED_PID
}

is_ready() { curl -sf "http://127.0.0.1:${HEALTH[$1]}/readyz"; }
verbose() { curl -s "http://127.0.0.1:${HEALTH[$1]}/readyz?verbose"; }
leads() { verbose "$1" | grep -q 'this replica leads'; }
not_ready() { ! is_ready "$1"; }

# leader: the name of the replica that leads.
leader() { for each in "${!PID[@]}"; do if leads "$each"; then echo "$each"; fi; done; }
has_leader() { [[ -n $(leader) ]]; }
followers() { for each in "${!PID[@]}"; do leads "$each" || echo "$each"; done; }

# serve NAME...: the replicas that the service has.
serve() { for each in "$@"; do echo "127.0.0.1:${API[$each]}"; done >"$WORK/service.new" && mv "$WORK/service.new" "$WORK/service"; }

serve_without() {
  local each rest=()
  for each in a b c; do [[ $each == "$1" ]] || rest+=("$each"); done
  serve "${rest[@]}"
}

# end NAME SIGNAL
end() {
  kill "-$2" "${PID[$1]}"
  wait "${PID[$1]}" 2>/dev/null
  unset "PID[$1]"
}

create_catalogs() {
  local index
  for ((index = 0; index < CATALOGS; index++)); do
    clustercatalog "changing-$index" "$(image 0)"
  done | kubectl apply -f - >/dev/null
  succeeds "all catalogs are served" wait_for 120 all_serve
}
all_serve() { (($(serving) == CATALOGS)); }

# change UPDATES: changes all catalogs at once that many times each, and prints what was read.
change() {
  reader -api "$CLUSTER_URL" -api-ca "$CLUSTER_CA" -token administrator -ca "$REGISTRY_CA" -replicas "$WORK/service" \
    -refs "$WORK/refs" -catalogs "$CATALOGS" -updates "$1"
}

# right NAME RESULT UPDATES
right() {
  say "$1: $2"
  is "$1: each update is named" "$(jq .updates <<<"$2")" "$3"
  is "$1: no read has the content of another image" "$(jq .wrong <<<"$2")" 0
  is "$1: every read is answered" "$(jq .failed <<<"$2")" 0
}

# served NAME CATALOG: code and hash of what a replica serves.
served() {
  local code
  code=$(curl -s --cacert "$REGISTRY_CA" --connect-to "$SERVICE:443:127.0.0.1:${API[$1]}" -o "$WORK/served-$1" -w '%{http_code}' "https://$SERVICE/catalogs/$2/api/v1/all")
  echo "$code $(sha256 "$WORK/served-$1")"
}

three_replicas() {
  local each
  for each in a b c; do start_replica "$each"; done
  succeeds "a replica leads" wait_for 30 has_leader
  for each in a b c; do succeeds "$each is ready" wait_for 30 is_ready "$each"; done
  is "one replica leads" "$(leader | wc -w)" 1
  is "the list of the leader wants a token" "$(curl -s --cacert "$REGISTRY_CA" --connect-to "$SERVICE:443:127.0.0.1:${API[$(leader)]}" -o /dev/null -w '%{http_code}' "https://$SERVICE/replicas")" 401
  is "of its own service account" "$(curl -s --cacert "$REGISTRY_CA" --connect-to "$SERVICE:443:127.0.0.1:${API[$(leader)]}" -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer administrator' "https://$SERVICE/replicas")" 403
  create_catalogs
  serve a b c
}

# A follower dies without a word and comes back with an old store; another one leaves in order; the leader leaves in order.
disturb() {
  local follower
  follower=$(followers | head -1)
  sleep 5
  serve_without "$follower"
  end "$follower" KILL
  sleep 5
  start_replica "$follower"
  wait_for 60 is_ready "$follower"
  serve a b c
}

leader_leaves() {
  local old began
  old=$(leader)
  serve_without "$old"
  began=$(now_ms)
  end "$old" TERM
  wait_for 30 has_leader
  began=$(($(now_ms) - began))
  is "after a clean stop another replica leads within 5 s ($began ms)" "$((began < 5000))" 1
  start_replica "$old"
  succeeds "the stopped one comes back" wait_for 60 is_ready "$old"
  serve a b c
}

# A follower that stands still is not waited for, and does not serve what it had.
follower_sleeps() {
  local follower began
  follower=$(followers | head -1)
  kubectl patch clustercatalog changing-0 --type merge -p "{\"spec\": {\"source\": {\"image\": {\"ref\": \"$(image 1)\"}}}}" >/dev/null
  wait_for 30 names changing-0 1
  kill -STOP "${PID[$follower]}"
  began=$(now_ms)
  kubectl patch clustercatalog changing-0 --type merge -p "{\"spec\": {\"source\": {\"image\": {\"ref\": \"$(image 2)\"}}}}" >/dev/null
  succeeds "a status waits for a follower that does not answer" wait_for 100 names changing-0 2
  began=$((($(now_ms) - began) / 1000))
  is "for 30 to 90 s ($began s)" "$((began >= 30 && began <= 90))" 1
  kill -CONT "${PID[$follower]}"
  # At once: it may answer that it does not know, but not with the earlier content.
  matches "a follower that wakes up does not serve the earlier content" "$(served "$follower" changing-0)" "^(503|200 $(hash 2))"
  succeeds "it is ready again" wait_for 30 is_ready "$follower"
  succeeds "and serves the new one" wait_for 30 serves "$follower" changing-0 2
}
names() { [[ $(kubectl get clustercatalog "$1" -o jsonpath='{.status.resolvedSource.image.ref}') == "$(image "$2")" ]]; }
serves() { [[ $(served "$1" "$2") == "200 $(hash "$3")" ]]; }

leader_dies() {
  local old began each
  old=$(leader)
  began=$SECONDS
  end "$old" KILL
  sleep 35
  for each in $(followers); do
    succeeds "without a leader $each is ready" is_ready "$each"
    succeeds "and serves what the status names" serves "$each" changing-0 2
  done
  succeeds "another replica leads when the Lease has ended" wait_for 180 has_leader
  say "after $((SECONDS - began)) s"
  start_replica "$old"
  succeeds "the dead one comes back" wait_for 60 is_ready "$old"
}

api_server_stands_still() {
  local each
  kill -STOP "$APISERVER_PID"
  sleep 40
  for each in a b c; do succeeds "without the API server $each serves" serves "$each" changing-0 2; done
  kill -CONT "$APISERVER_PID"
  for each in a b c; do succeeds "$each is ready when it answers again" wait_for 60 is_ready "$each"; done
}

prepare
three_replicas
right "at rest" "$(change 30)" $((CATALOGS * 30))
change 20 >"$WORK/disturbed" &
CHANGING=$!
disturb
wait "$CHANGING"
right "while a follower dies" "$(cat "$WORK/disturbed")" $((CATALOGS * 20))
follower_sleeps
leader_leaves
api_server_stands_still
leader_dies
is "the role of the controller suffices" "$(cat "$WORK"/?.log | grep -ci forbidden)" 0
stop_cluster
