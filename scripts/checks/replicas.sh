# Three replicas of the controller, each with a store of its own, at a real API server: a replica serves what the statuses name or
# answers 503 with Retry-After, while images change, one of them dies and comes back with an old store, and the leader ends.
# operator-controller's client and cache, which read once for each image that a status names, lose no change, however late the API
# server tells the replicas that follow.
# shellcheck shell=bash

CATALOGS=20
IMAGES=8
# ClusterCatalogs that operator-controller's client follows at once, and changes of each of them for each lag.
FOLLOWED=4
CHANGES=50
declare -A API HEALTH PID

prepare() {
  need_olm_clients
  prepare_service
  secret login "$REGISTRY"
  push_images
}

# Small images, and the hash of the content of each.
push_images() {
  local step image=$REGISTRY/replicas/catalog tree=$WORK/tree
  mkdir -p "$tree/configs/demo"
  new_image "$WORK/layout:base"
  for ((step = 0; step < IMAGES; step++)); do
    generated_package demo "$step" >"$tree/configs/demo/catalog.yaml"
    add_layer "$WORK/layout:base" "$tree" "step-$step"
    copy_image "oci:$WORK/layout:step-$step" "docker://$image:step-$step"
    echo "$image@$(registry_digest "$image:step-$step") $("$CATALOG_MIRROR" render "oci:$WORK/layout:step-$step" | sha256)" >>"$WORK/refs"
  done
}

# start_replica NAME [ACCESS]: with the kubeconfig ACCESS.
start_replica() {
  CONTROLLER_ACCESS=${2:-} start_controller "$1" --leader-elect
  API[$1]=$CONTROLLER_API HEALTH[$1]=$CONTROLLER_HEALTH PID[$1]=$CONTROLLER_PID
}

is_ready() { curl -sf "http://127.0.0.1:${HEALTH[$1]}/readyz"; }
replica_leads() { leads "${HEALTH[$1]}"; }

# leader: the name of the replica that leads.
leader() { for each in "${!PID[@]}"; do if replica_leads "$each"; then echo "$each"; fi; done; }
has_leader() { [[ -n $(leader) ]]; }
followers() { for each in "${!PID[@]}"; do replica_leads "$each" || echo "$each"; done; }

# put_in_service: the replicas that run are those of the service.
put_in_service() { local each; for each in "${!PID[@]}"; do echo "127.0.0.1:${API[$each]}"; done >"$WORK/service.new" && mv "$WORK/service.new" "$WORK/service"; }

# end NAME SIGNAL: a replica, which the service forgets before.
end() {
  local pid=${PID[$1]}
  unset "PID[$1]"
  put_in_service
  kill "-$2" "$pid"
  wait "$pid" 2>/dev/null
}

create_catalogs() {
  local index image
  image=$(head -1 "$WORK/refs" | cut -d' ' -f1)
  for ((index = 0; index < CATALOGS; index++)); do
    clustercatalog "changing-$index" "$image"
  done | kubectl apply -f - >/dev/null
  succeeds "all catalogs are served" kubectl wait --for condition=Serving clustercatalogs --all --timeout 120s
}

# change UPDATES: changes all catalogs at once that many times each, and prints what was read.
change() {
  python3 -B "$LIB/reader.py" "$CLUSTER_URL" "$CLUSTER_CA" "$REGISTRY_CA" "$WORK/service" "$WORK/refs" "$CATALOGS" "$1"
}

# right NAME RESULT UPDATES
right() {
  say "$1: $2"
  is "$1: each update is named" "$(jq .updates <<<"$2")" "$3"
  is "$1: no read has the content of another image" "$(jq .wrong <<<"$2")" 0
  is "$1: every read is answered, after 503 the next one" "$(jq .failed <<<"$2")" 0
}

# served NAME CATALOG: code and hash of what a replica serves.
served() {
  local code
  code=$(curl -s --cacert "$REGISTRY_CA" --connect-to "$SERVICE:443:127.0.0.1:${API[$1]}" -o "$WORK/served-$1" -w '%{http_code}' "https://$SERVICE/catalogs/$2/api/v1/all")
  echo "$code $(sha256 "$WORK/served-$1")"
}
has_code() { [[ $(served "$1" "$2") == "$3 "* ]]; }

three_replicas() {
  local each
  for each in a b c; do start_replica "$each"; done
  succeeds "a replica leads" wait_for 30 has_leader
  for each in a b c; do succeeds "$each is ready" wait_for 30 is_ready "$each"; done
  is "one replica leads" "$(leader | wc -w)" 1
  create_catalogs
  put_in_service
}

# A follower dies without a word and comes back with an old store.
disturb() {
  local follower
  follower=$(followers | head -1)
  sleep 5
  end "$follower" KILL
  sleep 5
  start_replica "$follower"
  wait_for 60 is_ready "$follower"
  put_in_service
}

leader_leaves() {
  local old
  old=$(leader)
  end "$old" TERM
  succeeds "after a clean stop another replica leads at its next try" wait_for 35 has_leader
  start_replica "$old"
  succeeds "the stopped one comes back" wait_for 60 is_ready "$old"
  put_in_service
}

# expect_of_client: what operator-controller's client holds of each image, by what a mirror serves of it: `IMAGE HASH`.
expect_of_client() {
  local step image hash sources=()
  for ((step = 0; step < IMAGES; step++)); do sources+=(--catalog "step-$step=oci:$WORK/layout:step-$step"); done
  "$CATALOG_MIRROR" poll --store "$WORK/steps" "${sources[@]}" >/dev/null
  serve "$WORK/steps"
  for ((step = 0; step < IMAGES; step++)); do
    image=$(sed -n "$((step + 1))s/ .*//p" "$WORK/refs")
    hash=$(olm-clients http "$URL/catalogs/step-$step" "$WORK/step-$step" | cut -d' ' -f2)
    echo "$image $hash"
  done >"$WORK/held"
  is "each image is something else to operator-controller" "$(cut -d' ' -f2 "$WORK/held" | sort -u | wc -l)" "$IMAGES"
}

# lag MILLISECONDS: what the API server tells the replicas that follow comes so much later.
lag() {
  local port each
  port=$(free_port)
  start "$WORK/lag.log" python3 -B "$LIB/slow_proxy.py" "$port" "$APISERVER_PORT" "$1"
  sed "s/:$APISERVER_PORT,/:$port,/" "$WORK/account.yaml" >"$WORK/account-$1.yaml"
  for each in $(followers); do
    end "$each" TERM
    start_replica "$each" "$WORK/account-$1.yaml"
    succeeds "$each is ready with $1 ms of lag" wait_for 60 is_ready "$each"
  done
  put_in_service
}

# image_of CATALOG-NUMBER CHANGE: each ClusterCatalog that is followed has an image of its own.
image_of() { sed -n "$((($1 + $2) % IMAGES + 1))s/ .*//p" "$WORK/refs"; }

# give CHANGE: the images of a change to all of them.
give() {
  local number
  for ((number = 0; number < FOLLOWED; number++)); do
    clustercatalog "followed-$number" "$(image_of "$number" "$1")"
  done | kubectl apply -f - >/dev/null
}

# has_held LOG COUNT: so many images were read since the client began.
has_held() { (($(grep -c '^holds followed-' "$1") >= $2)); }

# read_once MILLISECONDS: the client reads each image that a status names once, from a replica by chance, and keeps what it got.
read_once() {
  local log=$WORK/follow-$1.log change number pid
  lag "$1"
  give 0
  # The client begins with these.
  for ((number = 0; number < FOLLOWED; number++)); do
    wait_for 60 has_resolved "followed-$number" "$(image_of "$number" 0)"
  done
  start "$log" olm-clients follow "$REGISTRY_CA" "$WORK/service" "$WORK/follow-$1"
  pid=$STARTED_PID
  wait_for 60 has_held "$log" "$FOLLOWED"
  for ((change = 1; change <= CHANGES; change++)); do
    give "$change"
    wait_for 60 has_held "$log" $((FOLLOWED * (change + 1))) || break
  done
  is "with $1 ms of lag the client holds an image after each change" "$(grep '^holds followed-' "$log" | sed "1,${FOLLOWED}d" | wc -l)" $((FOLLOWED * CHANGES))
  is "with $1 ms of lag it never holds the content of another image" \
    "$(grep '^holds followed-' "$log" | cut -d' ' -f3- | grep -vxFc -f "$WORK/held")" 0
  say "with $1 ms of lag $(grep -c '^refused followed-' "$log") reads were refused and read again"
  end_process "$pid"
}

# No replica serves what is withdrawn.
withdrawn() {
  local each
  for each in a b c; do succeeds "$each serves a catalog" wait_for 30 has_code "$each" changing-0 200; done
  kubectl patch clustercatalog changing-0 --type merge -p '{"spec": {"availabilityMode": "Unavailable"}}' >/dev/null
  kubectl delete clustercatalog changing-1 >/dev/null
  for each in a b c; do
    succeeds "$each does not serve one that became unavailable" wait_for 20 has_code "$each" changing-0 404
    succeeds "nor one that was deleted" wait_for 20 has_code "$each" changing-1 404
  done
}

api_server_stands_still() {
  local each content
  content=$(served a changing-3)
  kill -STOP "$APISERVER_PID"
  sleep 40
  for each in a b c; do is "without the API server $each serves" "$(served "$each" changing-3)" "$content"; done
  kill -CONT "$APISERVER_PID"
  succeeds "a replica leads when it answers again" wait_for 180 has_leader
}

prepare
three_replicas
change 30 >"$WORK/rest"
right "at rest" "$(cat "$WORK/rest")" $((CATALOGS * 30))
is "at rest: no connection breaks" "$(jq .broken "$WORK/rest")" 0
matches "a replica that has not pulled an image yet says so" "$(jq .retried "$WORK/rest")" '^[1-9]'
change 20 >"$WORK/disturbed" &
CHANGING=$!
disturb
wait "$CHANGING"
right "while a follower dies" "$(cat "$WORK/disturbed")" $((CATALOGS * 20))
leader_leaves
expect_of_client
for LAG in 0 20 100; do read_once "$LAG"; done
api_server_stands_still
withdrawn
is "the role of the controller suffices" "$(cat "$WORK"/?.log | grep -ci forbidden)" 0
stop_cluster
