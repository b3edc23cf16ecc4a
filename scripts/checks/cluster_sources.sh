# ClusterCatalogs that are copied from a mirror, and the label that others ask for, at a real API server: the mirror is the program
# itself over TLS, with a login and a key. The controller has the role that is shipped.
# shellcheck shell=bash

CONTROLLER=$TESTED/catalog-mirror-controller
TLS=$(dirname "$REGISTRY_CA")
POLICY=$ROOT/infra/kubernetes/controller/components/label-policy
LABEL=olm.operatorframework.io/metadata.name
IMAGES=$WORK/images
SECRET=correct-horse

prepare() {
  need_kubernetes
  need_catalogd
  [[ -x $CONTROLLER ]] || die "$CONTROLLER is no program"
  start_cluster
  prepare_olm
  write_kubeconfig "$WORK/account.yaml" "$(account_token)"
  make_images
  "$CATALOG_MIRROR" keygen "$WORK/mirror.key" 2>/dev/null
  publish first
  start_mirrors
}

# Two images of one large catalog: `second` differs in one package.
make_images() {
  local version
  cp -r "$LAYOUT" "$IMAGES"
  for version in first second; do
    mkdir -p "$WORK/$version/configs/generated"
    generated_package generated "${#version}" >"$WORK/$version/configs/generated/catalog.yaml"
    add_layer "$IMAGES:step-000" "$WORK/$version" "$version"
    copy_image "oci:$IMAGES:$version" "docker://$REGISTRY/ns/sources:$version"
  done
}

digest() { skopeo inspect --authfile "$AUTH_FILE" --tls-verify=false --format '{{.Digest}}' "docker://$REGISTRY/ns/sources:$1"; }

# publish TAG: at the mirror, as the catalog `up`.
publish() { outcome "$WORK/origin" "up=$REGISTRY/ns/sources:$1" --signing-key "$WORK/mirror.key" >/dev/null; }

# The mirror; nginx over its store, which wants a certificate; and a mirror that no flag allows.
start_mirrors() {
  local port nginx
  port=$(free_port) nginx=$(free_port)
  echo "cluster:sha256:$(printf %s "$SECRET" | sha256)" >"$WORK/readers"
  printf 'Authorization: Basic %s\n' "$(printf 'cluster:%s' "$SECRET" | base64 -w0)" >"$WORK/header"
  serve "$WORK/origin"
  FOREIGN=$URL
  start "$WORK/mirror.log" "$CATALOG_MIRROR" serve --no-poll --store "$WORK/origin" --listen "127.0.0.1:$port" \
    --tls-cert "$TLS/tls.crt" --tls-key "$TLS/tls.key" --readers "$WORK/readers"
  MIRROR_HOST=127.0.0.1:$port CERTIFIED_HOST=127.0.0.1:$nginx
  wait_for 20 from_mirror /healthz
  kubectl create secret generic -n "$NAMESPACE" mirror --from-file ca.crt="$REGISTRY_CA" --from-file header="$WORK/header" \
    --from-file key.pub="$WORK/mirror.key.pub" >/dev/null
  start_nginx "$WORK/origin" "server { listen $CERTIFIED_HOST ssl; root $WORK/origin; ssl_certificate $TLS/tls.crt;
    ssl_certificate_key $TLS/tls.key; ssl_client_certificate $REGISTRY_CA; ssl_verify_client on; ssl_verify_depth 2; }"
  kubectl create secret generic -n "$NAMESPACE" certified --from-file ca.crt="$REGISTRY_CA" --from-file tls.crt="$TLS/tls.crt" \
    --from-file tls.key="$TLS/tls.key" >/dev/null
}

from_mirror() { curl -sSf --cacert "$REGISTRY_CA" -u "cluster:$SECRET" "https://$MIRROR_HOST$1"; }

# counted METRIC [LABELS]: the sum of a metric of the mirror, without probes.
counted() { from_mirror /metrics | grep "^catalog_mirror_$1.*${2:-}" | grep -v -e healthz -e readyz -e '/metrics' | awk '{sum += $NF} END {printf "%d", sum}'; }
moved() { counted http_response_body_bytes_total; }

start_controller() {
  API=$(free_port) HEALTH=$(free_port) METRICS=$(free_port) WEBHOOK=${WEBHOOK:-$(free_port)}
  start "$WORK/controller.log" env KUBECONFIG="$WORK/account.yaml" "$CONTROLLER" --leader-elect --tls-cert "$TLS/tls.crt" \
    --tls-key "$TLS/tls.key" --pull-cas-dir "$TLS" --cache-dir "$WORK/cache" --catalogs-server-addr "127.0.0.1:$API" \
    --metrics-bind-address "127.0.0.1:$METRICS" --health-probe-bind-address "127.0.0.1:$HEALTH" \
    --webhook-server-port "$WEBHOOK" --global-pull-secret "$NAMESPACE/login" \
    --mirror-origin "https://$MIRROR_HOST,secret=mirror" --mirror-origin "https://$CERTIFIED_HOST,secret=certified"
  CONTROLLER_PID=$STARTED_PID
  wait_for 60 curl -sf "http://127.0.0.1:$HEALTH/healthz"
}

stop_controller() { end_process "$CONTROLLER_PID"; }

# manifest NAME REFERENCE SOURCE [FIELD]: SOURCE is the annotation.
manifest() { clustercatalog "$1" "$2" "${4:-}" '' "annotations: {catalog-mirror/source: '$3'}"; }
catalog() { manifest "$@" | kubectl apply -f - >/dev/null; }

progress() { kubectl get clustercatalog "$1" -o json | jq -r '.status.conditions[]? | select(.type == "Progressing") | "\(.status) \(.reason) \(.message)"'; }
has_progress() { [[ $(progress "$1") =~ $2 ]]; }
# becomes NAME TEXT [SECONDS]
becomes() {
  if wait_for "${3:-40}" has_progress "$1" "$2"; then ok "$1 becomes $2"; else not_ok "$1 becomes $2" "$(progress "$1")" "$(tail -n 5 "$WORK/controller.log")"; fi
}
resolved() { kubectl get clustercatalog "$1" -o jsonpath='{.status.resolvedSource.image.ref}'; }
has_other_reference() { [[ $(resolved "$1") != "$2" ]]; }
lines() { curl -sS --cacert "$REGISTRY_CA" "https://127.0.0.1:$API/catalogs/$1/api/v1/all" | sha256; }
expected() { "$CATALOG_MIRROR" render "oci:$IMAGES:$1" | sha256; }
image() { jq -r '"sha256:\(.image.key | split("/")[-1])"' "$WORK/origin/catalogs/up/current.json"; }
same_pointer() { cmp "$WORK/origin/catalogs/up/current.json" "$WORK/cache/catalog-mirror/catalogs/$1/current.json"; }

copies() {
  local whole before reference version part
  catalog local registry.invalid/ns/catalog:v1 "https://$MIRROR_HOST/catalogs/up" 'pollIntervalMinutes: 1'
  becomes local '^True Succeeded'
  whole=$(moved) reference=$(resolved local)
  is "the content of the mirror is served" "$(lines local)" "$(expected first)"
  succeeds "the pointer is that of the mirror byte for byte" same_pointer local
  is "the reference names mirror, catalog and image" "$reference" "$MIRROR_HOST/up@$(image)"

  before=$(counted http_requests_total) version=$(kubectl get clustercatalog local -o jsonpath='{.metadata.resourceVersion}')
  sleep 63
  is "an unchanged poll is one request" "$(($(counted http_requests_total) - before))" 1
  is "that is answered by 304" "$(counted http_requests_total 'status="304"')" 1
  is "and writes nothing to the API server" "$(kubectl get clustercatalog local -o jsonpath='{.metadata.resourceVersion}')" "$version"

  matches "copies count as polls" "$(curl -sS --cacert "$REGISTRY_CA" -H 'Authorization: Bearer administrator' "https://127.0.0.1:$METRICS/metrics")" \
    'polls_total.catalog="local",outcome="unchanged". [1-9]'
  before=$(moved)
  publish second
  succeeds "an update is copied within the interval" wait_for 65 has_other_reference local "$reference"
  is "its content is served" "$(lines local)" "$(expected second)"
  is "with the image of the mirror" "$(resolved local)" "$MIRROR_HOST/up@$(image)"
  before=$(($(moved) - before))
  say "the first copy moved $whole bytes, an update of one package $before"
  # Of the generated catalog with its few small packages, half is what describes them.
  part=$(if [[ -n $(data_folder) ]]; then echo 10; else echo 1; fi)
  is "an update of one package moves less than the first copy divided by $part" "$((before * part < whole))" 1
  REFERENCE=$(resolved local)
}

# A digest in the spec, a mirror behind a certificate, a mirror that is not allowed.
conditions() {
  local asked
  catalog pinned "registry.invalid/ns/catalog@$(digest second)" "https://$MIRROR_HOST/catalogs/up"
  becomes pinned '^True Succeeded'
  catalog other "registry.invalid/ns/catalog@$(digest first)" "https://$MIRROR_HOST/catalogs/up"
  becomes other "^False Blocked .*the content of $(digest second), and $(digest first) is asked for"
  catalog certified registry.invalid/ns/catalog:v1 "https://$CERTIFIED_HOST/catalogs/up"
  becomes certified '^True Succeeded'
  is "a copy through a server that wants a certificate is the same" "$(lines certified)" "$(expected second)"
  asked=$(curl -sS "$FOREIGN/metrics" | grep '^catalog_mirror_http_requests_total')
  catalog foreign registry.invalid/ns/catalog:v1 "$FOREIGN/catalogs/up"
  becomes foreign '^False Blocked .*is not allowed as a mirror'
  is "a mirror that is not allowed is not asked" "$(curl -sS "$FOREIGN/metrics" | grep '^catalog_mirror_http_requests_total')" "$asked"
  kubectl delete secret -n "$NAMESPACE" certified >/dev/null
  kubectl annotate clustercatalog certified catalog-mirror/limits='{documents: 900000}' >/dev/null
  becomes certified "^True Retrying the Secret $NAMESPACE/certified of --mirror-origin does not exist"
}

# From the mirror to the image that the spec names, and back.
removal() {
  kubectl create secret docker-registry -n "$NAMESPACE" login --docker-server "$REGISTRY" \
    --docker-username "$REGISTRY_USER" --docker-password "$REGISTRY_PASSWORD" >/dev/null
  kubectl annotate clustercatalog local catalog-mirror/source- >/dev/null
  becomes local '^True Retrying .*registry.invalid'
  is "without the annotation the copy stays served until the image is pulled" "$(resolved local) $(lines local)" "$REFERENCE $(expected second)"
  kubectl patch clustercatalog local --type merge -p "{\"spec\": {\"source\": {\"image\": {\"ref\": \"$REGISTRY/ns/sources:second\"}}}}" >/dev/null
  becomes local '^True Succeeded'
  is "the image is pulled although the mirror had named its digest" "$(resolved local)" "$REGISTRY/ns/sources@$(digest second)"
  kubectl annotate clustercatalog local catalog-mirror/source="https://$MIRROR_HOST/catalogs/up" >/dev/null
  succeeds "with the annotation it is a copy again" wait_for 40 has_reference local "$REFERENCE"
  is "the role of the controller suffices" "$(grep -ci forbidden "$WORK/controller.log")" 0
  is "no secret is in its log" "$(grep -c -e "$SECRET" -e "$REGISTRY_PASSWORD" "$WORK/controller.log")" 0
}
has_reference() { [[ $(resolved "$1") == "$2" ]]; }

# catalogd's own configuration of its webhook, with the port of the controller: there is no network of Services here.
configure_webhook() {
  local all=${CRDS%/helm/*}/manifests/standard.yaml
  awk 'BEGIN {RS = "---\n"} /kind: MutatingWebhookConfiguration/' "$all" | kubectl create --dry-run=client -o json -f - |
    jq --arg url "https://127.0.0.1:$WEBHOOK/mutate-olm-operatorframework-io-v1-clustercatalog" --arg ca "$(base64 -w0 "$REGISTRY_CA")" \
      '.webhooks[].clientConfig = {url: $url, caBundle: $ca}' | kubectl apply -f - >/dev/null
}

# created [LABELS]: the labels that the API server gives a new ClusterCatalog, or its error. The controller sees nothing of it.
created() {
  local answer
  answer=$(manifest new registry.invalid/ns/catalog:v1 "" | kubectl label --local -f - -o yaml x=y ${1:+"$1"} |
    kubectl create --dry-run=server -o json -f - 2>&1)
  jq -cS .metadata.labels <<<"$answer" 2>/dev/null || printf '%s' "$answer"
}
both_labels() { jq -nc --arg name "$LABEL" '{($name): "new", x: "y"}'; }
is_refused() { [[ $(created) == *'failed calling webhook'* ]]; }
is_labelled() { [[ $(created) == "$(both_labels)" ]]; }

labels() {
  is "without webhook and policy there is no label" "$(created)" '{"x":"y"}'
  configure_webhook
  succeeds "the controller answers catalogd's webhook" wait_for 20 is_labelled
  is "and keeps other labels, and corrects a wrong one" "$(created "$LABEL=old")" "$(both_labels)"
  stop_controller
  succeeds "with nothing behind the webhook a ClusterCatalog without label is refused" is_refused
  is "but not one with the label" "$(created "$LABEL=new")" "$(both_labels)"
  label_policy
  succeeds "with the policy it is created beside the failing webhook, since policies run first" wait_for 30 is_labelled
  is "a wrong label is corrected too" "$(created "$LABEL=old")" "$(both_labels)"
  kubectl delete mutatingwebhookconfiguration catalogd-mutating-webhook-configuration >/dev/null
  succeeds "the policy sets the label without a webhook" is_labelled
  is "and leaves a deletion alone" "$(kubectl delete clustercatalog foreign --dry-run=server -o name)" clustercatalog.olm.operatorframework.io/foreign
}

# As the manifests use it.
label_policy() {
  mkdir -p "$WORK/overlay"
  printf 'components: [%s]\n' "$(realpath --relative-to "$WORK/overlay" "$POLICY")" >"$WORK/overlay/kustomization.yaml"
  kubectl kustomize "$WORK/overlay" | kubectl apply -f - >/dev/null
}

prepare
start_controller
copies
conditions
removal
labels
stop_cluster
