# catalogd v1.11.0 and the controller, one after the other, at a real API server (etcd, kube-apiserver v1.36.2) and a real registry
# with a login: after each step the status of every ClusterCatalog is the same, but for times and texts of errors.
# shellcheck shell=bash

prepare() {
  prepare_service
  start_own_registry
  # The login comes from the service account; the global secret has one for another registry.
  secret login "$OWN"
  secret global registry.invalid
  write_registries_conf
}

# A registry that this part may stop, with the certificates and logins of the suite's.
start_own_registry() {
  start_second_registry "$WORK/own"
  OWN=$SECOND_REGISTRY OWN_PID=$STARTED_PID
  push first step-000
  push second step-001
  new_image "$WORK/bare:latest"
  umoci config --image "$WORK/bare:latest" --clear=config.labels
  copy_image "oci:$WORK/bare:latest" "docker://$OWN/ns/catalog:bare"
}

# Both programs read it: a mirror that a cluster without a connection has, and a registry that must not be asked.
write_registries_conf() {
  cat >"$WORK/registries.conf" <<TOML
unqualified-search-registries = ["docker.io"]

[[registry]]
location = "registry.invalid/mirrored"

[[registry.mirror]]
location = "$OWN/none"

[[registry.mirror]]
location = "$OWN/ns"

[[registry]]
location = "$OWN/blocked"
blocked = true
TOML
  export CONTAINERS_REGISTRIES_CONF=$WORK/registries.conf
}

up() {
  serve_registry "$WORK/own" "https://$OWN"
  OWN_PID=$STARTED_PID
}

down() { end_process "$OWN_PID"; }

# push TAG STEP
push() { copy_image "oci:$LAYOUT:$2" "docker://$OWN/ns/catalog:$1"; }

digest() { registry_digest "$OWN/ns/catalog:$1"; }

# PEER says which one runs: ours or catalogd.
start_peer() { "start_$PEER"; }
start_ours() {
  BEGAN=$(now_ms)
  start_controller ours --global-pull-secret="$NAMESPACE/global" --leader-elect "$@"
}
start_catalogd() {
  run_catalogd catalogd --global-pull-secret="$NAMESPACE/global" "$@"
  CATALOGD_PID=$CONTROLLER_PID
}

stop_peer() { end_process "$CONTROLLER_PID"; }

# catalog NAME REFERENCE [IMAGE [SPEC]]: creates a ClusterCatalog of the registry; the last two as for clustercatalog.
catalog() { clustercatalog "$1" "$OWN/ns/catalog$2" "${@:3}" | kubectl apply -f - >/dev/null; }

# condition NAME TYPE: `status reason observedGeneration`.
condition() {
  kubectl get clustercatalog "$1" -o json |
    jq -r --arg type "$2" '.metadata.generation as $g | .status.conditions[]? | select(.type == $type) | "\(.status) \(.reason) \(.observedGeneration == $g)"'
}

# becomes NAME TYPE EXPECTED [SECONDS]
becomes() {
  wait_for "${4:-45}" has_condition "$1" "$2" "$3" || not_ok "$PEER: $1 becomes $3" "$(condition "$1" "$2")" "$(tail -n 5 "$WORK/$PEER.log")"
}
has_condition() { [[ $(condition "$1" "$2") == "$3" ]]; }

# record STEP: all statuses and finalizers, without times and texts of errors.
record() {
  mkdir -p "$WORK/$PEER"
  kubectl get clustercatalogs -o json | jq '[.items[] | {
      name: .metadata.name,
      finalizers: (.metadata.finalizers // []),
      status: (.status // {} | if .lastUnpacked then .lastUnpacked = "a time" else . end
        | .conditions |= map(del(.lastTransitionTime)
          | if .reason == "Retrying" or .reason == "Blocked" then .message = "an error" else . end))
    }] | sort_by(.name)' >"$WORK/$PEER/$1.json"
}

# The life of some ClusterCatalogs under one program.
story() {
  PEER=$1
  local digest second
  push now step-000
  digest=$(digest first) second=$(digest second)
  start_peer
  catalog tag :now 'pollIntervalMinutes: 1'
  catalog once :first
  catalog digest "@$digest"
  catalog both ":first@$digest"
  catalog missing :missing
  catalog bare :bare
  catalog bare-digest "@$(digest bare)"
  catalog hidden :first '' 'availabilityMode: Unavailable'
  catalog held :first
  clustercatalog mirrored registry.invalid/mirrored/catalog:first | kubectl apply -f - >/dev/null
  clustercatalog blocked "$OWN/blocked/catalog:first" | kubectl apply -f - >/dev/null
  for name in tag once digest held mirrored; do becomes "$name" Serving "True Available true"; done
  for name in missing bare blocked; do becomes "$name" Progressing "True Retrying true"; done
  for name in both bare-digest; do becomes "$name" Progressing "False Blocked true"; done
  becomes hidden Serving "False UserSpecifiedUnavailable true"
  record created
  [[ $PEER != ours ]] || after_creation

  kubectl patch clustercatalog once --type merge -p '{"spec": {"availabilityMode": "Unavailable"}}' >/dev/null
  becomes once Serving "False UserSpecifiedUnavailable true"
  kubectl patch clustercatalog hidden --type merge -p '{"spec": {"availabilityMode": "Available"}}' >/dev/null
  becomes hidden Serving "True Available true"
  record switched
  [[ $PEER != ours ]] || after_switch

  kubectl patch clustercatalog once --type merge -p '{"spec": {"availabilityMode": "Available"}}' >/dev/null
  kubectl patch clustercatalog digest --type merge -p "{\"spec\": {\"source\": {\"image\": {\"ref\": \"$OWN/ns/catalog@$second\"}}}}" >/dev/null
  kubectl patch clustercatalog missing --type merge -p "{\"spec\": {\"source\": {\"image\": {\"ref\": \"$OWN/ns/catalog:second\"}}}}" >/dev/null
  # Its content stays served, and its status names the old generation.
  kubectl patch clustercatalog hidden --type merge -p "{\"spec\": {\"source\": {\"image\": {\"ref\": \"$OWN/ns/catalog:missing\"}}}}" >/dev/null
  for name in once digest missing; do becomes "$name" Serving "True Available true"; done
  becomes hidden Progressing "True Retrying true"
  foreign_condition tag
  push now step-001
  succeeds "$PEER: a changed tag is published within its interval" wait_for 75 has_resolved tag "$OWN/ns/catalog@$second"
  record changed
  [[ $PEER != ours ]] || after_change

  # What changes while the program stands still is older than what the new API server remembers, so that the watch has expired.
  kill -STOP "$CONTROLLER_PID"
  kubectl patch clustercatalog missing --type merge -p "{\"spec\": {\"source\": {\"image\": {\"ref\": \"$OWN/ns/catalog:first\"}}}}" >/dev/null
  kubectl delete clustercatalog hidden --wait=false >/dev/null
  catalog late :first
  end_process "$CONTROLLER_APISERVER_PID"
  start_api_server
  kill -CONT "$CONTROLLER_PID"
  becomes late Serving "True Available true"
  succeeds "$PEER: a change of the spec is seen after a restart of the API server" wait_for 45 has_resolved missing "$OWN/ns/catalog@$digest"
  succeeds "$PEER: and a deletion" wait_for 45 is_gone hidden
  record restarted
  [[ $PEER != ours ]] || matches "the watch had expired" "$(cat "$WORK/ours.log")" 'too old resource version'

  down
  stop_peer
  start_peer
  [[ $PEER != ours ]] || while_down
  for name in tag once missing held late mirrored; do becomes "$name" Progressing "True Retrying true"; done
  # With its store the controller needs no registry for a digest: only catalogd forgets what it knew of them.
  becomes digest Progressing "$(if [[ $PEER == ours ]]; then echo True Succeeded true; else echo True Retrying true; fi)"
  becomes bare-digest Progressing "$(if [[ $PEER == ours ]]; then echo False Blocked true; else echo True Retrying true; fi)"
  record down
  up
  for name in tag digest once missing held late mirrored; do becomes "$name" Progressing "True Succeeded true" 120; done
  becomes bare-digest Progressing "False Blocked true" 120
  record up

  # Another finalizer shows the status after the work of ours.
  kubectl patch clustercatalog held --type merge -p '{"metadata": {"finalizers": ["olm.operatorframework.io/delete-server-cache", "example.com/hold"]}}' >/dev/null
  kubectl delete clustercatalog held --wait=false >/dev/null
  becomes held Serving "False Unavailable true"
  wait_for 20 has_finalizers held '["example.com/hold"]'
  record deleted
  kubectl patch clustercatalog held --type merge -p '{"metadata": {"finalizers": []}}' >/dev/null
  succeeds "$PEER: all ClusterCatalogs can be deleted" timeout 60 kubectl delete clustercatalogs --all
  [[ $PEER != ours ]] || after_deletion
  stop_peer
}

is_gone() { [[ -z $(kubectl get clustercatalog "$1" --ignore-not-found -o name) ]]; }
has_finalizers() { [[ $(kubectl get clustercatalog "$1" -o json | jq -c .metadata.finalizers) == "$2" ]]; }

# foreign_condition NAME: a condition that neither program knows.
foreign_condition() {
  kubectl get clustercatalog "$1" -o json | jq '.status.conditions += [{type: "Foreign", status: "True", reason: "Other",
    message: "of others", lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1}]' |
    kubectl replace --subresource status -f - >/dev/null
}

ask() { curl -sS --cacert "$REGISTRY_CA" "${@:2}" "https://127.0.0.1:$CONTROLLER_API$1"; }
code() { ask "$1" -o /dev/null -w '%{http_code}' "${@:2}"; }
metrics() { curl -sS --cacert "$REGISTRY_CA" "https://127.0.0.1:$CONTROLLER_METRICS/metrics" "$@"; }
# versions: those of two catalogs that nothing changes before they are compared.
versions() { kubectl get clustercatalogs tag digest -o json | jq -c '[.items[].metadata.resourceVersion]'; }

after_creation() {
  is "a catalog is served" "$(ask /catalogs/tag/api/v1/all | sha256)" "$("$CATALOG_MIRROR" render "oci:$LAYOUT:step-000" | sha256)"
  is "one that is unavailable is not" "$(code /catalogs/hidden/api/v1/all)" 404
  is "it is ready" "$(curl -sS "http://127.0.0.1:$CONTROLLER_HEALTH/readyz")" ok
  is "/metrics wants a token" "$(metrics -o /dev/null -w '%{http_code}')" 401
  is "a valid one" "$(metrics -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer nonsense')" 401
  is "of a user who may get it" "$(metrics -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $(account_token)")" 403
  matches "the metrics tell the leader" "$(metrics -H 'Authorization: Bearer administrator')" 'catalog_mirror_controller_leader 1'
  succeeds "a failure is an event" wait_for 20 has_event missing
  has_label || not_ok "the name is a label of each available catalog" "$(kubectl get clustercatalogs --show-labels)"
  handover
  VERSIONS=$(versions)
}
has_label() { kubectl get clustercatalogs -o json | jq -e '[.items[] | select(.spec.availabilityMode == "Available") | .metadata.labels["olm.operatorframework.io/metadata.name"] == .metadata.name] | all' >/dev/null; }

after_switch() {
  is "a catalog that became unavailable is gone" "$(code /catalogs/once/api/v1/all)" 404
  is "one that became available is served" "$(code /catalogs/hidden/api/v1/all)" 200
  second_replica
  # Long enough for a poll of the catalog with an interval.
  sleep 62
  is "unchanged polls write nothing" "$(versions)" "$VERSIONS"
}

# catalogd and the controller have one Lease: only one of them leads. From one to the other and back, as the page for administrators
# says, each read is answered with the same content.
handover() {
  local ours=$CONTROLLER_PID holder
  holder=$(holder)
  echo "$CONTROLLER_API" >"$WORK/service"
  : >"$WORK/read"
  read_always &
  READING=$!
  start_catalogd --leader-elect
  succeeds "catalogd waits for the Lease" wait_for 30 grep -qi 'attempting to acquire leader lease' "$WORK/catalogd.log"
  sleep 3
  is "while the controller has it" "$(holder)" "$holder"
  lease annotate catalog-mirror/yield=true >/dev/null
  succeeds "catalogd leads when the controller yields" wait_for 80 held_by_other "$holder"
  holder=$(holder)
  succeeds "catalogd pulls what the controller serves meanwhile" wait_for 60 serves_all
  echo "$CONTROLLER_API" >"$WORK/service"
  end_process "$ours"
  rm -r "$WORK/ours-cache"
  start_ours
  succeeds "the controller holds what the statuses name" wait_for 60 curl -sf "http://127.0.0.1:$CONTROLLER_HEALTH/readyz"
  matches "and says so" "$(curl -sS "http://127.0.0.1:$CONTROLLER_HEALTH/readyz?verbose")" 'another program.*has the Lease'
  matches "its metric too" "$(metrics -H 'Authorization: Bearer administrator')" 'catalog_mirror_controller_other_program 1'
  is "while catalogd has it" "$(holder)" "$holder"
  echo "$CONTROLLER_API" >"$WORK/service"
  sleep 2
  lease annotate catalog-mirror/yield- >/dev/null
  end_process "$CATALOGD_PID"
  succeeds "the controller leads after catalogd has stopped" wait_for 60 leads
  end_process "$READING"
  is "every read of them was answered with the same content" "$(sort -u "$WORK/read")" "200 $(ask /catalogs/digest/api/v1/all | sha256)"
}
serves_all() { for each in tag once digest held; do [[ $(code "/catalogs/$each/api/v1/all") == 200 ]] || return 1; done; }
lease() { kubectl "$1" lease -n "$NAMESPACE" catalogd-operator-lock "${@:2}"; }
# Reads a catalog from the program that the service has, time and again.
read_always() {
  while true; do
    CONTROLLER_API=$(cat "$WORK/service")
    echo "$(ask /catalogs/digest/api/v1/all -o "$WORK/read-body" -w '%{http_code}') $(sha256 "$WORK/read-body")" >>"$WORK/read"
    sleep 0.1
  done
}
holder() { kubectl get lease -n "$NAMESPACE" catalogd-operator-lock -o jsonpath='{.spec.holderIdentity}'; }
held_by_other() {
  local now
  now=$(holder)
  [[ -n $now && $now != "$1" ]]
}

# A second replica on the same store: it serves, and writes nothing until the first one stops.
second_replica() {
  local first=$CONTROLLER_PID
  start_ours --store "$WORK/ours-cache/catalog-mirror"
  succeeds "a replica without the Lease is ready" wait_for 20 curl -sf "http://127.0.0.1:$CONTROLLER_HEALTH/readyz"
  matches "and says that it writes nothing" "$(curl -sS "http://127.0.0.1:$CONTROLLER_HEALTH/readyz?verbose")" 'writes nothing'
  is "and serves" "$(code /catalogs/tag/api/v1/all)" 200
  matches "its metric is 0" "$(metrics -H 'Authorization: Bearer administrator')" 'catalog_mirror_controller_leader 0'
  end_process "$first"
  succeeds "the second one leads at its next try" wait_for 35 leads
}
serves_tag() { [[ $(code /catalogs/tag/api/v1/all) == 200 ]]; }

after_change() {
  is "the changed content is served" "$(ask /catalogs/tag/api/v1/all | sha256)" "$("$CATALOG_MIRROR" render "oci:$LAYOUT:step-001" | sha256)"
  is "content stays served while polls fail" "$(code /catalogs/hidden/api/v1/all)" 200
  authorities
}

# The folder of authorities is read again, and the catalogs that waited for it are polled at once, though one has no interval.
authorities() {
  mv "$WORK/authorities/ca.crt" "$WORK/removed.crt"
  for name in tag once; do becomes "$name" Progressing "True Retrying true" 30; done
  is "without its authority the registry is not asked, and the content stays served" "$(code /catalogs/once/api/v1/all)" 200
  mv "$WORK/removed.crt" "$WORK/authorities/ca.crt"
  for name in tag once; do becomes "$name" Progressing "True Succeeded true" 30; done
}

while_down() {
  local served
  succeeds "without the registry the last state is served after a restart" wait_for 20 serves_tag
  served=$(($(now_ms) - BEGAN))
  is "within a second of the start ($served ms)" "$((served < 1000))" 1
  succeeds "and the controller is ready, once it knows the ClusterCatalogs" wait_for 10 curl -sf "http://127.0.0.1:$CONTROLLER_HEALTH/readyz"
}

after_deletion() {
  is "nothing is served after the deletion" "$(code /catalogs/tag/api/v1/all)" 404
  is "the role of the controller suffices" "$(grep -ci forbidden "$WORK/ours.log")" 0
  is "no secret is in its log" "$(grep -c "$REGISTRY_PASSWORD" "$WORK/ours.log")" 0
}

# compared PEER STEP: what both must agree on.
compared() {
  # See above: only catalogd needs the registry for a digest after a restart.
  jq --arg step "$2" '.[] | select($step != "down" or (.name | IN("digest", "bare-digest") | not))' "$WORK/$1/$2.json"
}

compare() {
  local step
  for step in created switched changed restarted down up deleted; do
    succeeds "statuses are those of catalogd: $step" diff <(compared catalogd "$step") <(compared ours "$step")
  done
}

prepare
story catalogd
story ours
compare
stop_cluster
