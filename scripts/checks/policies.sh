# Of every kind of signature, name and scope: the mirror publishes exactly what skopeo would take by the same policy.json. Of
# signatures in cosign's form Debian's skopeo cannot say anything; names and scopes it compares in one way for all.
# shellcheck shell=bash

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

make_keys
make_images
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
gpgconf --kill all
