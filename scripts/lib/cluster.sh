# The parts of Kubernetes that controllers need: etcd and kube-apiserver, without nodes.
# shellcheck shell=bash

NAMESPACE=olmv1-system ACCOUNT=catalogd-controller-manager SERVICE=catalogd-service.olmv1-system.svc

# start_cluster [OPTION...]: with more options of the API server. KUBECONFIG is that of an administrator afterwards, CLUSTER_URL the API
# server, CLUSTER_CA its authority, and ETCD_URL what it writes to.
# shellcheck disable=SC2120 # The options are those of another file.
start_cluster() {
  local home=$WORK/cluster etcd peer
  mkdir -p "$home"
  etcd=$(free_port) peer=$(free_port)
  start "$home/etcd.log" etcd --data-dir "$home/etcd" --unsafe-no-fsync \
    --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "default=http://127.0.0.1:$peer"
  ETCD_URL=http://127.0.0.1:$etcd
  wait_for 30 curl -sf "$ETCD_URL/health"
  openssl genrsa -out "$home/account.key" 2048 2>/dev/null
  echo 'administrator,admin,1,system:masters' >"$home/tokens.csv"
  APISERVER_PORT=$(free_port)
  CLUSTER_URL=https://127.0.0.1:$APISERVER_PORT CLUSTER_CA=$home/certs/apiserver.crt
  start_api_server "$@"
  export KUBECONFIG=$home/admin.yaml
  write_kubeconfig "$KUBECONFIG" administrator
}

start_api_server() {
  local home=$WORK/cluster
  start "$home/apiserver.log" kube-apiserver --etcd-servers "$ETCD_URL" \
    --bind-address 127.0.0.1 --secure-port "$APISERVER_PORT" --cert-dir "$home/certs" --token-auth-file "$home/tokens.csv" \
    --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$home/account.key" --service-account-signing-key-file "$home/account.key" \
    --disable-admission-plugins ServiceAccount "$@"
  APISERVER_PID=$STARTED_PID
  wait_for 90 curl -sf --cacert "$CLUSTER_CA" -H 'Authorization: Bearer administrator' "$CLUSTER_URL/readyz"
}

# stop_cluster: the API server first. Without etcd it takes minutes to stop.
stop_cluster() { end_process "$APISERVER_PID"; }

# prepare_olm: what an installation of OLM v1 has: the definition of ClusterCatalogs, and a service account with our roles and the
# pull secret `login`, which does not exist yet.
prepare_olm() {
  kubectl apply -f "$CRDS" >/dev/null
  kubectl create namespace "$NAMESPACE" >/dev/null
  kubectl create serviceaccount -n "$NAMESPACE" "$ACCOUNT" >/dev/null
  kubectl apply -f "$ROOT/infra/kubernetes/controller/base/rbac.yaml" >/dev/null
  kubectl create role -n "$NAMESPACE" secrets --verb get --resource secrets --resource-name login --resource-name global >/dev/null
  kubectl create rolebinding -n "$NAMESPACE" secrets --role secrets --serviceaccount "$NAMESPACE:$ACCOUNT" >/dev/null
  kubectl patch serviceaccount -n "$NAMESPACE" "$ACCOUNT" -p '{"imagePullSecrets": [{"name": "login"}]}' >/dev/null
}

# package_server NAMESPACE [LABEL]: the ClusterServiceVersion that OLM v0 installs for itself, of its own chart.
package_server() {
  helm template olm "$(go_module_folder "$OLM")/deploy/chart" --set "namespace=$1,writePackageServerStatusName=${2:-}" \
    -s templates/0000_50_olm_15-packageserver.clusterserviceversion.yaml
}

# secret NAME REGISTRY [NAMESPACE]: a pull secret with the suite's login.
secret() {
  kubectl create secret docker-registry -n "${3:-$NAMESPACE}" "$1" --docker-server "$2" \
    --docker-username "$REGISTRY_USER" --docker-password "$REGISTRY_PASSWORD" >/dev/null
}

# clustercatalog NAME REFERENCE [IMAGE [SPEC [METADATA]]]: prints the document of a ClusterCatalog. The last three are further fields
# of spec.source.image, of spec and of metadata.
clustercatalog() {
  printf -- '---\n%s\n' "{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: $1${5:+, $5}},
    spec: {source: {type: Image, image: {ref: '$2'${3:+, $3}}}${4:+, $4}}}"
}

# serving: number of ClusterCatalogs that are Serving.
serving() { kubectl get clustercatalogs -o json | jq '[.items[] | select(.status.conditions[]? | .type == "Serving" and .status == "True")] | length'; }

# resolved NAME: the image that a status names; has_resolved NAME IMAGE; has_event NAME: whether there is an event about a ClusterCatalog.
resolved() { kubectl get clustercatalog "$1" -o jsonpath='{.status.resolvedSource.image.ref}'; }
has_resolved() { [[ $(resolved "$1") == "$2" ]]; }
has_event() { [[ -n $(kubectl get events.events.k8s.io -A -o json | jq -r --arg name "$1" '.items[] | select(.regarding.name == $name) | .reason') ]]; }

# leads [PORT]: whether the replica with this port for its health leads.
leads() { curl -s "http://127.0.0.1:${1:-$CONTROLLER_HEALTH}/readyz?verbose" | grep -q 'this replica leads'; }

# make_service_certificate: $WORK/tls has a certificate for the service, by the suite's authority.
make_service_certificate() {
  mkdir -p "$WORK/tls"
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=service" -CA "$REGISTRY_CA" -CAkey "${REGISTRY_CA%.crt}.key" \
    -addext basicConstraints=critical,CA:FALSE -addext "subjectAltName=DNS:$SERVICE,IP:127.0.0.1" \
    -keyout "$WORK/tls/tls.key" -out "$WORK/tls/tls.crt" 2>/dev/null
}

# prepare_cluster [OPTION...]: a cluster whose API server has these options, and CONTROLLER, the program.
# shellcheck disable=SC2120 # As for start_cluster.
prepare_cluster() {
  CONTROLLER=${TESTED:-$(dirname "$CATALOG_MIRROR")}/catalog-mirror-controller
  need_kubernetes
  need_catalogd
  start_cluster "$@"
}

# prepare_service: a cluster with what an installation of OLM v1 has. $WORK/tls has the certificate of its service, $WORK/authorities
# the suite's authority, and $WORK/account.yaml the access of its service account.
prepare_service() {
  prepare_cluster
  prepare_olm
  make_service_certificate
  mkdir "$WORK/authorities"
  cp "$REGISTRY_CA" "$WORK/authorities/ca.crt"
  write_kubeconfig "$WORK/account.yaml" "$(account_token)"
}

# service_flags NAME: SERVICE_FLAGS are those that catalogd and the controller both have, with a cache of that name. CONTROLLER_API,
# CONTROLLER_METRICS, CONTROLLER_HEALTH and CONTROLLER_WEBHOOK are the ports.
service_flags() {
  CONTROLLER_API=$(free_port) CONTROLLER_METRICS=$(free_port) CONTROLLER_HEALTH=$(free_port) CONTROLLER_WEBHOOK=$(free_port)
  SERVICE_FLAGS=(--external-address="$SERVICE" --tls-cert="$WORK/tls/tls.crt" --tls-key="$WORK/tls/tls.key" --pull-cas-dir="$WORK/authorities"
    --cache-dir="$WORK/$1-cache" --catalogs-server-addr="127.0.0.1:$CONTROLLER_API" --metrics-bind-address="127.0.0.1:$CONTROLLER_METRICS"
    --health-probe-bind-address="127.0.0.1:$CONTROLLER_HEALTH" --webhook-server-port="$CONTROLLER_WEBHOOK")
}

# start_controller NAME [FLAG...]: a replica, which reaches the API server by the kubeconfig CONTROLLER_ACCESS if that is set.
# run_catalogd NAME [FLAG...]: catalogd. Both as the service account; CONTROLLER_PID is set afterwards, as the ports are.
start_controller() {
  [[ -x $CONTROLLER ]] || die "$CONTROLLER is no program"
  service_flags "$1"
  start "$WORK/$1.log" env -u KUBECONFIG HOSTNAME="$1" "$CONTROLLER" --kubeconfig "${CONTROLLER_ACCESS:-$WORK/account.yaml}" "${SERVICE_FLAGS[@]}" "${@:2}"
  await_controller
}
# catalogd reads who it is from the files of a pod, so it gets a folder of its own for them.
run_catalogd() {
  local account=$WORK/account
  service_flags "$1"
  mkdir -p "$account"
  account_token >"$account/token"
  printf '%s' "$NAMESPACE" >"$account/namespace"
  start "$WORK/$1.log" unshare --mount --map-root-user --propagation private bash -c '
    mount -t tmpfs tmpfs /var/run && mkdir -p "$0" && mount --bind "$1" "$0" && shift && exec "$@"
  ' /var/run/secrets/kubernetes.io/serviceaccount "$account" catalogd "${SERVICE_FLAGS[@]}" "${@:2}"
  await_controller
}

# await_controller: until the process that was started answers.
await_controller() {
  CONTROLLER_PID=$STARTED_PID
  wait_for 60 curl -sf "http://127.0.0.1:$CONTROLLER_HEALTH/healthz"
}

# write_kubeconfig FILE TOKEN
write_kubeconfig() {
  cat >"$1" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: $CLUSTER_URL, certificate-authority: $CLUSTER_CA}}]
users: [{name: u, user: {token: $2}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: $NAMESPACE}}]
current-context: x
YAML
}

# account_token: a token of the service account of catalogd's Deployment.
account_token() { kubectl create token -n "$NAMESPACE" "$ACCOUNT" --duration 24h; }
