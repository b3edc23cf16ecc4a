# What the people's own tools sign is published and nothing else, as they judge it themselves, and what is published is
# signed: openssl signs as cosign does, skopeo with gpg, a registry without referrers and a file server keep the signatures.
# cosign itself takes eight minutes to compile: it signs and judges only where it is installed.
# shellcheck shell=bash

COSIGN=github.com/sigstore/cosign/v2/cmd/cosign@v2.6.1
STORE=$WORK/store
IMAGES=$WORK/images
# cosign looks for credentials and certificates only where the environment says.
export DOCKER_CONFIG=$WORK/docker SSL_CERT_FILE=$REGISTRY_CA COSIGN_PASSWORD=

# small NAME: an image of its own with a catalog of one package, the same in all of them.
small() { umoci config --image "$IMAGES:base" --tag "$1" --config.label "name=$1"; }

# push REPOSITORY:TAG IMAGE
push() { copy_image "oci:$IMAGES:$2" "docker://$REGISTRY/$1"; }

# unsign REPOSITORY:TAG: takes what cosign attached to an image away.
unsign() {
  local digest tag
  for tag in "$(digest_of "$1" | tr : -)"{.sig,}; do
    digest=$(digest_of "${1%:*}:$tag")
    [[ -z $digest ]] || registry_curl -X DELETE "https://$REGISTRY/v2/${1%:*}/manifests/$digest"
  done
}

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

make_keys() {
  local name
  start_signers
  for name in a b; do make_cosign_key "$name"; done
  make_gpg_key mine never
  make_gpg_key other never
  make_gpg_key old 2021-01-01 --faked-system-time 20200101T000000
}

make_images() {
  local name
  mkdir -p "$WORK/tiny/configs/p"
  echo '{"schema":"olm.package","name":"p"}' >"$WORK/tiny/configs/p/catalog.json"
  new_image "$IMAGES:base"
  add_layer "$IMAGES:base" "$WORK/tiny"
  for name in first second none a b both renamed foreign mine other both-gpg renamed-gpg foreign-gpg old sha1 all; do
    small "$name"
  done
}

with_cosigns_form() {
  configure "{cosign: {keys: [$KEYS/a.pub]}}"
  push signed:now first
  is "an image without signatures is refused" "$(polled)" "refused 1"
  matches "and status.json says why" "$(why)" "has no cosign signature"
  is "nothing is published of it" "$(find "$STORE" -path '*current.json')" ""
  attach b signed:now
  is "one by another key is refused" "$(polled)" "refused 1"
  matches "and it says so" "$(why)" "not made by one of the policy's keys"
  attach a signed:now
  is "one by the right key among others is published" "$(polled)" "published 10"
  is "ls tells by whom" "$(verified_by)" "cosign $(key_id "$KEYS/a.pub")"
  is "the next poll has nothing to do" "$(polled)" "unchanged 0"
}

with_updates() {
  local before
  before=$(jq .source "$STORE/catalogs/signed/current.json")
  push signed:now second
  is "an update without signatures is refused" "$(polled)" "refused 1"
  is "and the old state stays" "$(jq .source "$STORE/catalogs/signed/current.json")" "$before"
  attach a signed:now
  is "until it is signed: the content is the same" "$(polled)" "retagged 0"
  configure "{cosign: {keys: [$KEYS/b.pub]}}"
  is "another key: what is published is verified again" "$(polled)" "refused 1"
  configure "{cosign: {keys: [$KEYS/b.pub, $KEYS/a.pub]}}"
  is "both keys while they are replaced" "$(polled)" "retagged 0"
  unsign signed:now
  is "what was verified is not asked for again" "$(polled)" "unchanged 0"
  is "unless it is forced" "$(polled --force)" "refused 1"
}

# What was signed above has to be what cosign signs, and bundles are what only cosign makes. Without it there are the fixtures
# of shared/policy, which it made.
with_cosign() {
  local image
  if ! has_cosign; then
    say "NOT TRIED: Sigstore bundles, and cosign's own verdict, as there is no cosign: go install $COSIGN"
    return 0
  fi
  mkdir -p "$DOCKER_CONFIG"
  cp "$AUTH_FILE" "$DOCKER_CONFIG/config.json"
  image=$REGISTRY/signed@$(digest_of signed:now)
  attach a signed:now
  succeeds "cosign takes what openssl signed" cosign_takes a "$image"
  is "and not by another key" "$(cosign_takes b "$image" >/dev/null 2>&1 || echo refused)" refused
  unsign signed:now
  (cd "$KEYS" && cosign import-key-pair --yes --key a.pem --output-key-prefix cosign-a >/dev/null 2>&1)
  configure "{cosign: {keys: [$KEYS/a.pub]}}"
  succeeds "cosign signs" cosign sign --yes --key "$KEYS/cosign-a.key" --tlog-upload=false "$image"
  is "which is published" "$(polled --force)" "retagged 0"
  is "as what it is" "$(verified_by)" "cosign $(key_id "$KEYS/a.pub")"
  unsign signed:now
  succeeds "cosign signs a bundle" cosign sign --yes --key "$KEYS/cosign-a.key" --tlog-upload=false --new-bundle-format "$image"
  is "which is published too" "$(polled --force)" "retagged 0"
  is "as what that is" "$(verified_by)" "sigstore-bundle $(key_id "$KEYS/a.pub")"
}

# has_cosign: whether it was built here before; the path has it then.
has_cosign() {
  local programs=${XDG_CACHE_HOME:-$HOME/.cache}/catalog-mirror/go
  export PATH=$PATH:$programs
  command -v cosign >/dev/null
}

cosign_takes() { cosign verify --key "$KEYS/$1.pub" --insecure-ignore-tlog=true "$2"; }

with_simple_signing() {
  rm -rf "$STORE"
  echo '{"default": [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "'"$KEYS/mine.gpg"'"}]}' >"$WORK/policy.json"
  configure "{policy: $WORK/policy.json, lookaside: '$LOOKASIDE'}"
  push signed:now mine
  is "an image without a simple signature is refused" "$(polled)" "refused 1"
  matches "and status.json says why" "$(why)" "has no simple .OpenPGP. signature"
  push_signed mine "oci:$IMAGES:mine" signed:now
  is "one that skopeo signed with gpg is published" "$(polled)" "published 10"
  is "ls tells by whom" "$(verified_by)" "openpgp $(gpg_fingerprint mine)"
}

# push_judged: the images for the tables below, in the repository `judged`.
push_judged() {
  local name
  for name in none a b both renamed foreign; do push "judged:$name" "$name"; done
  push team/sub/judged:none none
  attach a judged:a
  attach b judged:b
  attach a judged:both
  attach b judged:both
  attach a judged:renamed judged:original
  attach a judged:foreign elsewhere:foreign
  push_judged_with_gpg
}

push_judged_with_gpg() {
  local name
  for name in mine both-gpg all; do push_signed mine "oci:$IMAGES:$name" "judged:$name"; done
  push_signed other "oci:$IMAGES:other" judged:other
  # From there to there, so that the first signature is kept.
  push_signed other "docker://$REGISTRY/judged:both-gpg" judged:both-gpg
  attach a judged:all
  push_signed mine "oci:$IMAGES:renamed-gpg" judged:original-gpg
  push judged:renamed-gpg renamed-gpg
  push_signed mine "oci:$IMAGES:foreign-gpg" elsewhere:foreign-gpg
  push judged:foreign-gpg foreign-gpg
  (cd "$WORK/lookaside" && cp -r "elsewhere@$(digest_of judged:foreign-gpg | tr : =)" "judged@$(digest_of judged:foreign-gpg | tr : =)")
  echo 'faked-system-time 20200601T000000' >"$GNUPGHOME/gpg.conf"
  push_signed old "oci:$IMAGES:old" judged:old
  echo 'digest-algo SHA1' >"$GNUPGHOME/gpg.conf"
  push_signed mine "oci:$IMAGES:sha1" judged:sha1
  rm "$GNUPGHOME/gpg.conf"
}

# A requirement of a policy.json.
sigstore() { echo '{"type": "sigstoreSigned", "keyPath": "'"$KEYS/$1.pub"'"'"${2:+, \"signedIdentity\": $2}"'}'; }
openpgp() { echo '{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "'"$KEYS/$1"'"'"${2:+, \"signedIdentity\": $2}"'}'; }
identity() { echo '{"type": "'"$1"'"'"${2:+, \"$2\": \"$3\"}${4:+, \"$4\": \"$5\"}"'}'; }

# we_say POLICY IMAGE: as skopeo_says.
we_say() {
  local how
  rm -rf "$STORE"
  configure "{policy: $1, lookaside: '$LOOKASIDE'}" "$2"
  how=$(polled)
  case $how in
    "published 10") echo accept ;;
    "refused 1") echo reject ;;
    *) if grep -q 'policy.json' "$WORK/poll.log"; then echo invalid; else echo "$how: $(cat "$WORK/poll.log")"; fi ;;
  esac
}

# verdict EXPECTED IMAGE REQUIREMENTS [NAME]: what both say of an image of $REGISTRY by a policy that asks for these.
verdict() { verdict_of "$1" "$2" '{"default": ['"$3"']}' "${4:-$3}"; }

# in_scope EXPECTED IMAGE SCOPE: nothing is accepted but that scope.
in_scope() {
  verdict_of "$1" "$2" '{"default": [{"type": "reject"}], "transports": {"docker":
    {"'"$3"'": [{"type": "insecureAcceptAnything"}]}}}' "the scope '${3/$REGISTRY/HOST}'"
}

# verdict_of EXPECTED IMAGE POLICY NAME
verdict_of() {
  local name=$4 skopeo
  echo "$3" >"$WORK/policy.json"
  name=${name//"$KEYS/"/}
  name=${name//"$REGISTRY"/HOST}
  skopeo=$(skopeo_says "$WORK/policy.json" "$REGISTRY/$2")
  [[ $skopeo != "cannot say" ]] || SKOPEO_SAYS_NOTHING=$((SKOPEO_SAYS_NOTHING + 1))
  is "$2, $name: $1" "$(we_say "$WORK/policy.json" "$REGISTRY/$2"), ${skopeo/cannot say/$1}" "$1, $1"
}

# How often there was only one verdict: Debian builds skopeo without sigstore.
SKOPEO_SAYS_NOTHING=0

judge_keys() {
  verdict accept judged:none '{"type": "insecureAcceptAnything"}'
  verdict reject judged:a '{"type": "reject"}'
  verdict reject judged:none "$(sigstore a)"
  verdict accept judged:a "$(sigstore a)"
  verdict reject judged:b "$(sigstore a)"
  verdict accept judged:both "$(sigstore a)"
  verdict accept judged:both "$(sigstore b)"
  verdict accept judged:both "$(sigstore a), $(sigstore b)"
  verdict reject judged:a "$(sigstore a), $(sigstore b)"
  verdict reject judged:a "$(sigstore a), {\"type\": \"reject\"}"
  verdict accept judged:a '{"type": "sigstoreSigned", "keyData": "'"$(base64 -w0 "$KEYS/a.pub")"'"}' "keyData"
}

# judge_identities REQUIREMENT KEY IMAGE RENAMED FOREIGN: who signed is right, and the name is this, another tag, another
# repository. Both kinds of signatures are compared in the same way.
judge_identities() {
  local by=("$1" "$2") image=judged:$3 renamed=judged:$4 foreign=judged:$5 kind
  for kind in matchExact matchRepoDigestOrExact matchRepository; do
    verdict accept "$image" "$("${by[@]}" "$(identity "$kind")")"
    verdict reject "$foreign" "$("${by[@]}" "$(identity "$kind")")"
  done
  verdict reject "$renamed" "$("${by[@]}")"
  verdict reject "$renamed" "$("${by[@]}" "$(identity matchExact)")"
  verdict accept "$renamed" "$("${by[@]}" "$(identity matchRepository)")"
  verdict accept "judged@$(digest_of "$renamed")" "$("${by[@]}")" "another tag, by digest, the default"
  verdict reject "judged@$(digest_of "$renamed")" "$("${by[@]}" "$(identity matchExact)")" "another tag, by digest, matchExact"
  verdict reject "judged@$(digest_of "$foreign")" "$("${by[@]}")" "another repository, by digest, the default"
  verdict accept "$foreign" "$("${by[@]}" "$(identity exactReference dockerReference "$REGISTRY/elsewhere:$5")")"
  verdict reject "$foreign" "$("${by[@]}" "$(identity exactReference dockerReference "$REGISTRY/elsewhere:other")")"
  verdict accept "$foreign" "$("${by[@]}" "$(identity exactRepository dockerRepository "$REGISTRY/elsewhere")")"
  verdict reject "$foreign" "$("${by[@]}" "$(identity exactRepository dockerRepository "$REGISTRY/judged")")"
  verdict accept "$image" "$("${by[@]}" "$(identity remapIdentity prefix example.com signedPrefix example.org)")"
  verdict reject "$foreign" "$("${by[@]}" "$(identity remapIdentity prefix "$REGISTRY/judge" signedPrefix "$REGISTRY/elsewher")")"
}

# A signature of another repository under the tag of this one: remapped to there it is right.
judge_remapped() {
  local remapped
  remapped=$(identity remapIdentity prefix "$REGISTRY/judged" signedPrefix "$REGISTRY/elsewhere")
  verdict accept judged:foreign "$(sigstore a "$remapped")"
  verdict accept judged:foreign-gpg "$(openpgp mine.gpg "$remapped")"
}

judge_scopes() {
  local scope
  for scope in "$REGISTRY/judged:none" "$REGISTRY/judged" "$REGISTRY" "*.0.0.1" "*.1" ""; do in_scope accept judged:none "$scope"; done
  for scope in "$REGISTRY/judged:a" "$REGISTRY/judge" "*.127.0.0.1" "*.0.0.2"; do in_scope reject judged:none "$scope"; done
  for scope in "$REGISTRY/team/sub" "$REGISTRY/team"; do in_scope accept team/sub/judged:none "$scope"; done
  in_scope reject team/sub/judged:none "$REGISTRY/sub"
  verdict_of reject judged:none '{"default": [{"type": "insecureAcceptAnything"}], "transports": {"docker": {"": [{"type":
    "insecureAcceptAnything"}], "'"$REGISTRY"'": ['"$(openpgp mine.gpg)"']}}}' "the most specific scope"
  verdict_of accept judged:none '{"default": [{"type": "insecureAcceptAnything"}], "transports": {"dir": {"": [{"type":
    "reject"}]}}}' "a scope of another transport"
}

judge_openpgp() {
  verdict reject judged:none "$(openpgp mine.gpg)"
  verdict accept judged:mine "$(openpgp mine.gpg)"
  verdict accept judged:mine "$(openpgp mine.asc)"
  verdict reject judged:other "$(openpgp mine.gpg)"
  verdict accept judged:both-gpg "$(openpgp mine.gpg)"
  verdict accept judged:both-gpg "$(openpgp other.gpg)"
  verdict accept judged:both-gpg "$(openpgp mine.gpg), $(openpgp other.gpg)"
  verdict reject judged:mine "$(openpgp mine.gpg), $(openpgp other.gpg)"
  verdict reject judged:old "$(openpgp old.gpg)"
  verdict reject judged:mine "$(sigstore a)"
  verdict reject judged:a "$(openpgp mine.gpg)"
  verdict accept judged:all "$(sigstore a), $(openpgp mine.gpg)"
  verdict accept judged:mine '{"type": "signedBy", "keyType": "GPGKeys", "keyData": "'"$(base64 -w0 "$KEYS/mine.gpg")"'"}' "keyData"
  echo '{"default": ['"$(openpgp mine.gpg)"']}' >"$WORK/policy.json"
  is "SHA-1 is refused, whatever skopeo says" "$(we_say "$WORK/policy.json" "$REGISTRY/judged:sha1")" reject
  matches "and it says so" "$(why)" "hash algorithm is not trusted"
}

# What is asked of an index: skopeo asks for the signature of the manifest that it takes of it, and so do we.
judge_indexes() {
  local name
  for name in a mine none; do put_index "index-$name" "$(digest_of "judged:$name")"; done
  verdict accept judged:index-a "$(sigstore a "$(identity matchRepository)")"
  verdict accept judged:index-mine "$(openpgp mine.gpg "$(identity matchRepository)")"
  verdict reject judged:index-none "$(sigstore a "$(identity matchRepository)")"
  verdict reject judged:index-none "$(openpgp mine.gpg "$(identity matchRepository)")"
  rm -rf "$STORE"
  configure "{cosign: {keys: [$KEYS/a.pub]}}" "$REGISTRY/judged:index-a"
  is "by cosign's rules the index itself has to be signed" "$(polled)" "refused 1"
  attach a judged:index-a
  is "and then it is published" "$(polled)" "published 10"
}

# put_index TAG DIGEST: an index that names this manifest for every platform that could be asked for.
put_index() {
  local size
  size=$(registry_curl -H "Accept: $MANIFEST" "https://$REGISTRY/v2/judged/manifests/$2" | wc -c)
  jq -nc --arg digest "$2" --argjson size "$size" --arg type "$MANIFEST" --arg index "$INDEX" '{schemaVersion: 2,
    mediaType: $index, manifests: [("amd64", "arm64") as $cpu | {mediaType: $type, digest: $digest, size: $size,
    platform: {os: "linux", architecture: $cpu}}]}' | put_manifest "$INDEX" judged "$1"
}

judge_mistakes() {
  local wrong
  for wrong in '' '{"type": "signedByBaseLayer"}' '{"type": "reject", "more": 1}' '{"type": "sigstoreSigned"}' \
    '{"type": "signedBy", "keyType": "GPGKeys"}' '{"type": "signedBy", "keyType": "none", "keyPath": "/none"}' \
    "$(sigstore a "$(identity matchAll)")" "$(sigstore a "$(identity exactReference)")" '{}' '1'; do
    verdict invalid judged:a "$wrong"
  done
}

with_signed_publications() {
  local copy=$WORK/copy-of-store
  rm -rf "$STORE"
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
  openssl genpkey -algorithm ed25519 -out "$KEYS/another" && openssl pkey -in "$KEYS/another" -pubout -out "$KEYS/another.pub"
  is "and refused with another" "$(synced "$WORK/empty" "$KEYS/another.pub")" 1
  is "which leaves nothing" "$(find "$WORK/empty" -path '*current.json' 2>/dev/null)" ""
  is "openssl's key signs too" "$(polled --signing-key "$KEYS/mirror" --signing-key "$KEYS/another")" "retagged 0"
  is "and then it is taken" "$(synced "$WORK/empty" "$KEYS/another.pub")" 10
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
make_keys
make_images
with_cosigns_form
with_updates
with_cosign
with_simple_signing
push_judged
judge_keys
judge_identities sigstore a a renamed foreign
judge_identities openpgp mine.gpg mine renamed-gpg foreign-gpg
judge_remapped
judge_scopes
judge_openpgp
judge_indexes
judge_mistakes
((SKOPEO_SAYS_NOTHING == 0)) || say "NOT TRIED: skopeo's verdict in $SKOPEO_SAYS_NOTHING rows, as this one is built without sigstore"
with_signed_publications
gpgconf --kill all
