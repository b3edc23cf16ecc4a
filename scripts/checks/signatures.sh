# Signatures of other tools: what they signed is published and nothing else, and what is published is signed. openssl signs in
# cosign's form, skopeo with gpg; a registry without referrers and a file server keep the signatures; openssl reads the keys.
# tests/e2e has what updates, other keys and copies make of signatures, the part policies which of them are refused.
# The part cosign does the same with cosign itself, which takes eight minutes to compile.
# shellcheck shell=bash

# cosign looks for credentials and certificates only where the environment says.
export DOCKER_CONFIG=$WORK/docker SSL_CERT_FILE=$REGISTRY_CA COSIGN_PASSWORD=

# unsign REPOSITORY:TAG: takes what cosign attached to an image away.
unsign() {
  local digest tag
  for tag in "$(digest_of "$1" | tr : -)"{.sig,}; do
    digest=$(digest_of "${1%:*}:$tag")
    [[ -z $digest ]] || registry_curl -X DELETE "https://$REGISTRY/v2/${1%:*}/manifests/$digest"
  done
}

# verified_by: the signer that ls prints.
verified_by() { "$CATALOG_MIRROR" ls --json --store "$STORE" | jq -r '.[0].current.source.verified.by[]? | "\(.method) \(.key)"'; }

# key_id PUBLIC: the sha256 of the key in DER, as another program computes it.
key_id() { openssl pkey -pubin -in "$1" -outform DER | sha256sum | cut -d' ' -f1; }

with_cosigns_form() {
  configure "{cosign: {keys: [$KEYS/a.pub]}}"
  push signed:now first
  attach b signed:now
  attach a signed:now
  is "an image with a signature by the right key among others is published" "$(polled)" "published 10"
  is "ls names the signer" "$(verified_by)" "cosign $(key_id "$KEYS/a.pub")"
  unsign signed:now
}

# cosign must accept what openssl signed, and only cosign makes bundles. Fixtures that cosign made are in shared/core/trust; the
# unit tests there read them in each run.
with_cosign() {
  local image
  need_cosign
  mkdir -p "$DOCKER_CONFIG"
  cp "$AUTH_FILE" "$DOCKER_CONFIG/config.json"
  image=$REGISTRY/signed@$(digest_of signed:now)
  attach a signed:now
  succeeds "cosign takes what openssl signed" cosign_takes a "$image"
  is "and not by another key" "$(cosign_takes b "$image" >/dev/null 2>&1 || echo refused)" refused
  unsign signed:now
  (cd "$KEYS" && cosign import-key-pair --yes --key a.pem --output-key-prefix cosign-a >/dev/null 2>&1)
  rm -rf "$STORE"
  succeeds "cosign signs" cosign sign --yes --key "$KEYS/cosign-a.key" --tlog-upload=false "$image"
  is "which is published" "$(polled)" "published 10"
  is "as what it is" "$(verified_by)" "cosign $(key_id "$KEYS/a.pub")"
  unsign signed:now
  succeeds "cosign signs a bundle" cosign sign --yes --key "$KEYS/cosign-a.key" --tlog-upload=false --new-bundle-format "$image"
  is "which is published too" "$(polled --force)" "sourceDigestUpdated 0"
  is "as what that is" "$(verified_by)" "sigstore-bundle $(key_id "$KEYS/a.pub")"
}

cosign_takes() { cosign verify --key "$KEYS/$1.pub" --insecure-ignore-tlog=true "$2"; }

with_simple_signing() {
  rm -rf "$STORE"
  echo '{"default": [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "'"$KEYS/mine.gpg"'"}]}' >"$WORK/policy.json"
  configure "{policy: $WORK/policy.json, lookaside: '$LOOKASIDE'}"
  push_signed mine "oci:$IMAGES:mine" signed:now
  is "one that skopeo signed with gpg is published" "$(polled)" "published 10"
  is "ls names the signer" "$(verified_by)" "openpgp $(gpg_fingerprint mine)"
}

with_signed_publications() {
  rm -rf "$STORE"
  configure "insecureAcceptAnything"
  succeeds "a key is made" "$CATALOG_MIRROR" keygen "$KEYS/mirror"
  succeeds "which openssl reads" openssl pkey -in "$KEYS/mirror" -noout
  is "the public key is that of the private one" "$(openssl pkey -in "$KEYS/mirror" -pubout)" "$(cat "$KEYS/mirror.pub")"
  is "a poll signs" "$(polled --signing-key "$KEYS/mirror")" "published 10"
  is "by that key" "$(jq -r '.signatures[0].keyid' "$STORE/catalogs/signed/current.json")" "$(key_id "$KEYS/mirror.pub")"
  succeeds "openssl verifies what is signed" openssl_verifies
  openssl genpkey -algorithm ed25519 -out "$KEYS/another" && openssl pkey -in "$KEYS/another" -pubout -out "$KEYS/another.pub"
  is "openssl's key signs too" "$(polled --signing-key "$KEYS/mirror" --signing-key "$KEYS/another")" "sourceDigestUpdated 0"
  serve "$STORE"
  is "and a copy is made with it" "$(code_of "$CATALOG_MIRROR" sync "$URL" "$WORK/copied" --detailed-exitcode --verify-key "$KEYS/another.pub")" 10
}

# openssl_verifies: the message that is signed, as the README of trust describes it, put together by jq.
openssl_verifies() {
  local type=application/vnd.catalog-mirror.current.v1+json current=$STORE/catalogs/signed/current.json body
  body=$(jq -cjS '{catalog: "signed", current: del(.signatures)}' "$current")
  printf 'DSSEv1 %s %s %s %s' "${#type}" "$type" "$(printf %s "$body" | wc -c)" "$body" >"$WORK/message"
  jq -r '.signatures[0].sig' "$current" | base64 -d >"$WORK/message.sig"
  openssl pkeyutl -verify -rawin -pubin -inkey "$KEYS/mirror.pub" -in "$WORK/message" -sigfile "$WORK/message.sig"
}

make_keys
make_images
with_cosigns_form
if [[ -n ${WITH_COSIGN:-} ]]; then with_cosign; fi
with_simple_signing
with_signed_publications
gpgconf --kill all
