# What is said before an upgrade, at a real API server: `plan` on what kubectl prints of a cluster with OLM v0 and v1, the manifests that
# the page writes, and the permissions that `bundle diff` says are gained, each asked as a SubjectAccessReview.
# shellcheck shell=bash

definitions() {
  local crds name
  crds=$(go_module_folder "$OLM_API")/crds
  kubectl apply --server-side -f "$crds/operators.coreos.com_subscriptions.yaml" -f "$crds/operators.coreos.com_clusterserviceversions.yaml" \
    -f "$(go_module_folder "$CATALOGD")/helm/olmv1/base/operator-controller/crd/standard" >/dev/null
  wait_for 30 kubectl get subscriptions.operators.coreos.com,clusterserviceversions,clusterextensions -A
  for name in first second copies watched openshift-operators; do kubectl create namespace "$name" >/dev/null; done
}

# page_manifests NAME FOLDER: those that the page writes for each channel of a catalog.
page_manifests() {
  "$CATALOG_MIRROR" render "dir:$2" >"$WORK/$1.lines"
  node "$LIB/page_catalog.mjs" manifests "$WORK/$1.lines" >"$WORK/manifests.yaml"
  is "the API server accepts the $(grep -c ^kind "$WORK/manifests.yaml") manifests of the page, with strict fields ($1)" \
    "$(kubectl create --dry-run=server --validate=strict -f "$WORK/manifests.yaml" 2>&1 >/dev/null)" ""
}

# An operator of each package. The versions of a cluster's objects are completed by the API server, so that this is what people have.
plans() {
  local name
  for name in objects list; do python3 -B "$LIB/installed.py" "$name" "$WORK/series.lines" >"$WORK/$name"; done
  kubectl apply --server-side -f "$WORK/objects" >/dev/null
  kubectl apply --server-side --subresource=status -f <(jq '.items |= map(select(.status))' "$WORK/objects") >/dev/null
  # The command of infra/disconnected/upgrade.md.
  kubectl get subscriptions.operators.coreos.com,clusterserviceversions,clusterextensions -A -o yaml >"$WORK/installed.yaml"
  kubectl get subscriptions.operators.coreos.com,clusterserviceversions,clusterextensions -A -o json >"$WORK/installed.json"
  matches "a cluster has operators" "$(wc -l <"$WORK/list")" '^[1-9][0-9]*$'
  planned "$WORK/list" >"$WORK/expected"
  is "each of which has a plan" "$(jq length "$WORK/expected")" "$(wc -l <"$WORK/list")"
  for name in yaml json; do
    succeeds "kubectl's $name has the plan of the list" diff <(planned "$WORK/installed.$name") "$WORK/expected"
  done
}

# planned FILE: the rows in one order, without the names of namespaces, which a list does not have.
planned() {
  "$CATALOG_MIRROR" plan "$1" --from "oci:$LAYOUT:step-000" --to "oci:$LAYOUT:$LAST_TAG" --cluster 4.19 --on 2026-01-01 --json |
    jq -S '.operators | map(del(.namespace)) | sort_by(.package)'
}

# permissions NAME FOLDER
permissions() {
  "$CATALOG_MIRROR" render "dir:$2" >"$WORK/$1.lines"
  "$CATALOG_MIRROR" poll --store "$WORK/store" --catalog "$1=dir:$2" >/dev/null
  matches "the API server allows what is gained, and did not before ($1)" \
    "$(python3 -B "$LIB/permissions.py" compare "$WORK/$1.lines" "$CATALOG_MIRROR" "$WORK/store" "$1" 2>&1 | tee "$WORK/$1.said")" \
    '^[1-9][0-9]* requests about [1-9][0-9]* pairs of bundles, 0 of them'
}

need_debian node=nodejs
prepare_cluster
definitions
page_manifests series "$SERIES/000/configs"
DATA=$(data_folder)
if [[ -n $DATA ]]; then
  for catalog in $(real_catalogs); do
    unpack "$DATA/community-$catalog.tar.zst" "$WORK/$catalog"
    page_manifests "$catalog" "$(configs_folder "$WORK/$catalog")"
  done
fi
plans
mkdir "$WORK/generated"
python3 -B "$LIB/permissions.py" generated >"$WORK/generated/catalog.json"
permissions generated "$WORK/generated"
[[ -z $DATA ]] || permissions v4.14 "$(configs_folder "$WORK/v4.14")"
stop_cluster
