# ClusterCatalogs whose image is a mirror's, and the label that others ask for, at a real API server: the mirror is the program itself
# over TLS, with a login. The controller has the role that is shipped.
# shellcheck shell=bash

TLS=$(dirname "$REGISTRY_CA")
POLICY=$ROOT/infra/kubernetes/controller/components/label-policy
LABEL=olm.operatorframework.io/metadata.name
IMAGES=$WORK/images
SECRET=correct-horse
# Name of the ClusterCatalog that the mirror prints for its catalog `up`.
NAME=cc-up-latest

prepare() {
  prepare_service
  make_images
  publish first
  start_mirror
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

# publish TAG: at the mirror, as the catalog `up`.
publish() { outcome "$WORK/origin" "up=$REGISTRY/ns/sources:$1" >/dev/null; }

# The mirror, whose readers have a login, which the pull secret has.
start_mirror() {
  local port
  port=$(free_port)
  echo "cluster:sha256:$(printf %s "$SECRET" | sha256)" >"$WORK/readers"
  start "$WORK/mirror.log" "$CATALOG_MIRROR" serve --no-poll --store "$WORK/origin" --listen "127.0.0.1:$port" \
    --tls-cert "$TLS/tls.crt" --tls-key "$TLS/tls.key" --readers "$WORK/readers"
  MIRROR_HOST=127.0.0.1:$port
  wait_for 20 from_mirror /healthz
  kubectl create secret docker-registry -n "$NAMESPACE" login --docker-server "$MIRROR_HOST" \
    --docker-username cluster --docker-password "$SECRET" >/dev/null
}

from_mirror() { curl -sSf --cacert "$REGISTRY_CA" -u "cluster:$SECRET" "https://$MIRROR_HOST$1"; }

lines() { curl -sS --cacert "$REGISTRY_CA" "https://127.0.0.1:$CONTROLLER_API/catalogs/$1/api/v1/all" | sha256; }
expected() { "$CATALOG_MIRROR" render "oci:$IMAGES:$1" | sha256; }
manifests() { "$CATALOG_MIRROR" manifests --store "$WORK/origin" --url "https://$MIRROR_HOST" --kind clustercatalog --interval 1m "$@"; }
# image: the mirror's image by its digest.
image() { manifests --pin | grep -o "$MIRROR_HOST/up@sha256:[0-9a-f]*"; }

pulls() {
  manifests | kubectl apply -f - >/dev/null
  succeeds "the ClusterCatalog of the mirror is served" kubectl wait --for condition=Serving "clustercatalog/$NAME" --timeout 40s
  is "the content of the mirror is served" "$(lines "$NAME")" "$(expected first)"
  is "the status names the mirror's image" "$(resolved "$NAME")" "$(image)"
  publish second
  succeeds "an update is served within the interval" wait_for 75 has_resolved "$NAME" "$(image)"
  is "with its content" "$(lines "$NAME")" "$(expected second)"
  is "the role of the controller suffices" "$(grep -ci forbidden "$WORK/controller.log")" 0
  is "no secret is in its log" "$(grep -c -e "$SECRET" -e "$REGISTRY_PASSWORD" "$WORK/controller.log")" 0
}

# catalogd's own configuration of its webhook, with the port of the controller: there is no network of Services here.
configure_webhook() {
  local all=${CRDS%/helm/*}/manifests/standard.yaml
  awk 'BEGIN {RS = "---\n"} /kind: MutatingWebhookConfiguration/' "$all" | kubectl create --dry-run=client -o json -f - |
    jq --arg url "https://127.0.0.1:$CONTROLLER_WEBHOOK/mutate-olm-operatorframework-io-v1-clustercatalog" --arg ca "$(base64 -w0 "$REGISTRY_CA")" \
      '.webhooks[].clientConfig = {url: $url, caBundle: $ca}' | kubectl apply -f - >/dev/null
}

# created [LABELS]: the labels that the API server gives a new ClusterCatalog, or its error. The controller sees nothing of it.
created() {
  local answer
  answer=$(clustercatalog new registry.invalid/ns/catalog:v1 | kubectl label --local -f - -o yaml x=y ${1:+"$1"} |
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
  end_process "$CONTROLLER_PID"
  succeeds "with nothing behind the webhook a ClusterCatalog without label is refused" is_refused
  is "but not one with the label" "$(created "$LABEL=new")" "$(both_labels)"
  label_policy
  succeeds "with the policy it is created beside the failing webhook, since policies run first" wait_for 30 is_labelled
  is "a wrong label is corrected too" "$(created "$LABEL=old")" "$(both_labels)"
  kubectl delete mutatingwebhookconfiguration catalogd-mutating-webhook-configuration >/dev/null
  succeeds "the policy sets the label without a webhook" is_labelled
  is "and leaves a deletion alone" "$(kubectl delete clustercatalog "$NAME" --dry-run=server -o name)" "clustercatalog.olm.operatorframework.io/$NAME"
}

# As the manifests use it.
label_policy() {
  mkdir -p "$WORK/overlay"
  printf 'components: [%s]\n' "$(realpath --relative-to "$WORK/overlay" "$POLICY")" >"$WORK/overlay/kustomization.yaml"
  kubectl kustomize "$WORK/overlay" | kubectl apply -f - >/dev/null
}

prepare
start_controller controller --leader-elect
pulls
labels
stop_cluster
