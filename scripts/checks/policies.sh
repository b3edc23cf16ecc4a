# Of every kind of name, scope and OpenPGP signature: the mirror publishes exactly what skopeo would take by the same policy.json.
# Debian's skopeo is built without sigstore. The tests of shared/core/trust and tests/e2e/verified.rs have the policies for signatures in
# cosign's form, whose names are compared in the same way.
# shellcheck shell=bash

# push_judged: the images for the tables below, in the repository `judged`.
push_judged() {
  local name lookaside=$WORK/lookaside
  push judged:none none
  push team/sub/judged:none none
  for name in mine both-gpg; do push_signed mine "oci:$IMAGES:$name" "judged:$name"; done
  push_signed other "oci:$IMAGES:other" judged:other
  # From there to there, so that the first signature is kept.
  push_signed other "docker://$REGISTRY/judged:both-gpg" judged:both-gpg
  push_signed mine "oci:$IMAGES:renamed-gpg" judged:original-gpg
  push judged:renamed-gpg renamed-gpg
  push_signed mine "oci:$IMAGES:foreign-gpg" elsewhere:foreign-gpg
  push judged:foreign-gpg foreign-gpg
  name=$(digest_of judged:foreign-gpg | tr : =)
  cp -r "$lookaside/elsewhere@$name" "$lookaside/judged@$name"
  echo 'faked-system-time 20200601T000000' >"$GNUPGHOME/gpg.conf"
  push_signed old "oci:$IMAGES:old" judged:old
  echo 'digest-algo SHA1' >"$GNUPGHOME/gpg.conf"
  push_signed mine "oci:$IMAGES:sha1" judged:sha1
  rm "$GNUPGHOME/gpg.conf"
}

# A requirement of a policy.json.
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
    *) if grep -q 'policy.json' "$WORK/poll.err"; then echo invalid; else echo "$how: $(cat "$WORK/poll.err")"; fi ;;
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
  local name=$4
  echo "$3" >"$WORK/policy.json"
  name=${name//"$KEYS/"/}
  name=${name//"$REGISTRY"/HOST}
  is "$2, $name: $1" "$(we_say "$WORK/policy.json" "$REGISTRY/$2"), $(skopeo_says "$WORK/policy.json" "$REGISTRY/$2")" "$1, $1"
}

# by_mine TYPE [FIELD VALUE]...: the key is that of `mine`, the name is compared by this rule.
by_mine() { openpgp mine.gpg "$(identity "$@")"; }

# Who signed is right, and the name is this, another tag, another repository.
judge_identities() {
  local image=judged:mine renamed=judged:renamed-gpg foreign=judged:foreign-gpg kind
  for kind in matchExact matchRepoDigestOrExact matchRepository; do
    verdict accept "$image" "$(by_mine "$kind")"
    verdict reject "$foreign" "$(by_mine "$kind")"
  done
  verdict reject "$renamed" "$(openpgp mine.gpg)"
  verdict reject "$renamed" "$(by_mine matchExact)"
  verdict accept "$renamed" "$(by_mine matchRepository)"
  verdict accept "judged@$(digest_of "$renamed")" "$(openpgp mine.gpg)" "another tag, by digest, the default"
  verdict reject "judged@$(digest_of "$renamed")" "$(by_mine matchExact)" "another tag, by digest, matchExact"
  verdict reject "judged@$(digest_of "$foreign")" "$(openpgp mine.gpg)" "another repository, by digest, the default"
  verdict accept "$foreign" "$(by_mine exactReference dockerReference "$REGISTRY/elsewhere:foreign-gpg")"
  verdict reject "$foreign" "$(by_mine exactReference dockerReference "$REGISTRY/elsewhere:other")"
  verdict accept "$foreign" "$(by_mine exactRepository dockerRepository "$REGISTRY/elsewhere")"
  verdict reject "$foreign" "$(by_mine exactRepository dockerRepository "$REGISTRY/judged")"
  verdict accept "$image" "$(by_mine remapIdentity prefix example.com signedPrefix example.org)"
  verdict reject "$foreign" "$(by_mine remapIdentity prefix "$REGISTRY/judge" signedPrefix "$REGISTRY/elsewher")"
  # Remapped to the repository that it was signed for, it is right.
  verdict accept "$foreign" "$(by_mine remapIdentity prefix "$REGISTRY/judged" signedPrefix "$REGISTRY/elsewhere")"
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
  verdict accept judged:none '{"type": "insecureAcceptAnything"}'
  verdict reject judged:none '{"type": "reject"}'
  verdict reject judged:mine "$(openpgp mine.gpg), {\"type\": \"reject\"}"
  verdict reject judged:none "$(openpgp mine.gpg)"
  verdict accept judged:mine "$(openpgp mine.gpg)"
  verdict accept judged:mine "$(openpgp mine.asc)"
  verdict reject judged:other "$(openpgp mine.gpg)"
  verdict accept judged:both-gpg "$(openpgp mine.gpg)"
  verdict accept judged:both-gpg "$(openpgp other.gpg)"
  verdict accept judged:both-gpg "$(openpgp mine.gpg), $(openpgp other.gpg)"
  verdict reject judged:mine "$(openpgp mine.gpg), $(openpgp other.gpg)"
  verdict reject judged:old "$(openpgp old.gpg)"
  verdict accept judged:mine '{"type": "signedBy", "keyType": "GPGKeys", "keyData": "'"$(base64 -w0 "$KEYS/mine.gpg")"'"}' "keyData"
  echo '{"default": ['"$(openpgp mine.gpg)"']}' >"$WORK/policy.json"
  is "SHA-1 is refused, whatever skopeo says" "$(we_say "$WORK/policy.json" "$REGISTRY/judged:sha1")" reject
  matches "and it says so" "$(why)" "hash algorithm is not trusted"
}

# What is asked of an index: skopeo asks for the signature of the manifest that it takes of it, and so do we.
judge_indexes() {
  local name digest
  for name in mine none; do
    digest=$(digest_of "judged:$name")
    # For every platform that could be asked for.
    push_index judged "index-$name" "$digest" "$digest" >/dev/null
  done
  verdict accept judged:index-mine "$(by_mine matchRepository)"
  verdict reject judged:index-none "$(by_mine matchRepository)"
}

judge_mistakes() {
  local wrong
  for wrong in '' '{"type": "signedByBaseLayer"}' '{"type": "reject", "more": 1}' '{"type": "sigstoreSigned"}' \
    '{"type": "signedBy", "keyType": "GPGKeys"}' '{"type": "signedBy", "keyType": "none", "keyPath": "/none"}' \
    "$(by_mine matchAll)" "$(by_mine exactReference)" '{}' '1'; do
    verdict invalid judged:mine "$wrong"
  done
}

make_keys
make_images
push_judged
judge_openpgp
judge_identities
judge_scopes
judge_indexes
judge_mistakes
gpgconf --kill all
