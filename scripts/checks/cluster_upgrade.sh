# What is said before an upgrade, at a real API server: `plan` on what kubectl prints of a cluster with OLM v0 and v1, for each thing
# that it has to tell apart and for an operator of each package; the manifests that the page writes, and the permissions that `bundle diff` says are gained, each asked as a SubjectAccessReview.
# shellcheck shell=bash

definitions() {
  local crds name files=()
  crds=$(go_module_folder "$OLM_API")/crds
  for name in subscriptions clusterserviceversions operatorgroups; do files+=(-f "$crds/operators.coreos.com_$name.yaml"); done
  kubectl apply --server-side "${files[@]}" \
    -f "$(go_module_folder "$CATALOGD")/helm/olmv1/base/operator-controller/crd/standard" >/dev/null
  wait_for 30 kubectl get subscriptions.operators.coreos.com,clusterserviceversions,clusterextensions -A
  for name in first second copies watched openshift-operators; do kubectl create namespace "$name" >/dev/null; done
}

# page_manifests NAME FOLDER: those that the page writes for each channel of a catalog.
page_manifests() {
  "$CATALOG_MIRROR" render "dir:$2" >"$WORK/$1.lines"
  node "$LIB/page_catalog.mjs" manifests "$WORK/$1.lines" >"$WORK/manifests.yaml"
  # A dry run creates no namespace, and the other manifests need theirs.
  awk '/^kind: Namespace/ {found = 1} found && /^  name: / {gsub(/"/, ""); print $2; found = 0}' "$WORK/manifests.yaml" | sort -u |
    jq -R '{apiVersion: "v1", kind: "Namespace", metadata: {name: .}}' | kubectl apply --server-side -f - >/dev/null
  is "the API server accepts the $(grep -c ^kind "$WORK/manifests.yaml") manifests of the page, with strict fields ($1)" \
    "$(kubectl apply --server-side --dry-run=server --validate=strict -f "$WORK/manifests.yaml" 2>&1 >/dev/null)" ""
}

# apply_objects FILE: creates objects with their status, as a controller would.
apply_objects() {
  kubectl apply --server-side -f "$1" >/dev/null
  kubectl apply --server-side --subresource=status -f <(jq '.items |= map(select(.status))' "$1") >/dev/null
}

# write_installed: $WORK/installed.yaml and .json, by the command of infra/disconnected/upgrade.md.
write_installed() {
  local format
  for format in yaml json; do
    kubectl get subscriptions.operators.coreos.com,clusterserviceversions,clusterextensions -A -o "$format" >"$WORK/installed.$format"
  done
}

# What `plan` has to tell apart: parts of OLM, copies, operators without a Subscription, approvals, sources, pins and channels.
tells_apart() {
  local name format
  python3 -B "$LIB/plan_cluster.py" objects >"$WORK/objects"
  apply_objects "$WORK/objects"
  package_server first | kubectl create -f - >/dev/null
  package_server openshift-operators operator-lifecycle-manager-packageserver | kubectl create -f - >/dev/null
  is "the cluster has two package servers" "$(kubectl get clusterserviceversions -A -o name | grep -c /packageserver)" 2
  write_installed
  python3 -B "$LIB/plan_cluster.py" catalogs "$WORK/planned"
  for name in team-v4-20 team-v4-21 vendor-v4-20 vendor-v4-21; do
    "$CATALOG_MIRROR" poll --quiet --store "$WORK/planned-store" --catalog "$name=dir:$WORK/planned/$name"
  done
  for format in yaml json; do
    "$CATALOG_MIRROR" plan "$WORK/installed.$format" --store "$WORK/planned-store" --cluster 4.21 --json \
      --from team-v4-20 --from vendor-v4-20 --to team-v4-21 --to vendor-v4-21 >"$WORK/plan"
    is "it says what has no way, by its exit code ($format)" "$?" 1
    same_lines "and tells each operator apart ($format)" "$(python3 -B "$LIB/plan_cluster.py" rows "$WORK/plan")" \
      "$(cat <<'ROWS'
both first either vendor-v4-21 s 2.1.0
both second either team-v4-21 s 1.1.0
channels first either vendor-v4-21 b 1.2.0
labelled second either vendor-v4-21 s 1.1.0
pinned first either vendor-v4-21 s 1.1.0; its ClusterExtension asks for version "1.0.0": let spec.source.catalog.version allow 1.1.0
plain first stays team-v4-21 s 1.0.0
stops first cluster-first team-v4-21 s 1.2.0; set approval to Manual: 1.1.0 would stop the upgrade
stops second cluster-first team-v4-21 s 1.2.0
stranger.v1.0.0 second no-way - - 1.0.0; no Subscription, label or annotation names its package, and no catalog has its bundle
ROWS
)"
  done
  kubectl delete subscriptions.operators.coreos.com,clusterserviceversions,clusterextensions -A --all >/dev/null
}

# An operator of each package. The versions of a cluster's objects are completed by the API server, so that this is what people have.
plans() {
  local name
  for name in objects list; do python3 -B "$LIB/installed.py" "$name" "$WORK/series.lines" >"$WORK/$name"; done
  apply_objects "$WORK/objects"
  write_installed
  matches "a cluster has operators" "$(wc -l <"$WORK/list")" '^[1-9][0-9]*$'
  planned "$WORK/list" >"$WORK/expected"
  is "each of which has a plan" "$(jq length "$WORK/expected")" "$(wc -l <"$WORK/list")"
  for name in yaml json; do
    succeeds "kubectl's $name has the plan of the list" diff <(planned "$WORK/installed.$name") "$WORK/expected"
  done
}

# planned FILE: the rows in one order, without what a list does not have.
planned() {
  "$CATALOG_MIRROR" plan "$1" --from "oci:$LAYOUT:step-000" --to "oci:$LAYOUT:$LAST_TAG" --cluster 4.19 --on 2026-01-01 --json |
    jq -S '.operators | map(del(.namespace, .source, .installPlanApproval)) | sort_by(.package)'
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
need_helm
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
tells_apart
plans
mkdir "$WORK/generated"
python3 -B "$LIB/permissions.py" generated >"$WORK/generated/catalog.json"
permissions generated "$WORK/generated"
[[ -z $DATA ]] || permissions v4.14 "$(configs_folder "$WORK/v4.14")"
stop_cluster
