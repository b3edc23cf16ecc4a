# Each S3 server that the registries have: the conditions of writes as curl sees them, whether the program takes it as a store, the conformance
# suite, publishers that race, copies, collection, and a static tree. The table in "Stores in S3" of the local server's page is compared
# with what comes out. A long check, because building the servers takes half an hour. S3_SERVERS in the environment names some of them.
# shellcheck shell=bash

# table: `server|version|conditions|store|tree`, a line for each server that was tried.
table() {
  sed -n '/^## Stores in S3/,/^## Copies/s/^| \([^|]*\) | \([^|]*\) | \([^|]*\) | \([^|]*\) | \([^|]*\) |$/\1|\2|\3|\4|\5/p' "$ROOT/functions/catalog-mirror/README.md" |
    grep -v '^Server|\|documented'
}

# Options of the suite for servers that let writers wait, or refuse early.
declare -A WAITING=([minio]=waiting [versitygw]='waiting early')

version_of() {
  case $1 in
    moto) "$VENV/bin/python" -c 'import moto; print(moto.__version__)' ;;
    minio) sed 's/.*-\(....\)\(..\)\(..\)......-.*/\1-\2-\3/' <<<"$MINIO" ;;
    seaweedfs) weed version | sed -n 's/^version [^ ]* \([0-9.]*\) .*/\1/p' ;;
    versitygw) echo "${VERSITYGW##*@v}" ;;
    rclone) echo "${RCLONE##*@v}" ;;
    ceph) radosgw --version | cut -d' ' -f3 ;;
    garage) echo "${GARAGE##*@}" ;;
    s3proxy) cut -d: -f3 <<<"$S3PROXY" ;;
    s3rver) echo "${S3RVER##*@}" ;;
  esac
}

# run_SERVER: as lib/s3.sh has it for moto and MinIO.
run_seaweedfs() {
  need_go weed "$SEAWEEDFS"
  jq -n --arg key "$S3_KEY" --arg secret "$S3_SECRET" '{identities: [{name: "mirror", actions: ["Admin"],
    credentials: [{accessKey: $key, secretKey: $secret}]}]}' >"$HOME_OF/s3.json"
  start "$HOME_OF/log" weed -logdir "$HOME_OF" server -dir "$HOME_OF/data" -ip 127.0.0.1 -ip.bind 127.0.0.1 -master.port "$(free_port)" -volume.port "$(free_port)" \
    -filer -filer.port "$(free_port)" -s3 -s3.port "$PORT" -s3.port.grpc "$(free_port)" -s3.port.iceberg 0 -s3.config "$HOME_OF/s3.json" \
    -master.volumeSizeLimitMB 64
}

run_versitygw() {
  need_go versitygw "$VERSITYGW"
  start "$HOME_OF/log" versitygw --quiet --access "$S3_KEY" --secret "$S3_SECRET" --port "127.0.0.1:$PORT" --keep-alive posix "$HOME_OF/data"
}

run_rclone() {
  need_go rclone "$RCLONE"
  start "$HOME_OF/log" rclone serve s3 --config /dev/null --addr "127.0.0.1:$PORT" --auth-key "$S3_KEY,$S3_SECRET" "$HOME_OF/data"
}

disk_is_up() { timeout 10 ceph osd stat | grep -q ' 1 up'; }

# Ceph in three processes: a monitor, a disk in memory, and the gateway. It needs no manager for that.
run_ceph() {
  need_ceph
  local monitor id
  monitor=$(free_port) id=$(cat /proc/sys/kernel/random/uuid)
  export CEPH_CONF=$HOME_OF/ceph.conf
  cat >"$CEPH_CONF" <<CONF
[global]
fsid = $id
mon host = v1:127.0.0.1:$monitor
auth cluster required = none
auth service required = none
auth client required = none
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr2 = false
run dir = $HOME_OF
admin socket = $HOME_OF/\$name.socket
log file = $HOME_OF/\$name.log
keyring = $HOME_OF/keyring
mon data = $HOME_OF/data/mon
osd data = $HOME_OF/data/osd
osd objectstore = memstore
osd pool default size = 1
osd pool default pg num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon data avail crit = 1
rgw frontends = beast endpoint=127.0.0.1:$PORT
CONF
  mkdir -p "$HOME_OF/data/mon" "$HOME_OF/data/osd"
  ceph-authtool --create-keyring "$HOME_OF/keyring" --gen-key -n mon. --cap mon 'allow *'
  monmaptool --create --addv a "[v1:127.0.0.1:$monitor]" --fsid "$id" "$HOME_OF/monmap"
  ceph-mon -i a --mkfs --monmap "$HOME_OF/monmap" --keyring "$HOME_OF/keyring"
  start "$HOME_OF/log" ceph-mon -i a -f
  id=$(cat /proc/sys/kernel/random/uuid)
  wait_for 60 timeout 20 ceph osd new "$id"
  ceph-osd -i 0 --mkfs --osd-uuid "$id"
  # A disk that asks the monitor before it knows its map ends with "wrong fsid".
  for _ in 1 2 3; do
    start "$HOME_OF/log" ceph-osd -i 0 -f
    ! wait_for 20 disk_is_up || break
  done
  timeout 100 radosgw-admin user create --uid mirror --display-name mirror --access-key "$S3_KEY" --secret-key "$S3_SECRET"
  start "$HOME_OF/log" radosgw -n client.admin -f
} >>"$WORK/ceph.out" 2>&1

run_garage() {
  need_garage
  # The names and secrets of its keys have a form.
  S3_KEY=GK000000000000000000000001 S3_SECRET=$(printf '%064d' 2)
  cat >"$HOME_OF/garage.toml" <<CONF
metadata_dir = "$HOME_OF/meta"
data_dir = "$HOME_OF/data"
db_engine = "sqlite"
replication_factor = 1
rpc_bind_addr = "127.0.0.1:$(free_port)"
rpc_secret = "$(printf '%064d' 1)"
[s3_api]
s3_region = "us-east-1"
api_bind_addr = "127.0.0.1:$PORT"
CONF
  local garage=("$GARAGE_PROGRAM" -c "$HOME_OF/garage.toml")
  start "$HOME_OF/log" "${garage[@]}" server
  wait_for 30 "${garage[@]}" status
  "${garage[@]}" layout assign -z zone -c 1G "$("${garage[@]}" node id -q | cut -d@ -f1)"
  "${garage[@]}" layout apply --version 1
  "${garage[@]}" key import --yes "$S3_KEY" "$S3_SECRET"
  "${garage[@]}" key allow --create-bucket "$S3_KEY"
} >>"$WORK/garage.out" 2>&1

run_s3proxy() {
  need_s3proxy
  # It refuses checksums as headers that it does not know, unless it is told to ignore them.
  cat >"$HOME_OF/s3proxy.conf" <<CONF
s3proxy.endpoint=http://127.0.0.1:$PORT
s3proxy.authorization=aws-v4
s3proxy.identity=$S3_KEY
s3proxy.credential=$S3_SECRET
s3proxy.ignore-unknown-headers=true
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir=$HOME_OF/data
CONF
  start "$HOME_OF/log" java -jar "$S3PROXY_JAR" --properties "$HOME_OF/s3proxy.conf"
}

run_s3rver() {
  need_s3rver
  # It has one key, which cannot be chosen.
  S3_KEY=S3RVER S3_SECRET=S3RVER
  start "$HOME_OF/log" node "$S3RVER_PROGRAM" --directory "$HOME_OF/data" --address 127.0.0.1 --port "$PORT" --silent
}

# put CONDITION: the status of a write of one object.
put() { s3_curl -o /dev/null -w '%{http_code}' -X PUT -d "$RANDOM" -H 'Content-Type: text/plain' -H "$1" /bucket/condition; }

# conditions: those that the server honours for one writer after the other.
conditions() {
  local tag found=()
  put 'If-None-Match: *' >/dev/null
  [[ $(put 'If-None-Match: *') != 412 ]] || found+=(create)
  tag=$(s3_field s3://bucket condition etag)
  [[ $(put 'If-Match: "00000000000000000000000000000000"') != 412 || $(put "If-Match: $tag") != 200 ]] || found+=(replace)
  paste -sd, <<<"$(printf '%s\n' "${found[@]:-none}")" | sed 's/,/, /'
}

# as_store SERVER: what a publication and the conformance suite say.
as_store() {
  local reason options
  read -ra options <<<"${WAITING[$1]:-}"
  if [[ $(outcome s3://bucket/first "up=oci:$LAYOUT:step-000") != "published 10" ]]; then
    reason=$(sed -n 's/.*conditional writes (\(.*\)): writers.*/\1/p' "$WORK/poll.err")
    echo "refused: ${reason:-$(tail -1 "$WORK/poll.err")}"
  elif "$TESTED/examples/conformance" s3://bucket/suite "${options[@]}" >"$WORK/suite" 2>&1; then
    echo "safe for several writers"
  else
    echo "not safe"
    grep -A1 panicked "$WORK/suite" | cut -c1-300 >&2
  fi
}

# as_tree: what a static tree in a bucket says, and whether its bytes are those of the store.
as_tree() {
  local key=catalogs/up/api/v1/all
  if ! "$CATALOG_MIRROR" export --store "$PUBLISHED" --static s3://bucket/tree --s3-path-style >"$WORK/tree" 2>&1; then
    echo no
    tail -1 "$WORK/tree" >&2
  elif [[ $(s3_object s3://bucket/tree $key | gzip -dc | sha256) == "$(content_hash "$PUBLISHED" up)" && $(s3_field s3://bucket/tree $key content-encoding) == gzip ]]; then
    echo yes
  else
    echo "other bytes"
  fi
}

# works_as_store SERVER: several writers, and each command.
works_as_store() {
  local place=s3://bucket/updates
  races "$1" s3://bucket/races
  updates "$1" "$place" "${ALL_STEPS[@]:0:4}"
  succeeds "$1: gc runs" "$CATALOG_MIRROR" gc --store "$place"
  succeeds "$1: verify finds nothing wrong after it" "$CATALOG_MIRROR" verify --store "$place"
  commands "$place"
}

try_server() {
  local server=$1 version=$2 conditions=$3 store=$4 tree=$5 name
  name=$(tr '[:upper:]' '[:lower:]' <<<"${server%% *}")
  [[ -z ${S3_SERVERS:-} || " $S3_SERVERS " == *" $name "* ]] || return 0
  say "--- $server"
  S3_KEY=throwaway-key S3_SECRET=throwaway-secret-key
  start_s3 "$name"
  wait_for 60 make_bucket bucket || { not_ok "$server starts" "$(tail "$HOME_OF/log" "$WORK/$name.out")"; return; }
  is "$server: the version" "$(version_of "$name")" "$version"
  is "$server: conditions that it honours" "$(conditions)" "$conditions"
  is "$server: as a store" "$(as_store "$name")" "$store"
  is "$server: a static tree" "$(as_tree)" "$tree"
  [[ $store != safe* ]] || works_as_store "$server"
}

on_each() {
  local rows row cells
  PUBLISHED=$WORK/published
  is "a store in a folder is published" "$(outcome "$PUBLISHED" "up=oci:$LAYOUT:step-000")" "published 10"
  mapfile -t rows < <(table)
  matches "the page has servers" "${#rows[@]}" '^([5-9]|1.)$'
  for row in "${rows[@]}"; do
    IFS='|' read -ra cells <<<"$row"
    try_server "${cells[@]}"
  done
}

# shellcheck disable=SC2034 # The part below reads it.
S3_SERVER=each
# shellcheck source=/dev/null
source "$HERE/s3.sh"
