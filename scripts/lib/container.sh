# Containers of an image that scripts/image built, run by runc as Kubernetes runs them.
# shellcheck shell=bash

# Any user, and the same one for all containers of a run: a store belongs to the user who made it.
CONTAINER_USER=$((100000 + RANDOM))

# use_image LAYOUT: IMAGE is the reference of its index afterwards, for skopeo.
use_image() {
  IMAGE=oci:$1:$(jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' "$1/index.json")
}

# unpack_image ARCH FOLDER: the files of the image for a processor, as umoci unpacks them, in FOLDER/rootfs. Its configuration is
# FOLDER/image.json.
unpack_image() {
  skopeo copy --quiet --override-arch "$1" "$IMAGE" "oci:$2.layout:image"
  as_root umoci unpack --image "$2.layout:image" "$2" >/dev/null 2>&1
  skopeo inspect --config --override-arch "$1" "$IMAGE" | jq .config | as_root tee "$2/image.json" >/dev/null
  rm -r "$2.layout"
}

# json_list TEXT...: a list of lines.
json_list() {
  if (($#)); then printf '%s\n' "$@" | jq -Rnc '[inputs]'; else echo '[]'; fi
}

# new_container NAME BUNDLE ARGUMENT...: a container of an unpacked image. It has no capabilities, a root that it cannot write, a
# /tmp that it can, any user in group 0, and the network of this machine. MOUNTS are SOURCE:TARGET[:ro], VARIABLES are NAME=VALUE,
# RUNNER is a program that runs the one of the image: qemu.
new_container() {
  local folder=$WORK/containers/$1 bundle=$2
  shift 2
  mkdir -p "$folder"
  rm -f "$folder/config.json"
  runc spec --bundle "$folder"
  # Nothing depends on the user being in /etc/passwd: there is no such file.
  jq --arg root "$bundle/rootfs" --argjson user "$CONTAINER_USER" --slurpfile image "$bundle/image.json" \
    --argjson runner "$(json_list ${RUNNER:+"$RUNNER"})" --argjson arguments "$(json_list "$@")" \
    --argjson mounts "$(json_list "${MOUNTS[@]}" ${RUNNER:+"$RUNNER:$RUNNER:ro"})" --argjson variables "$(json_list "${VARIABLES[@]}")" '
    $image[0] as $image
    | .root = {path: $root, readonly: true}
    | .process += {terminal: false, noNewPrivileges: true, capabilities: {}, cwd: $image.WorkingDir, user: {uid: $user, gid: 0},
        env: ($image.Env + $variables), args: ($runner + $image.Entrypoint + (if $arguments == [] then $image.Cmd // [] else $arguments end))}
    | .linux.namespaces |= map(select(.type != "network"))
    | .mounts += [{destination: "/tmp", type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev", "mode=1777"]}]
    | .mounts += [$mounts[] | split(":") | {destination: .[1], type: "bind", source: .[0], options: ["bind", (.[2] // "rw")]}]
    ' "$folder/config.json" >"$folder/config.new"
  mv "$folder/config.new" "$folder/config.json"
}

# run_container NAME: the output and the exit code are those of the program.
run_container() { as_root runc --root "$WORK/runc" run --bundle "$WORK/containers/$1" "$1"; }

# start_container NAME: in the background, as `start` does. Its log is $WORK/NAME.log.
start_container() {
  local as=()
  # Not the function, whose shell would take the signals that end the container.
  ((EUID == 0)) || as=(sudo -n)
  start "$WORK/$1.log" "${as[@]}" runc --root "$WORK/runc" run --bundle "$WORK/containers/$1" "$1"
}
