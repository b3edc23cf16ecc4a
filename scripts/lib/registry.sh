# Debian's docker-registry with TLS and a password, and images pushed to it.
# shellcheck shell=bash

FBC_LABEL=operators.operatorframework.io.index.configs.v1=/configs
MANIFEST=application/vnd.oci.image.manifest.v1+json INDEX=application/vnd.oci.image.index.v1+json
REGISTRY_USER=mirror REGISTRY_PASSWORD=correct-horse-battery-staple

# make_certificates DIR: a certification authority of its own, and the registry's certificate for 127.0.0.1.
make_certificates() {
  mkdir -p "$1"
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Test authority" \
    -addext basicConstraints=critical,CA:TRUE -keyout "$1/ca.key" -out "$1/ca.crt" 2>/dev/null
  openssl req -newkey rsa:2048 -nodes -subj "/CN=registry" -keyout "$1/tls.key" -out "$1/tls.csr" 2>/dev/null
  openssl x509 -req -days 2 -in "$1/tls.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial \
    -extfile <(echo "subjectAltName=IP:127.0.0.1") -out "$1/tls.crt" 2>/dev/null
}

# start_registry: REGISTRY (host:port), REGISTRY_CA and AUTH_FILE are set afterwards.
start_registry() {
  local tls=$WORK/registry/tls
  REGISTRY=127.0.0.1:$(free_port) REGISTRY_CA=$tls/ca.crt AUTH_FILE=$WORK/registry/auth.json
  make_certificates "$tls"
  htpasswd -Bbn "$REGISTRY_USER" "$REGISTRY_PASSWORD" >"$tls/htpasswd"
  start_registry_in "$WORK/registry" "$REGISTRY" "$tls"
}

# start_second_registry HOME: another registry with the certificates and the login of the first. SECOND_REGISTRY is set afterwards.
start_second_registry() {
  SECOND_REGISTRY=127.0.0.1:$(free_port)
  start_registry_in "$1" "$SECOND_REGISTRY" "$(dirname "$REGISTRY_CA")"
}

# start_plain_registry: without TLS and password, for measurements. PLAIN_REGISTRY is set afterwards.
start_plain_registry() {
  PLAIN_REGISTRY=127.0.0.1:$(free_port)
  start_registry_in "$WORK/plain-registry" "$PLAIN_REGISTRY"
}

# start_registry_in HOME HOST [FOLDER]: with a password, and with TLS by the files of the folder, if there is one.
start_registry_in() {
  local auth='' tls=''
  if [[ -n ${3:-} ]]; then
    auth="auth: {htpasswd: {realm: test, path: $3/htpasswd}}"
    tls=", tls: {certificate: $3/tls.crt, key: $3/tls.key}"
  fi
  mkdir -p "$1"
  cat >"$1/config.yml" <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $1/data}, delete: {enabled: true}}
$auth
http: {addr: $2$tls}
YAML
  serve_registry "$1" "http${3:+s}://$2"
  [[ -z $tls ]] || skopeo login --authfile "$AUTH_FILE" --tls-verify=false -u "$REGISTRY_USER" -p "$REGISTRY_PASSWORD" "$2" >/dev/null
}

# run_registry HOME: the registry with the settings in a folder. It takes every variable REGISTRY_* for a setting, so it starts with a clean
# environment.
run_registry() { start "$1/log" env -i PATH="$PATH" docker-registry serve "$1/config.yml"; }

# serve_registry HOME URL: the same, and waits until it answers.
serve_registry() { run_registry "$1" && wait_for 20 curl -sk -m 1 "$2/v2/"; }

# new_image LAYOUT:TAG: an empty image that says where its FBC will be.
new_image() {
  [[ -d ${1%:*} ]] || umoci init --layout "${1%:*}"
  umoci new --image "$1"
  umoci config --image "$1" --config.label "$FBC_LABEL"
}

# add_layer LAYOUT:TAG FOLDER [NEW-TAG]: what the folder holds becomes the image's next layer.
add_layer() {
  local tar=$WORK/layer.tar
  tar -C "$2" --owner=0 --group=0 -cf "$tar" .
  umoci raw add-layer --image "$1" ${3:+--tag "$3"} "$tar"
  rm "$tar"
}

# copy_image FROM TO [OPTION...]: skopeo, with the suite's credentials.
copy_image() {
  skopeo copy --quiet --authfile "$AUTH_FILE" --src-tls-verify=false --dest-tls-verify=false "${@:3}" "$1" "$2"
}

# registry_digest IMAGE: of an image in a registry with the suite's login.
registry_digest() { skopeo inspect --authfile "$AUTH_FILE" --tls-verify=false --format '{{.Digest}}' "docker://$1"; }

# registry_curl ARGUMENT...: curl to the registry itself.
registry_curl() {
  curl -sS --cacert "$REGISTRY_CA" -u "$REGISTRY_USER:$REGISTRY_PASSWORD" "$@"
}
