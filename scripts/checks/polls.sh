# What a poll costs when nothing has changed, what a rebuilt image changes, and what a poll says that fails.
# shellcheck shell=bash

# Its own registry: what is asked of it is counted.
start_registry
STORE=$WORK/store
REPOSITORY=ns/polls
SOURCE=$REGISTRY/$REPOSITORY:v1
mkdir -p "$STORE"

# requests: what was asked of the registry since the mark, each with its status.
requests() { tail -n "+$((SEEN + 1))" "$REGISTRY_LOG" | sed -n 's|.*"\([A-Z]* /v2/[^ ]*\) HTTP[^"]*" \([0-9]*\) .*|\1 \2|p'; }
mark() { SEEN=$(wc -l <"$REGISTRY_LOG"); }

# The tags of everything that readers see.
readers_see() {
  local path
  for path in catalogs/p/api/v1/all catalogs/p/content-hash "catalogs/p/packages/$PACKAGE"; do
    echo "$path $(field "$URL/$path" etag) $(field "$URL/$path" last-modified)"
  done
}

unchanged_poll() {
  local before
  before=$(listing "$STORE")
  mark
  is "a poll of the same digest is unchanged" "$(outcome "$STORE" "p=$SOURCE")" "unchanged 0"
  # The registry answers the first question of a process with a challenge; that is no answer.
  is "it asks the registry once, by HEAD" "$(requests | grep -v ' 401$')" "HEAD /v2/$REPOSITORY/manifests/v1 200"
  is "it writes nothing but its status" "$(written "$before" "$(listing "$STORE")")" catalogs/p/status.json
}

# The same files in a layer that is packed anew have another digest and the same content.
rebuilt_image() {
  local tree=$WORK/tree before old new
  umoci unpack --rootless --image "$LAYOUT:$LAST_TAG" "$WORK/bundle" >/dev/null 2>&1
  mkdir "$tree"
  cp -r "$WORK/bundle/rootfs/configs" "$tree"
  new_image "$WORK/rebuilt:latest"
  add_layer "$WORK/rebuilt:latest" "$tree"
  old=$(jq -r .source.revision "$STORE/catalogs/p/current.json")
  before=$(listing "$STORE")
  see=$(readers_see)
  copy_image "oci:$WORK/rebuilt:latest" "docker://$SOURCE"
  is "a rebuilt image with equal FBC updates the source digest only" "$(outcome "$STORE" "p=$SOURCE")" "sourceDigestUpdated 0"
  is "readers see the same ETags and Last-Modified" "$(readers_see)" "$see"
  same_lines "only the pointer and the status are written" \
    "$(written "$before" "$(listing "$STORE")")" "$(printf 'catalogs/p/%s\n' current.json status.json)"
  new=$(jq -r .source.revision "$STORE/catalogs/p/current.json")
  is "the pointer names the rebuilt image" "$new" \
    "$(skopeo inspect --authfile "$AUTH_FILE" --tls-verify=false --format '{{.Digest}}' "docker://$SOURCE")"
  [[ $new != "$old" ]] && ok "whose digest is another one" || not_ok "whose digest is another one" "$new"
}

# fails_well NAME REGEX POLL-ARGUMENT...: exit code 1, an error that names what it is about, and no password anywhere.
fails_well() {
  local name=$1 regex=$2 store=$WORK/failing output code=0
  shift 2
  rm -rf "$store"
  output=$("$CATALOG_MIRROR" -v poll --json --store "$store" "$@" 2>&1) || code=$?
  is "$name: exit code" "$code" 1
  matches "$name: the error names the registry and the repository" "$output" "$REGISTRY.*$REPOSITORY|$REPOSITORY.*$REGISTRY"
  matches "$name: the error says what to do" "$output" "$regex"
  is "$name: status.json has the same outcome" "$(jq -r .outcome "$store/catalogs/p/status.json")" failed
  matches "$name: with the error" "$(jq -r .error "$store/catalogs/p/status.json")" "$regex"
  if grep -rq "$REGISTRY_PASSWORD\|$(base64 <<<"$REGISTRY_USER:$REGISTRY_PASSWORD" | cut -c1-30)" "$store" <(echo "$output"); then
    not_ok "$name: the password appears nowhere"
  else
    ok "$name: the password appears nowhere"
  fi
}

failing_polls() {
  local wrong=$WORK/wrong.json trust=(--ca-file "$REGISTRY_CA")
  jq -n --arg host "$REGISTRY" --arg auth "$(printf '%s:%s' "$REGISTRY_USER" "wrong-$REGISTRY_PASSWORD" | base64 -w0)" \
    '{auths: {($host): {auth: $auth}}}' >"$wrong"
  fails_well "a wrong password" 'credentials' "--catalog=p=$SOURCE" --auth-file "$wrong" "${trust[@]}"
  fails_well "an unknown authority" '--ca-file|CA|certificat' "--catalog=p=$SOURCE" --auth-file "$AUTH_FILE"
  fails_well "an unknown tag" 'tag|reference|check' "--catalog=p=$REGISTRY/$REPOSITORY:no-such-tag" --auth-file "$AUTH_FILE" "${trust[@]}"
}

copy_image "oci:$LAYOUT:$LAST_TAG" "docker://$SOURCE"
is "a new image is published" "$(outcome "$STORE" "p=$SOURCE")" "published 10"
serve "$STORE"
PACKAGE=$(shards "$STORE" p | head -1 | cut -d' ' -f1)
unchanged_poll
rebuilt_image
failing_polls
