# The manifests of infra/kubernetes, put together as a user does.
# shellcheck shell=bash

MANIFESTS=$ROOT/infra/kubernetes
declare -gA COMPONENTS=(
  [mirror]="registry-api service-monitor alerts certificate openshift"
  [controller]="service-monitor alerts certificate pull-secret s3 egress openshift label-policy"
)

# write_overlay FOLDER VARIANT [COMPONENT...]: a kustomization of a folder such as mirror/s3, with components of its kind.
write_overlay() {
  local folder=$1 kind=${2%%/*} up each
  mkdir -p "$folder"
  up=$(realpath --relative-to "$folder" "$MANIFESTS")
  {
    # The objects of the controller have the namespace of OLM.
    [[ $kind == controller ]] || echo 'namespace: mirrors'
    printf 'resources: [%s]\ncomponents:\n' "$up/$2"
    for each in "${@:3}"; do printf -- '- %s\n' "$up/$kind/components/$each"; done
  } >"$folder/kustomization.yaml"
}

# each_overlay COMMAND: calls it with each variant and its components: none, each alone, all.
each_overlay() {
  local variant component components
  for variant in mirror/volume mirror/s3 controller/base; do
    read -ra components <<<"${COMPONENTS[${variant%/*}]}"
    "$1" "$variant"
    for component in "${components[@]}"; do "$1" "$variant" "$component"; done
    "$1" "$variant" "${components[@]}"
  done
}
