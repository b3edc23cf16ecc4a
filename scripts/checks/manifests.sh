# The manifests for Kubernetes: kustomize builds them, Kubernetes' own schemas accept them, they keep to Pod Security "restricted",
# and the mirror starts with exactly their arguments. The controller's take the place of catalogd's, also of OpenShift's, and the alerts
# fire. The part cluster_manifests asks a real API server, starts the controller, and renders the Helm chart.
# shellcheck shell=bash

# The oldest version with all fields, and the newest that the validator knows. Without fields that they do not know.
VERSIONS=(1.32 1.37)
# Resources of operators, for which Kubernetes has no schema.
CUSTOM='["Certificate", "PrometheusRule", "ServiceMonitor"]'

# build VARIANT [COMPONENT...]: the objects as JSON, one a line.
build() {
  write_overlay "$WORK/overlay" "$@"
  kustomize build "$WORK/overlay" | "$VENV/bin/python" -c 'import json, sys, yaml
for each in yaml.safe_load_all(sys.stdin): print(json.dumps(each))'
}

# accepted NAME OBJECTS
accepted() {
  local name=$1 version
  jq -c --argjson custom "$CUSTOM" 'select(.kind as $kind | $custom | index($kind) | not)' "$2" >"$WORK/core.json"
  # The validator reads YAML, of which JSON is a part, and separate documents.
  sed 's/^/---\n/' "$WORK/core.json" >"$WORK/core.yaml"
  for version in "${VERSIONS[@]}"; do
    succeeds "$name: Kubernetes $version accepts all objects" kubernetes-validate --strict --no-warn -k "$version" "$WORK/core.yaml"
  done
}

pods() { jq -c 'select(.spec.template.spec.containers) | {name: .metadata.name, labels: .spec.template.metadata.labels, spec: .spec.template.spec}' "$1"; }

# The rules of the profile, and what it leaves open: the root, tokens, resources.
restricted() {
  is "$1: pods are restricted" "$(pods "$2" | jq -c 'select(
      (.spec.securityContext | .runAsNonRoot and .seccompProfile.type == "RuntimeDefault")
      and ([.spec.hostNetwork, .spec.hostPID, .spec.hostIPC] | any | not)
      and ([.spec.volumes[] | keys[] | select(. != "name")] - ["configMap", "emptyDir", "projected", "secret"] == [])
      and ([.spec.containers[].securityContext | (.allowPrivilegeEscalation == false) and .readOnlyRootFilesystem and .capabilities == {drop: ["ALL"]}] | all)
      | not).name')" ""
  is "$1: pods have requests, limits of memory, and a token only for the API server" "$(pods "$2" | jq -c 'select(
      (.spec.automountServiceAccountToken == false or .spec.containers[0].command == ["/usr/bin/catalog-mirror-controller"])
      and (.spec.containers[0].resources | .requests.cpu and .requests.memory and .limits.memory) | not).name')" ""
}

# A pod counts as ready only if a probe says so, and runs where its image does.
probed() {
  is "$1: each pod has probes" "$(pods "$2" | jq -c 'select(.spec.containers[0] | .readinessProbe.httpGet and .livenessProbe.httpGet | not).name')" ""
  is "$1: on the processors of the image" "$(pods "$2" | jq -c '[.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[].matchExpressions[]
    | select(.key == "kubernetes.io/arch").values[]]' | sort -u)" '["amd64","arm64"]'
}

# Each selector matches pods of the same build; each mount has its volume, each reference its object.
connected() {
  local file=$2
  is "$1: Services, budgets and policies select pods" "$(jq -rs '
    [.[] | select(.spec.template.spec.containers).spec.template.metadata.labels] as $pods
    | .[] | select(.kind == "Service" or .kind == "PodDisruptionBudget" or .kind == "NetworkPolicy")
    | (if .kind == "Service" then .spec.selector else (.spec.selector // .spec.podSelector).matchLabels end) as $wanted
    | select([$pods[] | . as $labels | $wanted | to_entries | all($labels[.key] == .value)] | any | not) | .kind' "$file")" ""
  is "$1: mounts have volumes" "$(jq -c 'select(.spec.template.spec.containers)
    | ([.spec.template.spec.containers[].volumeMounts[].name] - [.spec.template.spec.volumes[].name] - [.spec.volumeClaimTemplates[]?.metadata.name])
    | select(. != [])' "$file")" ""
  is "$1: service accounts and settings are there" "$(jq -rs '[.[] | "\(.kind)/\(.metadata.name)"] as $there
    | [.[].spec.template.spec | select(.containers) | "ServiceAccount/\(.serviceAccountName)", "ConfigMap/\(.volumes[].configMap.name // empty)",
       "ConfigMap/\(.containers[].envFrom[]?.configMapRef.name // empty)"] - $there | .[]' "$file")" ""
}

# starts NAME OBJECTS POD SCHEME [registry-api]: the program, with the arguments and the variables of a pod. Only folders and ports are others.
starts() {
  local name=$1 pod arguments variables port grpc log=$WORK/$3.log probe
  pod=$(pods "$2" | jq -c --arg name "$3" 'select(.name == $name)')
  port=$(free_port) grpc=$(free_port)
  jq -r 'select(.kind == "ConfigMap") | .data["catalogs.yaml"] // empty' "$2" |
    sed "s|source: .*|source: oci:$LAYOUT:$LAST_TAG|" >"$WORK/etc/catalog-mirror/catalogs.yaml"
  # Clients of OLM v0 can use no TLS, so a mirror that has it must be told what is for all.
  if [[ $4 == https ]]; then echo 'grpc: {anonymous: [operatorhubio]}' >>"$WORK/etc/catalog-mirror/catalogs.yaml"; fi
  mapfile -t arguments < <(jq -r '.spec.containers[0].args[]' <<<"$pod" |
    sed "s|=/etc/|=$WORK/etc/|; s|=/var/lib/|=$WORK/lib/|; s|0.0.0.0:8080|127.0.0.1:$port|; s|0.0.0.0:50051|127.0.0.1:$grpc|")
  mapfile -t variables < <(jq -rs '.[] | select(.kind == "ConfigMap" and (.metadata.name | startswith("catalog-mirror-s3"))) | .data
    | to_entries[] | "\(.key)=\(.value)"' "$2")
  probe=$(jq -r '.spec.containers[0].readinessProbe.httpGet | "\(.scheme // "HTTP" | ascii_downcase)://127.0.0.1:PORT\(.path)"' <<<"$pod")
  is "$name: the probe of $3 asks over $4" "${probe%%:*}" "$4"
  start "$log" env "${variables[@]}" "$CATALOG_MIRROR" "${arguments[@]}"
  succeeds "$name: $3 starts with its arguments and is ready" wait_for 30 curl -sfk "${probe/PORT/$port}"
  if [[ -n ${5:-} ]]; then succeeds "$name: it answers the registry API" wait_for 5 bash -c "exec 3<>/dev/tcp/127.0.0.1/$grpc"; fi
}

# same_place: the controller's objects and those of catalogd of OpenShift (openshift/operator-framework-operator-controller, 186c9e64,
# openshift/catalogd/manifests.yaml) are the same ones, which a program of the cluster, a webhook or a Prometheus finds by their names.
same_place() {
  local objects=$WORK/place.json where=openshift-catalogd
  build controller/base service-monitor pull-secret egress openshift node-registries >"$objects"
  connected "OpenShift" "$objects"
  accepted "OpenShift" "$objects"
  same_lines "OpenShift: the objects have the names of catalogd's" "$(jq -r 'select(.kind | IN("Deployment", "Service", "ServiceAccount", "NetworkPolicy", "ConfigMap"))
    | "\(.kind) \(.metadata.namespace) \(.metadata.name)"' "$objects")" "Deployment $where catalogd-controller-manager
Service $where catalogd-service
ServiceAccount $where catalogd-controller-manager
NetworkPolicy $where catalogd-controller-manager
ConfigMap $where catalogd-trusted-ca-bundle"
  is "OpenShift: the service account is that of the namespace in each binding" \
    "$(jq -r 'select(.subjects).subjects[] | select(.name == "catalogd-controller-manager").namespace' "$objects" | sort | uniq -c | xargs)" "6 $where"
  is "OpenShift: roles for other namespaces stay there" "$(jq -r 'select(.kind == "Role" and .metadata.namespace != "'$where'").metadata | "\(.namespace)/\(.name)"' "$objects" | sort | xargs)" \
    "default/catalog-mirror-events openshift-config/catalog-mirror-global-pull-secret"
  is "OpenShift: no object names the namespace of upstream" "$(grep -c olmv1-system "$objects")" 0
  is "OpenShift: the pods have the address, the priority and the files of the node of catalogd's" "$(pods "$objects" | jq -c '.spec
    | [(.containers[0].args[] | select(startswith("--external-address="))), .priorityClassName, (.volumes[] | .hostPath.path // empty), .securityContext.seLinuxOptions.type]')" \
    '["--external-address=catalogd-service.openshift-catalogd.svc","system-cluster-critical","/etc/containers","spc_t"]'
  # Two roles of one name in one namespace are an error of kustomize.
  write_overlay "$WORK/overlay" controller/base openshift
  echo "namespace: other" >>"$WORK/overlay/kustomization.yaml"
  succeeds "another namespace can be given" kustomize build "$WORK/overlay"
}

# What catalogd reached its replacement reaches: registries, proxies and S3 servers at any port. The component egress allows less.
reaches() {
  build controller/base >"$WORK/open.json"
  is "the controller's policy is that of catalogd v1.11.0" "$(jq -c 'select(.kind == "NetworkPolicy").spec | [.egress, ([.ingress[].ports[].port] | sort)]' "$WORK/open.json")" \
    '[[{}],[7443,8443,9443]]'
  build controller/base egress >"$WORK/narrow.json"
  is "the component egress allows some ports" "$(jq -c 'select(.kind == "NetworkPolicy").spec.egress | [.[].ports[].port] | unique' "$WORK/narrow.json")" '[53,443,5353,6443,8443]'
  is "the controller may run where catalogd may" "$(pods "$WORK/open.json" | jq -c '[.spec.tolerations[] | .key] | sort')" \
    '["node-role.kubernetes.io/control-plane","node.kubernetes.io/not-ready","node.kubernetes.io/unreachable"]'
}

# alerts VARIANT <TESTS: Prometheus takes the alerts of a variant, and each fires for the series that it is for and for no other one.
alerts() {
  local name=${1%%/*}
  build "$1" alerts | jq 'select(.kind == "PrometheusRule").spec' >"$WORK/$name-rules.json"
  succeeds "Prometheus takes the alerts of the $name" promtool check rules "$WORK/$name-rules.json"
  # Their texts would have to be repeated.
  jq 'del(.groups[].rules[].annotations)' "$WORK/$name-rules.json" >"$WORK/$name-alerts.json"
  { printf 'rule_files: [%s-alerts.json]\nevaluation_interval: 1m\ntests:\n' "$name" && cat; } >"$WORK/$name-tests.yaml"
  is "each of them is tested" "$(grep -o 'alertname: [A-Za-z]*' "$WORK/$name-tests.yaml" | cut -d' ' -f2 | sort -u)" "$(jq -r '.groups[].rules[].alert' "$WORK/$name-rules.json" | sort)"
  succeeds "and fires when it should" promtool test rules "$WORK/$name-tests.yaml"
}

all_alerts() {
  alerts mirror/volume <<'END'
- interval: 1m
  input_series:
  # One pod polls, the other has not for an hour. A replica of the controller that does not lead does not poll.
  - {series: 'catalog_mirror_last_successful_poll_age_seconds{job="m", instance="one", catalog="a"}', values: 60x240}
  - {series: 'catalog_mirror_last_successful_poll_age_seconds{job="m", instance="two", catalog="a"}', values: 3601x240}
  - {series: 'catalog_mirror_last_successful_poll_age_seconds{job="c", instance="three", catalog="a"}', values: 3601x240}
  - {series: 'catalog_mirror_controller_leader{job="c", instance="three"}', values: 0x240}
  - {series: 'catalog_mirror_failed_for_good{job="m", instance="one", catalog="a"}', values: 0x240}
  - {series: 'catalog_mirror_failed_for_good{job="m", instance="one", catalog="b"}', values: 1x240}
  - {series: 'catalog_mirror_held{job="m", instance="one", catalog="a"}', values: 0x240}
  - {series: 'catalog_mirror_held{job="m", instance="one", catalog="b"}', values: 1x240}
  - {series: 'catalog_mirror_http_requests_total{job="m", instance="one", status="200"}', values: 0+1000x240}
  - {series: 'catalog_mirror_http_requests_total{job="m", instance="one", status="503"}', values: 0+20x240}
  - {series: 'catalog_mirror_http_requests_total{job="n", instance="one", status="200"}', values: 0+1000x240}
  - {series: 'catalog_mirror_http_requests_total{job="n", instance="one", status="503"}', values: 0+5x240}
  - {series: 'catalog_mirror_collections_failed_total{job="m", instance="one"}', values: 1x200 2x40}
  - {series: 'catalog_mirror_collections_failed_total{job="m", instance="two"}', values: 1x240}
  - {series: 'catalog_mirror_file_broken{job="m", instance="one", file="readers"}', values: 1x240}
  - {series: 'catalog_mirror_file_broken{job="m", instance="one", file="certificate"}', values: 0x240}
  - {series: 'kubelet_volume_stats_available_bytes{persistentvolumeclaim="store-catalog-mirror-0"}', values: 9x240}
  - {series: 'kubelet_volume_stats_capacity_bytes{persistentvolumeclaim="store-catalog-mirror-0"}', values: 100x240}
  - {series: 'kubelet_volume_stats_available_bytes{persistentvolumeclaim="store-catalog-mirror-1"}', values: 11x240}
  - {series: 'kubelet_volume_stats_capacity_bytes{persistentvolumeclaim="store-catalog-mirror-1"}', values: 100x240}
  alert_rule_test:
  - {alertname: CatalogMirrorStale, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: m, instance: two, catalog: a}}]}
  - {alertname: CatalogMirrorFailedForGood, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: m, catalog: b}}]}
  - {alertname: CatalogMirrorHeld, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: m, catalog: b}}]}
  - {alertname: CatalogMirrorErrors, eval_time: 4h, exp_alerts: [{exp_labels: {severity: critical, job: m}}]}
  - {alertname: CatalogMirrorCollectionFails, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: m, instance: one}}]}
  - {alertname: CatalogMirrorFileBroken, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: m, file: readers}}]}
  - {alertname: CatalogMirrorVolumeFull, eval_time: 4h, exp_alerts: [{exp_labels: {severity: critical, persistentvolumeclaim: store-catalog-mirror-0}}]}
END
  alerts controller/base <<'END'
- interval: 1m
  input_series:
  # Only the leader polls. Of one job it has not for an hour, the other has no leader, and catalogd has its Lease.
  - {series: 'catalog_mirror_last_successful_poll_age_seconds{job="c", instance="one", catalog="a"}', values: 3601x240}
  - {series: 'catalog_mirror_last_successful_poll_age_seconds{job="c", instance="two", catalog="b"}', values: 3601x240}
  - {series: 'catalog_mirror_controller_leader{job="c", instance="one"}', values: 1x240}
  - {series: 'catalog_mirror_controller_leader{job="c", instance="two"}', values: 0x240}
  - {series: 'catalog_mirror_controller_leader{job="d", instance="one"}', values: 0x240}
  - {series: 'catalog_mirror_controller_other_program{job="c", instance="one"}', values: 0x240}
  - {series: 'catalog_mirror_controller_other_program{job="d", instance="one"}', values: 1x240}
  - {series: 'catalog_mirror_failed_for_good{job="c", instance="one", catalog="b"}', values: 1x240}
  - {series: 'catalog_mirror_held{job="c", instance="one", catalog="b"}', values: 1x240}
  - {series: 'catalog_mirror_http_requests_total{job="c", instance="one", status="200"}', values: 0+1000x240}
  - {series: 'catalog_mirror_http_requests_total{job="c", instance="one", status="503"}', values: 0+20x240}
  - {series: 'catalog_mirror_collections_failed_total{job="c", instance="one"}', values: 1x200 2x40}
  alert_rule_test:
  - {alertname: CatalogMirrorStale, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: c, catalog: a}}]}
  - {alertname: CatalogMirrorFailedForGood, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: c, catalog: b}}]}
  - {alertname: CatalogMirrorHeld, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: c, catalog: b}}]}
  - {alertname: CatalogMirrorErrors, eval_time: 4h, exp_alerts: [{exp_labels: {severity: critical, job: c}}]}
  - {alertname: CatalogMirrorCollectionFails, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: c, instance: one}}]}
  - {alertname: CatalogMirrorNoLeader, eval_time: 4h, exp_alerts: [{exp_labels: {severity: critical, job: d}}]}
  - {alertname: CatalogMirrorOtherProgram, eval_time: 4h, exp_alerts: [{exp_labels: {severity: warning, job: d}}]}
END
  # The mirror knows those that need no bucket, no file and no API server.
  is "the program exports what they ask for" "$(jq -r '.groups[].rules[].expr' "$WORK"/{mirror,controller}-rules.json | grep -o 'catalog_mirror_[a-z_]*' | sort -u |
    while read -r name; do grep -rqE "\"${name#catalog_mirror_}\"|\"$(sed 's/^catalog_mirror_//; s/_total$//' <<<"$name")\"" "$ROOT"/{shared,functions} --include=*.rs || echo "$name"; done)" ""
}

# built VARIANT [COMPONENT...]: whatever a person puts together fits together.
built() {
  local name="$1${2:+ with ${*:2}}" objects=$WORK/${1//\//-}.json
  if ! build "$@" >"$objects"; then not_ok "$name: kustomize builds it"; return; fi
  connected "$name" "$objects"
  # One component alone has nothing that all together do not have.
  if (($# == 2)); then return; fi
  accepted "$name" "$objects"
  restricted "$name" "$objects"
  probed "$name" "$objects"
  case "$# $1" in
    *controller/*) ;;
    '1 '*) starts "$name" "$objects" catalog-mirror http ;;
    *) starts "$name" "$objects" catalog-mirror https registry-api ;;
  esac
}

need_python_tools
need_kustomize
need_debian promtool=prometheus
mkdir -p "$WORK/etc/catalog-mirror" "$WORK/lib"
make_certificates "$WORK/etc/catalog-mirror-tls"
start_s3 moto
make_bucket catalog-mirror
each_overlay built
starts mirror/s3 "$WORK/mirror-s3.json" catalog-mirror-poller https
is "a poller that stops at once does not replace the one before it" "$(jq -c 'select(.metadata.name == "catalog-mirror-poller" and .kind == "Deployment").spec
  | [.minReadySeconds, .strategy.rollingUpdate.maxUnavailable]' "$WORK/mirror-s3.json")" '[10,0]'
same_place
reaches
all_alerts
