# OLM v0's own catalog-operator and olm-operator at a real API server, on the registry API of `serve`: what a Subscription installs, and how
# soon a published update becomes an InstallPlan. No image is pulled: the bundles hold their manifests, and this script says of each
# Deployment that it is available, as no kubelet does.
# shellcheck shell=bash

# Address of the API server inside of the cluster. Endpoints may not be on loopback.
INSIDE=10.9.9.9
HOST_OF_CATALOG=up.mirror.test GRPC_PORT=50051
# Seconds from a publication to its InstallPlan.
PLAN_MAX=15

# The programs of OLM listen on ports that no flag sets, so that the story has a network and a hosts file of its own.
in_own_network() {
  printf '127.0.0.1 localhost %s\n' "$HOST_OF_CATALOG" >"$WORK/hosts"
  unshare --net --mount --map-root-user --propagation private bash -c '
    ip link set lo up && ip address add "$1/32" dev lo && mount --bind "$2" /etc/hosts && OWN_NETWORK=1 exec "$0" cluster_olm
  ' "$HERE/run" "$INSIDE" "$WORK/hosts"
}

# cluster_service_version VERSION [REPLACED]; definition: the manifests of the bundle of a version, as JSON.
cluster_service_version() {
  jq -cn --arg version "$1" --arg replaced "${2:-}" '
    def mode(kinds): kinds | {type: ., supported: (. == "AllNamespaces")};
    def container: {name: "manager", image: "registry.invalid/demo:v\($version)"};
    def template: {metadata: {labels: {app: "demo"}}, spec: {serviceAccountName: "demo-operator", containers: [container]}};
    {
      apiVersion: "operators.coreos.com/v1alpha1", kind: "ClusterServiceVersion",
      metadata: {name: "demo.v\($version)", annotations: {capabilities: "Basic Install"}},
      spec: ({
        displayName: "Demo", version: $version, description: "An operator for a test", provider: {name: "tests"},
        installModes: [mode("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")],
        customresourcedefinitions: {owned: [{name: "demos.example.com", kind: "Demo", version: "v1", displayName: "Demo", description: "A thing"}]},
        install: {strategy: "deployment", spec: {
          permissions: [{serviceAccountName: "demo-operator", rules: [{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"]}]}],
          deployments: [{name: "demo-controller", spec: {replicas: 1, selector: {matchLabels: {app: "demo"}}, template: template}}]
        }}
      } + if $replaced == "" then {} else {replaces: "demo.v\($replaced)"} end)
    }'
}
definition() {
  jq -cn '{
    apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: {name: "demos.example.com"},
    spec: {
      group: "example.com", scope: "Namespaced", names: {kind: "Demo", plural: "demos", singular: "demo", listKind: "DemoList"},
      versions: [{name: "v1", served: true, storage: true, schema: {openAPIV3Schema: {type: "object"}}}]
    }
  }'
}

# write_catalog VERSION...: bundles with their manifests, each an update of the one before it.
write_catalog() {
  local version replaced=
  mkdir -p "$WORK/catalog"
  {
    echo '{"schema": "olm.package", "name": "demo", "defaultChannel": "stable"}'
    jq -cn '{schema: "olm.channel", package: "demo", name: "stable", entries: [$ARGS.positional as $versions | range($versions | length) |
      {name: "demo.v\($versions[.])"} + if . == 0 then {} else {replaces: "demo.v\($versions[. - 1])"} end]}' --args "$@"
    for version in "$@"; do
      jq -cn --arg version "$version" --arg csv "$(cluster_service_version "$version" "$replaced")" --arg crd "$(definition)" '{
        schema: "olm.bundle", package: "demo", name: "demo.v\($version)",
        properties: [{type: "olm.package", value: {packageName: "demo", version: $version}},
          {type: "olm.gvk", value: {group: "example.com", kind: "Demo", version: "v1"}},
          {type: "olm.bundle.object", value: {data: ($csv | @base64)}}, {type: "olm.bundle.object", value: {data: ($crd | @base64)}}]
      }'
      replaced=$version
    done
  } >"$WORK/new"
  mv "$WORK/new" "$WORK/catalog/catalog.json"
}

prepare_olm_v0() {
  local definitions
  definitions=$(go_module_folder "$OLM")/deploy/chart/crds
  kubectl create -f "$definitions" >/dev/null
  for name in olm operators; do kubectl create namespace "$name" >/dev/null; done
  kubectl create serviceaccount -n olm olm-operator-serviceaccount >/dev/null
  kubectl create clusterrolebinding olm --clusterrole cluster-admin --serviceaccount olm:olm-operator-serviceaccount >/dev/null
  wait_for 30 kubectl get operatorgroups,olmconfigs -A
  kubectl apply -f - >/dev/null <<'YAML'
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: global-operators, namespace: operators}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: olm-operators, namespace: olm}
spec: {targetNamespaces: [olm]}
---
apiVersion: operators.coreos.com/v1
kind: OLMConfig
metadata: {name: cluster}
YAML
}

start_olm_v0() {
  make_certificates "$WORK/tls"
  start "$WORK/catalog-operator.log" env -u KUBECONFIG catalog --kubeconfig "$KUBECONFIG" --namespace olm \
    --util-image util.invalid/olm:v1 --opmImage opm.invalid/opm:v1
  # With a certificate it listens on another port than the other program.
  start "$WORK/olm-operator.log" env OPERATOR_NAMESPACE=olm OPERATOR_NAME=olm-operator olm --namespace olm --writeStatusName= \
    --writePackageServerStatusName= --tls-cert "$WORK/tls/tls.crt" --tls-key "$WORK/tls/tls.key" --client-ca "$WORK/tls/ca.crt"
}

# plan_of VERSION: whether an InstallPlan has its ClusterServiceVersion; current VERSION: whether the Subscription names it.
plan_of() { kubectl get installplans -n operators -o json | jq -e --arg name "demo.v$1" 'any(.items[].spec.clusterServiceVersionNames[]; . == $name)'; }
current() { [[ $(kubectl get subscription -n operators demo -o jsonpath='{.status.currentCSV}') == "demo.v$1" ]]; }
succeeded() { [[ $(kubectl get csv -n operators "demo.v$1" -o jsonpath='{.status.phase}') == Succeeded ]]; }
has_deployment() { [[ $(kubectl get deployment -n operators demo-controller -o jsonpath='{.spec.template.spec.containers[0].image}') == *":v$1" ]]; }
is_published() { [[ $(curl -sf "$URL/catalogs/up/content-hash") != "$1" ]]; }

# say_available: what a kubelet and the controller of Deployments would say.
say_available() {
  local generation
  generation=$(kubectl get deployment -n operators demo-controller -o jsonpath='{.metadata.generation}')
  kubectl patch deployment -n operators demo-controller --subresource status --type merge -p "$(jq -cn --argjson generation "$generation" '{status: {
    observedGeneration: $generation, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
    conditions: [{type: "Available", status: "True"}, {type: "Progressing", status: "True"}]}}')" >/dev/null
}

# installed VERSION
installed() {
  succeeds "OLM installs $1: the Subscription names it" wait_for 60 current "$1"
  succeeds "its Deployment is there" wait_for 60 has_deployment "$1"
  say_available
  succeeds "its ClusterServiceVersion has succeeded" wait_for 60 succeeded "$1"
}

# updated VERSION...: publishes the last of them as an update
updated() {
  local new=${*: -1} before published planned
  before=$(curl -sf "$URL/catalogs/up/content-hash")
  write_catalog "$@"
  succeeds "$new is published" wait_for 30 is_published "$before"
  published=$EPOCHREALTIME
  succeeds "OLM plans $new" wait_for 60 plan_of "$new"
  planned=$(awk -v from="$published" -v to="$EPOCHREALTIME" 'BEGIN {printf "%.1f", to - from}')
  say "from the publication of $new to its InstallPlan: $planned s"
  succeeds "within $PLAN_MAX s of its publication ($planned s)" at_most "$planned" "$PLAN_MAX"
}

# has_copies VERSION: whether OLM has copied its ClusterServiceVersion into other namespaces.
has_copies() { (($(kubectl get csv -A -o name | grep -c "/demo.v$1") > 2)); }

# has_row ROW: that `plan` sees one operator in what kubectl prints of this cluster, where OLM itself has labelled and copied it.
has_row() {
  kubectl get subscriptions.operators.coreos.com,clusterserviceversions -A -o yaml >"$WORK/installed.yaml"
  "$CATALOG_MIRROR" plan "$WORK/installed.yaml" --from "dir:$WORK/catalog" --to "dir:$WORK/catalog" --json >"$WORK/plan"
  is "$1" "$(python3 -B "$LIB/plan_cluster.py" rows "$WORK/plan")" "${*:2}"
}

planned() {
  package_server olm | kubectl create -f - >/dev/null
  succeeds "OLM copies the operator into other namespaces" wait_for 60 has_copies 1.2.0
  has_row "plan sees it once" demo operators stays dir:catalog stable 1.2.0
  kubectl delete subscription -n operators demo >/dev/null
  has_row "and without its Subscription by the labels that OLM has set" demo operators stays dir:catalog stable 1.2.0
}

story() {
  start_cluster --advertise-address "$INSIDE"
  prepare_olm_v0
  start_olm_v0
  write_catalog 1.0.0
  serve_sources
  kubectl apply -f - >/dev/null <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: up, namespace: olm}
spec: {sourceType: grpc, address: '$HOST_OF_CATALOG:$GRPC_PORT'}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: demo, namespace: operators}
spec: {channel: stable, name: demo, source: up, sourceNamespace: olm}
YAML
  installed 1.0.0
  updated 1.0.0 1.1.0
  installed 1.1.0
  # OLM has read just now, and looks for nothing for half an hour.
  updated 1.0.0 1.1.0 1.2.0
  installed 1.2.0
  planned
  stop_cluster
}

serve_sources() {
  local port
  port=$(free_port)
  URL=http://127.0.0.1:$port
  start "$WORK/serve.log" "$CATALOG_MIRROR" serve --store "$WORK/store" --catalog "up=dir:$WORK/catalog" --interval 2s \
    --listen "127.0.0.1:$port" --grpc "127.0.0.1:$GRPC_PORT"
  wait_for 30 curl -sf "$URL/catalogs/up/content-hash"
}

need_debian ip=iproute2 unshare=util-linux
need_kubernetes
need_olm_operators
need_helm
if [[ -n ${OWN_NETWORK:-} ]]; then
  story
elif in_own_network; then
  ok "OLM v0 lives on the registry API"
else
  not_ok "OLM v0 lives on the registry API" "what failed is above"
fi
