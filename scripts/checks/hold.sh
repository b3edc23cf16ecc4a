# What looks like an accident is held back, and updates are not: accidents, releases and renderings made of real catalogs, and the
# real updates. Rings serve the state that they have to the clients of clusters, and their steps write documents only.
# shellcheck shell=bash

DATA=$(data_folder)
UPDATES=200
if $SHORT; then UPDATES=10; fi

# The rules are about real catalogs: the generated series has too few packages for them.
if [[ -n $DATA ]]; then
  unpack "$DATA/community-v4.14.tar.zst" "$WORK/other"
  python3 -B "$LIB/accidents.py" "$CATALOG_MIRROR" "$SERIES" "$(configs_folder "$WORK/other")" "$WORK/mirror" "$UPDATES" | relay ""
  is "accidents.py runs to its end" "${PIPESTATUS[0]}" 0
fi

# One held revision from its first poll to its end.
packages() {
  local name
  rm -rf "$WORK/source"
  for name in a b c d e f; do
    mkdir -p "$WORK/source/$name"
    cat >"$WORK/source/$name/catalog.yaml" <<YAML
schema: olm.package
name: $name
defaultChannel: $1
---
schema: olm.channel
package: $name
name: $1
entries: [{name: $name.v1}]
---
schema: olm.bundle
package: $name
name: $name.v1
image: registry.example/$name:v1
properties: [{type: olm.package, value: {packageName: $name, version: 1.0.0}}]
YAML
  done
}
poll() { outcome "$WORK/store" "c=dir:$WORK/source"; }

DATE='[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}'
packages stable
is "the first content is published" "$(poll)" "published 10"
packages fast
is "content that looks like an accident is refused" "$(poll)" "refused 1"
matches "ls tells since when and until when it is held" "$("$CATALOG_MIRROR" ls --store "$WORK/store")" "c: new content is held back since $DATE until $DATE"
matches "and the reasons" "$("$CATALOG_MIRROR" ls --store "$WORK/store")" "the channels of 6 of 6 packages change at once \(many-channels\): a: the channel stable is gone"
fails "diff --held asks for the folder, of which the store knows the last part" "dir:source: name the file" "$CATALOG_MIRROR" diff --held c --store "$WORK/store"
matches "and shows all of it" "$("$CATALOG_MIRROR" diff --held c "dir:$WORK/source" --store "$WORK/store")" "f +channel .*fast"
succeeds "release lets it through" "$CATALOG_MIRROR" release c --store "$WORK/store"
is "what was released is published" "$(poll)" "published 10"
fails "nothing is held any more" "nothing of c is held back" "$CATALOG_MIRROR" release c --store "$WORK/store"
packages stable
is "it is held once more" "$(poll)" "refused 1"
is "a forced poll publishes it" "$(outcome "$WORK/store" "c=dir:$WORK/source" --force)" "published 10"

# Two rings of one catalog: `test` follows at once, `prod` by hand.
RINGS=$WORK/rings
cat >"$WORK/rings.yaml" <<YAML
catalogs:
- {name: dev, source: "dir:$WORK/source", hold: off}
- {name: test, ring: {of: dev, after: 1s}}
- {name: prod, ring: {of: dev, manual: true}}
YAML
rings() { "$CATALOG_MIRROR" "$1" --store "$RINGS" --config "$WORK/rings.yaml" "${@:2}"; }

# follow: polls `test` until it has the state of `dev`.
follow() { wait_for 20 follows; }
follows() {
  rings poll test >/dev/null 2>&1
  [[ $(content_hash "$RINGS" test) == "$(content_hash "$RINGS" dev)" && $(current "$RINGS" test | jq .source.ring.isPlaceholder) == null ]]
}

# with_olm KIND PLACE: number and hash of the files that the code of OLM v1 reads: `image` as catalogd, `http` as operator-controller.
with_olm() {
  olm-clients "$1" "$2" "$(mktemp -u "$WORK/read-XXXXXX")" 2>/dev/null
}

# channel_of RING: the default channel of a package, by a client of OLM v0.
channel_of() { ask_grpc api.Registry/GetPackage '{"name": "a"}' -authority "$1.mirror.example" | jq -r .defaultChannelName; }

publish_rings() {
  packages stable
  rings poll >/dev/null 2>&1
  follow
  rings promote prod >/dev/null
  serve "$RINGS"
  FIRST_IMAGE=$(with_olm image "$HOST/dev:latest") FIRST_HTTP=$(with_olm http "$URL/catalogs/dev")
  end_process "$SERVER_PID"
  packages fast
  rings poll dev prod >/dev/null 2>&1
}

# A step of a ring: its documents are all that is written.
step() {
  local before keys
  # Older than its delay, so that the next poll moves the ring.
  sleep 2
  before=$(listing "$RINGS")
  succeeds "a ring takes a step" rings poll test
  keys=$(written "$before" "$(listing "$RINGS")")
  # The status too, if more of it differs than times.
  is "which writes its documents alone" "$(grep -vE '^catalogs/test/(current|status)\.json$' <<<"$keys")" ""
  is "and its pointer" "$(grep -c current.json <<<"$keys")" 1
  say "a step of a ring writes $(cd "$RINGS" && xargs cat <<<"$keys" | wc -c) bytes in $(wc -l <<<"$keys") documents"
}

clients_read_rings() {
  local newest
  serve_grpc "$RINGS"
  newest=$(with_olm image "$HOST/dev:latest")
  matches "the code of OLM v1 reads a catalog" "$newest $FIRST_IMAGE $FIRST_HTTP" '^([0-9]+ [0-9a-f]{64} ?){3}$'
  is "the puller of catalogd reads the image of a ring that has moved" "$(with_olm image "$HOST/test:latest")" "$newest"
  is "and the one of a ring that stays" "$(with_olm image "$HOST/prod:latest")" "$FIRST_IMAGE"
  is "which are two states" "$([[ $newest != "$FIRST_IMAGE" ]] && echo true)" true
  is "operator-controller reads a ring that has moved" "$(with_olm http "$URL/catalogs/test")" "$(with_olm http "$URL/catalogs/dev")"
  is "and one that stays" "$(with_olm http "$URL/catalogs/prod")" "$FIRST_HTTP"
  is "a client of the registry API is answered by each ring" "$(channel_of dev) $(channel_of test) $(channel_of prod)" "fast fast stable"
  succeeds "sync copies the rings" "$CATALOG_MIRROR" sync "$URL" "$WORK/copy"
  for ring in test prod; do
    is "byte for byte: $ring" "$(current "$WORK/copy" "$ring" | sha256)" "$(current "$RINGS" "$ring" | sha256)"
  done
  succeeds "and the copy is whole" "$CATALOG_MIRROR" verify --store "$WORK/copy"
  end_process "$SERVER_PID"
}

# channel_in_cluster: the default channel of a package, as catalogd serves it.
channel_in_cluster() {
  curl -sS --cacert "$REGISTRY_CA" "https://127.0.0.1:$CONTROLLER_API/catalogs/prod/api/v1/all" |
    jq -r 'select(.schema == "olm.package" and .name == "a").defaultChannel'
}

# catalogd itself follows the image of a ring.
stock_catalogd() {
  local tls
  tls=$(dirname "$REGISTRY_CA")
  prepare_service
  SCHEME=https serve "$RINGS" --tls-cert "$tls/tls.crt" --tls-key "$tls/tls.key"
  run_catalogd catalogd
  clustercatalog prod "$HOST/prod:latest" 'pollIntervalMinutes: 1' | kubectl apply -f - >/dev/null
  succeeds "catalogd serves the image of a ring" kubectl wait --for condition=Serving clustercatalog/prod --timeout 60s
  is "in the state of the ring" "$(channel_in_cluster)" stable
  rings promote prod >/dev/null
  succeeds "it takes the next state within its interval" wait_for 100 has_resolved prod "$HOST/prod@$(image_of prod)"
  is "and serves it" "$(wait_for 10 is_fast && channel_in_cluster)" fast
}
image_of() { rings ls --json | jq -r --arg name "$1" '.[] | select(.name == $name).image'; }
is_fast() { [[ $(channel_in_cluster) == fast ]]; }

need_olm_clients
need_grpcurl
publish_rings
step
clients_read_rings
$SHORT || stock_catalogd
