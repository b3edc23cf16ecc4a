# Those who sign images, and one who judges them. openssl signs as cosign's specification says, skopeo with gpg, and judges.
# shellcheck shell=bash

# make_gpg_key NAME EXPIRY [OPTION...]: KEYS/NAME.gpg and, armoured, KEYS/NAME.asc.
make_gpg_key() {
  gpg --batch --quiet --passphrase '' "${@:3}" --quick-generate-key "$1@example.com" rsa2048 sign "$2" 2>/dev/null
  gpg --batch --export "$1@example.com" >"$KEYS/$1.gpg" 2>/dev/null
  gpg --batch --armor --export "$1@example.com" >"$KEYS/$1.asc" 2>/dev/null
}

# gpg_fingerprint NAME
gpg_fingerprint() { gpg --with-colons --list-keys "$1@example.com" 2>/dev/null | awk -F: '/^fpr/ {print tolower($10); exit}'; }

# digest_of REPOSITORY:TAG
digest_of() {
  registry_curl -sI -H "Accept: $MANIFEST, $INDEX" "https://$REGISTRY/v2/${1%:*}/manifests/${1##*:}" |
    tr -d '\r' | sed -n 's/^[Dd]ocker-[Cc]ontent-[Dd]igest: //p'
}

# attach KEY REPOSITORY:TAG [CLAIM]: one more signature of an image, under the name REPOSITORY:TAG or another one (cosign,
# specs/SIGNATURE_SPEC.md).
attach() {
  local repository=${2%:*} digest tag payload=$WORK/payload layers
  digest=$(digest_of "$2")
  tag=${digest/:/-}.sig
  jq -ncj --arg digest "$digest" --arg name "$REGISTRY/${3:-$2}" '{critical: {identity: {"docker-reference": $name},
    image: {"docker-manifest-digest": $digest}, type: "cosign container image signature"}, optional: null}' >"$payload"
  layers=$(registry_curl -f -H "Accept: $MANIFEST" "https://$REGISTRY/v2/$repository/manifests/$tag" 2>/dev/null | jq -c .layers) ||
    layers='[]'
  push_blob "$repository" "$payload"
  echo -n '{}' >"$WORK/empty.json"
  push_blob "$repository" "$WORK/empty.json"
  jq -nc --argjson layers "$layers" --arg type "$MANIFEST" --arg payload "sha256:$(sha256 "$payload")" \
    --argjson size "$(stat -c %s "$payload")" --arg empty "sha256:$(sha256 "$WORK/empty.json")" \
    --arg signature "$(openssl dgst -sha256 -sign "$KEYS/$1.pem" "$payload" | base64 -w0)" \
    '{schemaVersion: 2, mediaType: $type, config: {mediaType: "application/vnd.oci.image.config.v1+json", digest: $empty, size: 2},
      layers: ($layers + [{mediaType: "application/vnd.dev.cosign.simplesigning.v1+json", digest: $payload, size: $size,
        annotations: {"dev.cosignproject.cosign/signature": $signature}}])}' | put_manifest "$MANIFEST" "$repository" "$tag"
}

# push_blob REPOSITORY FILE
push_blob() {
  local place
  place=$(registry_curl -f -X POST -o /dev/null -D - "https://$REGISTRY/v2/$1/blobs/uploads/" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
  registry_curl -f -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$2" "$place&digest=sha256:$(sha256 "$2")"
}

# put_manifest TYPE REPOSITORY TAG <MANIFEST
put_manifest() {
  registry_curl -f -X PUT -H "Content-Type: $1" --data-binary @- "https://$REGISTRY/v2/$2/manifests/$3"
}

# push_signed GPG-KEY FROM REPOSITORY:TAG: an image with a simple signature in the lookaside.
push_signed() { copy_image "$2" "docker://$REGISTRY/$3" --registries.d "$REGISTRIES" --sign-by "$1@example.com"; }

# skopeo_says POLICY IMAGE: accept, reject, invalid if skopeo cannot read the policy, or what else it says.
skopeo_says() {
  local log=$WORK/judge.log
  rm -rf "$WORK/judged"
  if skopeo --policy "$1" --registries.d "$REGISTRIES" copy --quiet --authfile "$AUTH_FILE" --src-tls-verify=false \
    --remove-signatures "docker://$2" "dir:$WORK/judged" >"$log" 2>&1; then
    echo accept
  elif grep -q "sigstore disabled" "$log"; then
    echo "cannot say"
  elif grep -q "Source image rejected" "$log"; then
    echo reject
  elif grep -q "policy" "$log"; then
    echo invalid
  else
    cat "$log"
  fi
}

# small NAME: an image of its own with a catalog of one package, the same in all of them.
small() { umoci config --image "$IMAGES:base" --tag "$1" --config.label "name=$1"; }

# push REPOSITORY:TAG IMAGE
push() { copy_image "oci:$IMAGES:$2" "docker://$REGISTRY/$1"; }

# configure SIGNATURE [REFERENCE]: a catalog whose signatures have to be so.
configure() {
  cat >"$WORK/catalogs.yaml" <<YAML
store: $STORE
registries: {authFiles: [$AUTH_FILE], caFiles: [$REGISTRY_CA], plainHttp: ["${LOOKASIDE#http://}"]}
catalogs:
  - name: signed
    source: ${2:-$REGISTRY/signed:now}
    signature: $1
YAML
}

# polled [OPTION...]: how a poll ends, as `outcome` tells it.
polled() { outcome_of "$CATALOG_MIRROR" poll --config "$WORK/catalogs.yaml" "$@"; }

# why: what status.json says.
why() { jq -r '.error // ""' "$STORE/catalogs/signed/status.json"; }

# make_keys: a and b for cosign, mine, other and old (which has expired) for gpg. KEYS is their folder afterwards, LOOKASIDE the URL of simple
# signatures, and REGISTRIES the configuration that names it to skopeo.
make_keys() {
  local name
  need_debian gpg=gpg gpg-agent=gpg-agent
  STORE=$WORK/store
  start_nginx "$WORK/lookaside"
  KEYS=$WORK/keys REGISTRIES=$WORK/registries.d LOOKASIDE=$NGINX
  mkdir -p "$KEYS" "$REGISTRIES"
  cat >"$REGISTRIES/here.yaml" <<YAML
docker:
  $REGISTRY: {use-sigstore-attachments: true, lookaside: "$LOOKASIDE", lookaside-staging: "file://$WORK/lookaside"}
YAML
  for name in a b; do
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$KEYS/$name.pem" 2>/dev/null
    openssl pkey -in "$KEYS/$name.pem" -pubout -out "$KEYS/$name.pub"
  done
  export GNUPGHOME=$WORK/gnupg
  mkdir -m 700 "$GNUPGHOME"
  make_gpg_key mine never
  make_gpg_key other never
  make_gpg_key old 2021-01-01 --faked-system-time 20200101T000000
}

# make_images: all that is signed, in the layout IMAGES.
make_images() {
  local name
  IMAGES=$WORK/images
  mkdir -p "$WORK/tiny/configs/p"
  echo '{"schema":"olm.package","name":"p"}' >"$WORK/tiny/configs/p/catalog.json"
  new_image "$IMAGES:base"
  add_layer "$IMAGES:base" "$WORK/tiny"
  for name in first none a b both renamed foreign mine other both-gpg renamed-gpg foreign-gpg old sha1 all; do
    small "$name"
  done
}
