# The manifests at a real API server: it accepts all of them, their pods keep to Pod Security "restricted", and the controller runs
# with exactly the arguments, the service account and the roles of its manifests, each verb of which it uses. The pages' commands to
# replace catalogd, to go back and to uninstall do what they say. The Helm chart renders what kustomize builds, and the dashboard asks
# for metrics that the controller exports. The API server accepts the mirror sets that the program prints for OpenShift.
# shellcheck shell=bash

PAGE=$MANIFESTS/controller/README.md
HOST=catalogd-service.$NAMESPACE.svc
FINALIZER=olm.operatorframework.io/delete-server-cache
STARTS=0
AUDIT=$WORK/audit.log
DEPLOYMENT=(deployment -n "$NAMESPACE" catalogd-controller-manager)

prepare() {
  local folder
  need_operator_crds
  need_helm
  need_promql
  jq -n --arg account "system:serviceaccount:$NAMESPACE:$ACCOUNT" \
    '{apiVersion: "audit.k8s.io/v1", kind: "Policy", rules: [{level: "Metadata", users: [$account]}]}' >"$WORK/audit.json"
  prepare_cluster --audit-policy-file "$WORK/audit.json" --audit-log-path "$AUDIT"
  for folder in "$CRDS" "${OPERATOR_CRDS[@]}"; do kubectl apply --server-side -f "$folder" >/dev/null; done
  wait_for 30 kubectl get certificates,servicemonitors,prometheusrules,clustercatalogs -A
  for folder in "$NAMESPACE" openshift-catalogd mirrors openshift-config restricted; do kubectl create namespace "$folder" >/dev/null; done
  kubectl label namespace restricted pod-security.kubernetes.io/enforce=restricted pod-security.kubernetes.io/warn=restricted >/dev/null
}

# mirror_set_crd KIND FIELD: a definition with the rules of openshift/api (config/v1, c01b540c), without its texts.
mirror_set_crd() {
  local host='((?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(?::[0-9]+)?)'
  local place="^$host"'(?:(?:/[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?)+)?$'
  jq -n --arg kind "$1" --arg field "$2" --arg place "$place" '{
    apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition",
    metadata: {name: "\($kind | ascii_downcase)s.config.openshift.io", annotations: {"api-approved.openshift.io": "https://github.com/openshift/api/pull/1126"}},
    spec: {group: "config.openshift.io", scope: "Cluster", names: {kind: $kind, plural: "\($kind | ascii_downcase)s"}, versions: [{
      name: "v1", served: true, storage: true, schema: {openAPIV3Schema: {type: "object", required: ["spec"], properties: {
        spec: {type: "object", properties: {($field): {type: "array", items: {type: "object", required: ["source"], properties: {
          source: {type: "string", pattern: $place}, mirrors: {type: "array", items: {type: "string", pattern: $place}, "x-kubernetes-list-type": "set"}}}}}}}}}}]}}'
}

# The manifests that `catalog-mirror manifests` prints for OpenShift, of a catalog with images by digest and by tag.
mirror_sets() {
  local store=$WORK/mirrored configs=$WORK/mirrored-configs refused
  mirror_set_crd ImageDigestMirrorSet imageDigestMirrors | kubectl apply -f - >/dev/null
  mirror_set_crd ImageTagMirrorSet imageTagMirrors | kubectl apply -f - >/dev/null
  wait_for 30 kubectl get imagedigestmirrorsets,imagetagmirrorsets
  mkdir -p "$configs"
  json_package p "quay.io:443/team/bundle@sha256:$(printf '%064d' 0)" nginx:1 alone.example/c:1 >"$configs/p.json"
  "$CATALOG_MIRROR" poll --store "$store" --catalog "p=dir:$configs" >/dev/null
  "$CATALOG_MIRROR" manifests --store "$store" --images-at "registry.example:5000/olm" --kind mirror-sets >"$WORK/mirror-sets.yaml"
  is "there are both mirror sets" "$(grep -c '^kind: Image' "$WORK/mirror-sets.yaml")" 2
  succeeds "the API server accepts the mirror sets, with strict fields" kubectl apply --dry-run=server --validate=strict -f "$WORK/mirror-sets.yaml"
  refused=$(sed 's|source: quay.io:443/team|source: quay.io:443/TEAM|' "$WORK/mirror-sets.yaml" | kubectl apply --dry-run=server -f - 2>&1)
  matches "and would refuse a source that is no place" "$refused" 'should match'
}

# accepted NAME FILE: by a dry run, each object and each pod.
accepted() {
  local name=$1 pod said
  succeeds "$name: the API server accepts all objects" kubectl apply --dry-run=server -f "$2"
  while read -r pod; do
    said=$(kubectl create --dry-run=server -n restricted -f - <<<"$pod" 2>&1)
    is "$name: and the pod of $(jq -r .metadata.name <<<"$pod") where pods are restricted" "$said" \
      "pod/$(jq -r .metadata.name <<<"$pod") created (server dry run)"
  done < <(kubectl create --dry-run=client -o json -f "$2" | jq -c '. as $owner | select(.spec.template.spec.containers) | .spec.template
    | .apiVersion = "v1" | .kind = "Pod" | .metadata.name = $owner.metadata.name
    # Kubernetes adds the volumes of claims itself.
    | .spec.volumes += [$owner.spec.volumeClaimTemplates[]? | {name: .metadata.name, emptyDir: {}}]')
}

# Pod Security would say so: the check above can fail.
refused() {
  is "a pod with more rights is refused" "$(kubectl run --dry-run=server -n restricted --image=a a 2>&1 | grep -o 'violates PodSecurity "restricted:latest"')" \
    'violates PodSecurity "restricted:latest"'
}

# built VARIANT [COMPONENT...]
built() {
  local name="$1${2:+ with ${*:2}}"
  write_overlay "$WORK/overlay" "$@"
  kubectl kustomize "$WORK/overlay" >"$WORK/built.yaml" || not_ok "$name: kustomize builds it"
  accepted "$name" "$WORK/built.yaml"
}

# chart NAME ARGUMENTS PATCHES [COMPONENT...]: the chart renders what kustomize builds of the same components and patches. ARGUMENTS
# are lines that are added to the controller's; they become patches for kustomize.
chart() {
  local values=$WORK/values.json
  jq -n --arg arguments "$2" --argjson patches "$3" '{arguments: ($arguments | split("\n")), patches: $patches, components: $ARGS.positional}' \
    --args "${@:4}" >"$values"
  write_overlay "$WORK/overlay" controller/base "${@:4}"
  jq -r '"patches: " + (.patches + [.arguments[] | {target: {kind: "Deployment"},
    patch: ([{op: "add", path: "/spec/template/spec/containers/0/args/-", value: .}] | tojson)}] | tojson)' "$values" >>"$WORK/overlay/kustomization.yaml"
  kubectl kustomize "$WORK/overlay" >"$WORK/built.yaml"
  helm template --values "$values" mirror "$MANIFESTS/controller" >"$WORK/chart.yaml" 2>"$WORK/helm.log" || not_ok "chart, $1: helm renders it" "$(cat "$WORK/helm.log")"
  succeeds "chart, $1: it renders what kustomize builds" diff <(objects "$WORK/chart.yaml") <(objects "$WORK/built.yaml")
  accepted "chart, $1" "$WORK/chart.yaml"
}

# mirror_chart VARIANT [COMPONENT...]: the chart of the mirror renders what kustomize builds. It names no namespace, and the names of its
# ConfigMaps have no hash: that is an annotation of the pods.
mirror_chart() {
  local name="chart of the mirror, $*" components
  components=$(jq -nc '$ARGS.positional' --args "${@:2}")
  write_overlay "$WORK/overlay" "mirror/$1" "${@:2}"
  kubectl kustomize "$WORK/overlay" | sed -E 's/\b(catalog-mirror|catalog-mirror-s3)-[a-z0-9]{10}$/\1/' >"$WORK/built.yaml"
  helm template --namespace mirrors --set-string "variant=$1" --set-json "components=$components" mirror "$MANIFESTS/mirror" >"$WORK/chart.yaml" ||
    not_ok "$name: helm renders it"
  succeeds "$name: it renders what kustomize builds" diff <(plain_objects "$WORK/chart.yaml") <(plain_objects "$WORK/built.yaml")
  accepted "$name" "$WORK/chart.yaml"
}
plain_objects() { objects "$1" | jq 'map(del(.metadata.namespace, .spec.template.metadata.annotations))'; }

# objects FILE: in one order.
objects() { kubectl create --dry-run=client -o json -f "$1" | jq -S -s 'sort_by(.kind, .metadata.namespace, .metadata.name)'; }

charts() {
  local all settings=$WORK/settings.yaml
  read -ra all <<<"${COMPONENTS[mirror]}"
  mirror_chart volume
  mirror_chart volume "${all[@]}"
  mirror_chart s3 "${all[@]}"
  helm template --set 'catalogs.catalogs[0].name=own' mirror "$MANIFESTS/mirror" >"$settings"
  is "chart of the mirror: the catalogs are those of the values" "$(objects "$settings" | jq -r '.[] | select(.kind == "ConfigMap").data["catalogs.yaml"]')" \
    $'catalogs:\n- name: own'
  helm template mirror "$MANIFESTS/mirror" >"$WORK/default.yaml"
  is "chart of the mirror: other catalogs start new pods" "$(cat "$settings" "$WORK/default.yaml" | grep checksum/config | sort -u | wc -l)" 2
  fails "chart of the mirror: a variant that it does not know is refused" "variant" helm template --set variant=disk mirror "$MANIFESTS/mirror"
  chart default '' '[]'
  chart OpenShift --v=4 '[]' service-monitor alerts egress openshift
  helm template -n openshift-catalogd --set 'components={service-monitor,alerts,egress,openshift}' --set 'arguments={--v=4}' mirror "$MANIFESTS/controller" >"$WORK/namespace.yaml"
  succeeds "chart, OpenShift: the namespace of the release is the same" diff <(objects "$WORK/namespace.yaml") <(objects "$WORK/built.yaml")
  is "chart: the namespace of the release takes the place of OLM's" "$(helm template -n other mirror "$MANIFESTS/controller" | grep -c olmv1-system)" 0
  fails "chart: a value that it does not know is refused" "'replcas' not allowed" helm template --set replcas=5 mirror "$MANIFESTS/controller"
  fails "chart: and one of another type" "got string, want integer" helm template --set replicas=abc mirror "$MANIFESTS/controller"
  # The own CA is in the Secret that the page makes.
  chart "S3, own CA, pull secret, arguments" $'--gc-interval=1h\n--v=4' '[
    {"target": {"kind": "ConfigMap", "name": "catalog-mirror-s3"}, "patch": "- {op: replace, path: /data/CATALOG_MIRROR_STORE, value: s3://other/catalogs}"},
    {"target": {"kind": "Deployment", "name": "catalogd-controller-manager"},
     "patch": "- {op: remove, path: /spec/template/spec/topologySpreadConstraints/1}\n- {op: add, path: /spec/template/spec/volumes/-, value: {name: more, emptyDir: {}}}"}
    ]' pull-secret s3
}

# page NAME: runs the block that the page marks with `sh NAME` where it says: in the folder of the sources.
page() {
  awk -v begin="^\`\`\`sh $1\$" '$0 ~ begin {found = 1; next} /^```$/ {found = 0} found' "$PAGE" >"$WORK/$1.sh"
  [[ -s $WORK/$1.sh ]] || return 1
  (cd "$ROOT" && bash -euo pipefail "$WORK/$1.sh")
}

# spec: the Deployment as it is, without what the API server counts.
spec() { kubectl get "${DEPLOYMENT[@]}" -o json | jq -S '.spec, .metadata.labels'; }

# The page applies the manifests over catalogd's, and catalogd's over them: the same objects, whose selectors cannot be changed.
replaces() {
  local standard before
  standard=$(go_module_folder "$CATALOGD")/manifests/standard.yaml
  kubectl apply -l app.kubernetes.io/name=catalogd -f "$standard" >/dev/null
  before=$(spec)
  succeeds "the certificate of the page has the names of the Service" certificate
  succeeds "the controller is applied over catalogd" page replace
  is "it has three replicas, its own command and no argument of catalogd's" \
    "$(kubectl get "${DEPLOYMENT[@]}" -o json | jq -c '.spec | [.replicas, .template.spec.containers[].command[0], (.template.spec.containers[0].args | map(select(test("feature"))) | length), .template.spec.nodeSelector]')" \
    '[3,"/usr/bin/catalog-mirror-controller",0,{"kubernetes.io/os":"linux"}]'
  export STANDARD=$standard
  succeeds "the page takes catalogd's roles away" page roles
  succeeds "the page goes back to catalogd" page back
  is "and catalogd's Deployment is as it was" "$(spec)" "$before"
  mkdir "$WORK/ca" && cp "$REGISTRY_CA" "$WORK/ca/ca.crt"
  write_kubeconfig "$WORK/account.yaml" "$(account_token)"
  up
  succeeds "the controller works with the arguments and the roles of catalogd's Deployment" wait_for 20 leads
  is "which forbid nothing" "$(grep forbidden "$LOG")" ""
  down
  is "nothing of the controller is left" "$(kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o name | grep -c catalog-mirror)" 0
}

certificate() {
  page certificate || return 1
  kubectl get secret -n "$NAMESPACE" catalogd-service-cert-git-version -o json | jq -r '.data | to_entries[] | "\(.key) \(.value)"' |
    while read -r name value; do base64 -d <<<"$value" >"$WORK/tls/$name"; done
  openssl verify -CAfile "$WORK/tls/ca.crt" -verify_hostname "$HOST" "$WORK/tls/tls.crt"
}

# Applies the controller with all its components but S3, and makes what they name. catalogd's webhook goes: nothing answers it here.
install() {
  kubectl delete mutatingwebhookconfiguration catalogd-mutating-webhook-configuration >/dev/null
  page roles >/dev/null
  write_overlay "$WORK/installed" controller/base service-monitor pull-secret openshift
  apply_installed
  secret catalog-pull-secret "$REGISTRY"
  secret pull-secret registry.invalid openshift-config
  kubectl create namespace openshift-monitoring >/dev/null
  kubectl create serviceaccount -n openshift-monitoring prometheus-k8s >/dev/null
  copy_image "oci:$LAYOUT:$LAST_TAG" "docker://$REGISTRY/ns/catalog:v1"
}

# apply_installed: in the namespace of upstream, which the page's commands name.
apply_installed() { kubectl kustomize "$WORK/installed" | sed "s/openshift-catalogd/$NAMESPACE/g" | kubectl apply -f - >/dev/null; }

# up: starts the controller with the arguments of its Deployment. Only folders and ports are others.
up() {
  local arguments
  service_flags controller
  mapfile -t arguments < <(kubectl get "${DEPLOYMENT[@]}" -o json | jq -r '.spec.template.spec.containers[0].args[]' |
    sed "s|=/var/certs|=$WORK/tls|; s|=/var/ca-certs|=$WORK/ca|; s|=:7443|=127.0.0.1:$CONTROLLER_METRICS|")
  LOG=$WORK/controller-$((++STARTS)).log
  start "$LOG" env KUBECONFIG="$WORK/account.yaml" RUST_LOG=info,catalog_mirror_controller=debug "$CONTROLLER" "${arguments[@]}" --cache-dir="$WORK/cache" \
    --catalogs-server-addr="127.0.0.1:$CONTROLLER_API" --health-probe-bind-address="127.0.0.1:$CONTROLLER_HEALTH"
  CONTROLLER_PID=$STARTED_PID
  wait_for 20 curl -sf "http://127.0.0.1:$CONTROLLER_HEALTH/healthz"
}

down() { end_process "$CONTROLLER_PID"; }

# catalog NAME REFERENCE
catalog() { clustercatalog "$@" | kubectl apply -f - >/dev/null; }

# rights: `VERB RESOURCE NAMESPACE NAME`, one a line, of all rules about the API server's resources that were installed.
rights() {
  kubectl get clusterroles,roles -A -o json | jq -r '.items[] | select(.metadata.name | startswith("catalog-mirror")) | . as $role
    | .rules[] | .verbs[] as $verb | (.resources // [])[] as $resource | (.resourceNames // ["*"])[]
    | "\($verb) \($resource) \($role.metadata.namespace // "-") \(.)"'
}

# unused: the rights that the controller has not used so far.
unused() {
  comm -23 <(sort -u "$WORK/rights") <(jq -r '.verb as $verb | .objectRef // empty | (.name // "*", "*") as $name
    | [$verb, ([.resource, .subresource // empty] | join("/")), .namespace // "-", $name] | join(" ")' "$AUDIT" | sort -u)
}
uses_all() { [[ -z $(unused) ]]; }

has_finalizer() { [[ $(kubectl get clustercatalog "$1" -o jsonpath='{.metadata.finalizers}') == *"$FINALIZER"* ]]; }
# scrape: reads the metrics with a token of Prometheus.
scrape() {
  ask "$CONTROLLER_METRICS" /metrics -o "$WORK/metrics" -w 'metrics: %{http_code}\n' \
    -H "Authorization: Bearer $(kubectl create token -n openshift-monitoring prometheus-k8s)"
}

# suffices: the controller does all that it can do, and needs each of its rights for that.
suffices() {
  rights >"$WORK/rights"
  matches "the roles have rules" "$(wc -l <"$WORK/rights")" '^[1-9][0-9]$'
  kubectl delete lease -n "$NAMESPACE" --all >/dev/null
  up
  catalog always "$REGISTRY/ns/catalog:v1"
  catalog failing "$REGISTRY/ns/catalog:missing"
  wait_for 20 has_event failing
  # The same failure of another generation.
  kubectl patch clustercatalog failing --type merge -p '{"spec": {"priority": 1}}' >/dev/null
  succeeds "with all rules the catalog is served" kubectl wait --for condition=Serving clustercatalog/always --timeout 30s
  is "a catalog is served over TLS with the page's certificate" "$(ask "$CONTROLLER_API" /catalogs/always/api/v1/all -o /dev/null -w '%{http_code}')" 200
  matches "Prometheus may read the metrics" "$(scrape)" 200
  wait_for 10 uses_all
  is "each of the rules is needed" "$(unused)" ""
  is "and nothing is forbidden" "$(grep -E 'forbidden|may not be read' "$LOG")" ""
  down
}

# lacks KIND NAME WORDS: without a binding the log says what is forbidden.
lacks() {
  kubectl delete "$1" "$2" >/dev/null
  up
  succeeds "without the $1 $2 the log says what is forbidden" wait_for 20 grep -qE "$3" "$LOG"
  apply_installed
  down
}

# ask PORT PATH OPTION...: as a client in the cluster.
ask() { curl -sS --cacert "$WORK/tls/ca.crt" --resolve "$HOST:$1:127.0.0.1" "https://$HOST:$1$2" "${@:3}"; }

# The names of the metrics are those of the samples that a running controller exports.
dashboard() {
  local file=$MANIFESTS/grafana/dashboard.json names
  succeeds "Prometheus parses the expressions of the dashboard" promql < <(jq -r '.. | .expr? // empty' "$file" | sed 's/\$__rate_interval/5m/g')
  names=$(jq -r '.. | .expr? // empty' "$file" | sed 's/\$__rate_interval/5m/g' | promql | sort -u)
  matches "it asks for metrics" "$(wc -l <<<"$names")" '^[1-9][0-9]$'
  is "all of which the controller exports" "$(comm -23 - <(grep -o '^[a-z_]*' "$WORK/metrics" | sort -u) <<<"$names")" ""
}

# deletes SECONDS: whether the API server gets rid of all ClusterCatalogs.
deletes() { kubectl delete clustercatalogs --all --timeout="$1s"; }
is_empty() { [[ -z $(kubectl get clustercatalogs -o name) ]]; }

# Without the controller nothing removes its finalizers. The page does, or lets the controller work first.
uninstalls() {
  is "without the controller a deletion hangs" "$(deletes 3 2>&1 | grep -o 'timed out' | head -n 1)" "timed out"
  succeeds "the page takes the finalizers away" page orphans
  succeeds "and no ClusterCatalog hangs" wait_for 10 is_empty
  apply_installed
  up
  catalog first "$REGISTRY/ns/catalog:v1"
  catalog second "$REGISTRY/ns/catalog:missing"
  for name in first second; do wait_for 20 has_finalizer "$name"; done
  succeeds "the page uninstalls the controller" page uninstall
  succeeds "and no ClusterCatalog is left" is_empty
  is "nor a part of the controller" "$(kubectl get deployments,services,networkpolicies,poddisruptionbudgets,serviceaccounts -n "$NAMESPACE" -o name | grep -c catalogd)" 0
  down
}

# The page installs and uninstalls the chart.
with_helm() {
  succeeds "the page installs the chart over what is there" page chart
  is "with its values" "$(kubectl get "${DEPLOYMENT[@]}" -o json | jq -c '.spec | [.replicas, .template.spec.containers[0].image]')" '[3,"registry.example/catalog-mirror-controller:0.1.0"]'
  succeeds "and helm uninstalls it" helm uninstall catalog-mirror -n "$NAMESPACE"
}

prepare
refused
each_overlay built
charts
mirror_sets
mkdir "$WORK/tls"
replaces
install
suffices
lacks clusterrolebinding catalog-mirror-controller 'cannot list resource .*clustercatalogs.* in API group'
lacks rolebinding catalog-mirror-controller 'cannot get resource .*leases.* in API group'
lacks rolebinding catalog-mirror-pull-secret 'the secret .* may not be read'
dashboard
uninstalls
with_helm
stop_cluster
