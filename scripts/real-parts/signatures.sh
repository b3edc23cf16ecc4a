# What the people's own tools sign is published and nothing else, and what is published is signed: cosign and skopeo sign,
# a registry without referrers keeps the signatures, openssl reads the keys.
# shellcheck shell=bash

COSIGN=github.com/sigstore/cosign/v2/cmd/cosign@v2.6.1
MANIFESTS=application/vnd.oci.image.manifest.v1+json,application/vnd.oci.image.index.v1+json
STORE=$WORK/store
KEYS=$WORK/keys
export COSIGN_PASSWORD=
# cosign looks for credentials and certificates only where the environment says.
export DOCKER_CONFIG=$WORK/docker SSL_CERT_FILE=$REGISTRY_CA

# push TAG STEP: an image of the series.
push() { copy_image "oci:$LAYOUT:$2" "docker://$REGISTRY/signed:$1"; }

# digest_of TAG
digest_of() { registry_curl -sI -H "Accept: $MANIFESTS" "https://$REGISTRY/v2/signed/manifests/$1" |
  tr -d '\r' | sed -n 's/^[Dd]ocker-[Cc]ontent-[Dd]igest: //p'; }

# sign KEY TAG [OPTION...]
sign() {
  cosign sign --yes --key "$KEYS/$1.key" --tlog-upload=false "${@:3}" "$REGISTRY/signed@$(digest_of "$2")" >/dev/null 2>&1
}

# unsign TAG: takes what cosign attached away.
unsign() {
  local digest tag
  for tag in "$(digest_of "$1" | tr : -)"{.sig,}; do
    digest=$(digest_of "$tag")
    [[ -z $digest ]] || registry_curl -X DELETE "https://$REGISTRY/v2/signed/manifests/$digest"
  done
}

# configure SIGNATURE: a catalog of the tag `now` whose signatures have to be so.
configure() {
  cat >"$WORK/catalogs.yaml" <<YAML
store: $STORE
registries: {authFiles: [$AUTH_FILE], caFiles: [$REGISTRY_CA]}
catalogs:
  - name: signed
    source: $REGISTRY/signed:now
    signature: $1
YAML
}

# polled [OPTION...]: how a poll ends, as `outcome` tells it.
polled() {
  local told code=0
  told=$("$CATALOG_MIRROR" poll --config "$WORK/catalogs.yaml" --json "$@" 2>"$WORK/poll.log") || code=$?
  echo "$(jq -r '.[0].outcome' <<<"$told" 2>/dev/null) $code"
}

# why: what status.json says.
why() { jq -r '.error // ""' "$STORE/catalogs/signed/status.json"; }

# verified_by: what ls tells.
verified_by() { "$CATALOG_MIRROR" ls --json --store "$STORE" | jq -r '.[0].current.source.verified.by[]? | "\(.method) \(.key)"'; }

# key_id PUBLIC: the sha256 of the key in DER, as another program computes it.
key_id() { openssl pkey -pubin -in "$1" -outform DER | sha256sum | cut -d' ' -f1; }

keys() {
  local name
  mkdir -p "$KEYS" "$DOCKER_CONFIG"
  cp "$AUTH_FILE" "$DOCKER_CONFIG/config.json"
  for name in a b; do (cd "$KEYS" && cosign generate-key-pair --output-key-prefix "$name" >/dev/null 2>&1); done
}

with_cosign() {
  configure "{cosign: {keys: [$KEYS/a.pub]}}"
  push now step-000
  is "an image without signatures is refused" "$(polled)" "refused 1"
  matches "and status.json says why" "$(why)" "has no cosign signature"
  is "nothing is published of it" "$(find "$STORE" -path '*current.json')" ""
  sign b now
  is "one by another key is refused" "$(polled)" "refused 1"
  matches "and it says so" "$(why)" "not made by one of the policy's keys"
  sign a now
  is "one by the right key among others is published" "$(polled)" "published 10"
  is "ls tells by whom" "$(verified_by)" "cosign $(key_id "$KEYS/a.pub")"
  is "the next poll has nothing to do" "$(polled)" "unchanged 0"
}

with_updates() {
  local before
  before=$(content_hash "$STORE" signed)
  push now "$LAST_TAG"
  is "an update without signatures is refused" "$(polled)" "refused 1"
  is "and the old state stays" "$(content_hash "$STORE" signed)" "$before"
  sign a now --new-bundle-format
  is "a Sigstore bundle is as good" "$(polled)" "published 10"
  is "and ls tells so" "$(verified_by)" "sigstore-bundle $(key_id "$KEYS/a.pub")"
  configure "{cosign: {keys: [$KEYS/b.pub]}}"
  is "another key: what is published is verified again" "$(polled)" "refused 1"
  configure "{cosign: {keys: [$KEYS/b.pub, $KEYS/a.pub]}}"
  is "both keys while they are replaced" "$(polled)" "retagged 0"
  unsign now
  is "what was verified is not asked for again" "$(polled)" "unchanged 0"
  is "unless it is forced" "$(polled --force)" "refused 1"
}

with_a_policy() {
  cat >"$WORK/policy.json" <<JSON
{"default": [{"type": "reject"}],
 "transports": {"docker": {"$REGISTRY/signed": [
   {"type": "sigstoreSigned", "keyPath": "$KEYS/a.pub", "signedIdentity": {"type": "matchRepository"}}]}}}
JSON
  configure "{policy: $WORK/policy.json}"
  is "a policy.json refuses what is not signed" "$(polled --force)" "refused 1"
  sign a now
  is "and takes what is" "$(polled)" "retagged 0"
  sed -i 's,/signed",/other",' "$WORK/policy.json"
  is "the default of the policy holds elsewhere" "$(polled)" "refused 1"
  matches "and it says so" "$(why)" "rejects every image"
}

# Simple signing: an OpenPGP key signs as skopeo copies, into a lookaside that a file server hands out.
with_simple_signing() {
  local lookaside=$WORK/lookaside
  export GNUPGHOME=$WORK/gnupg
  mkdir -m 700 "$GNUPGHOME"
  gpg --batch --quiet --passphrase '' --quick-generate-key mirror@example.com rsa3072 sign never 2>/dev/null
  gpg --export mirror@example.com >"$KEYS/gpg.pub"
  mkdir -p "$WORK/simple.d"
  echo "docker: {$REGISTRY: {lookaside: 'file://$lookaside', lookaside-staging: 'file://$lookaside'}}" >"$WORK/simple.d/here.yaml"
  cat >"$WORK/policy.json" <<JSON
{"default": [{"type": "reject"}],
 "transports": {"docker": {"": [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "$KEYS/gpg.pub"}]}}}
JSON
  configure "{policy: $WORK/policy.json, lookaside: 'file://$lookaside'}"
  push now step-000
  is "an image without a simple signature is refused" "$(polled)" "refused 1"
  matches "and status.json says why" "$(why)" "has no simple .OpenPGP. signature"
  copy_image "oci:$LAYOUT:step-000" "docker://$REGISTRY/signed:now" --registries.d "$WORK/simple.d" --sign-by mirror@example.com
  is "one that skopeo signed is published" "$(polled)" "published 10"
  is "ls tells by whom" "$(verified_by)" \
    "openpgp $(gpg --with-colons --list-keys | awk -F: '/^fpr/ {print tolower($10); exit}')"
  copy_image "oci:$LAYOUT:$LAST_TAG" "docker://$REGISTRY/signed:other" --registries.d "$WORK/simple.d" --sign-by mirror@example.com
  push now "$LAST_TAG"
  is "a signature under another tag is refused" "$(polled)" "refused 1"
  matches "and it says so" "$(why)" "which the policy does not accept"
  gpgconf --kill all
}

with_signed_publications() {
  local copy=$WORK/copy-of-store
  configure "insecureAcceptAnything"
  succeeds "a key is made" "$CATALOG_MIRROR" keygen "$KEYS/mirror"
  is "its owner's alone" "$(stat -c %a "$KEYS/mirror")" 600
  succeeds "which openssl reads" openssl pkey -in "$KEYS/mirror" -noout
  is "the public key is that of the private one" "$(openssl pkey -in "$KEYS/mirror" -pubout)" "$(cat "$KEYS/mirror.pub")"
  is "a poll signs" "$(polled --signing-key "$KEYS/mirror")" "published 10"
  is "by that key" "$(jq -r '.signatures[0].keyid' "$STORE/catalogs/signed/current.json")" "$(key_id "$KEYS/mirror.pub")"
  succeeds "openssl verifies what is signed" openssl_verifies
  serve "$STORE"
  is "a copy of it is made with the key" "$(synced "$copy" "$KEYS/mirror.pub")" 10
  openssl genpkey -algorithm ed25519 -out "$KEYS/other" && openssl pkey -in "$KEYS/other" -pubout -out "$KEYS/other.pub"
  is "and refused with another" "$(synced "$WORK/none" "$KEYS/other.pub")" 1
  is "which leaves nothing" "$(find "$WORK/none" -path '*current.json' 2>/dev/null)" ""
  is "openssl's key signs too" "$(polled --signing-key "$KEYS/mirror" --signing-key "$KEYS/other")" "retagged 0"
  is "and then it is taken" "$(synced "$WORK/none" "$KEYS/other.pub")" 10
}

# synced STORE KEY: the exit code of a sync that verifies.
synced() {
  local code=0
  "$CATALOG_MIRROR" sync "$URL" "$1" --verify-key "$2" >/dev/null 2>&1 || code=$?
  echo "$code"
}

# openssl_verifies: what the README of the room says is signed, put together by jq.
openssl_verifies() {
  local type=application/vnd.catalog-mirror.current.v1+json current=$STORE/catalogs/signed/current.json body
  body=$(jq -cjS '{catalog: "signed", current: del(.signatures)}' "$current")
  printf 'DSSEv1 %s %s %s %s' "${#type}" "$type" "$(printf %s "$body" | wc -c)" "$body" >"$WORK/message"
  jq -r '.signatures[0].sig' "$current" | base64 -d >"$WORK/message.sig"
  openssl pkeyutl -verify -rawin -pubin -inkey "$KEYS/mirror.pub" -in "$WORK/message" -sigfile "$WORK/message.sig"
}

need_debian gpg=gpg gpg-agent=gpg-agent
need_go cosign "$COSIGN"
keys
with_cosign
with_updates
with_a_policy
with_simple_signing
with_signed_publications
