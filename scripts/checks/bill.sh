# What a publication, a tree, a copy and a run of collection ask of a bucket, counted by a proxy before it, and compared with what scripts/cost
# counts with. UPDATES in the environment says how many updates; 949 are a year. Those of a short run, and more than the series has, are generated.
# shellcheck shell=bash

SOURCE=$REGISTRY/ns/bill:latest
FILES=$WORK/files COUNTED=$WORK/counted LOCAL=$WORK/store
mkdir -p "$FILES" "$COUNTED" "$LOCAL"
export AWS_REGION=us-east-1

# start_counting URL: a proxy before a server; COUNTING_URL is set afterwards.
start_counting() {
  local port
  port=$(free_port)
  COUNTING_URL=http://127.0.0.1:$port
  start "$WORK/counting.log" python3 -B "$LIB/counting.py" "$port" "${1##*/}" "$WORK/requests"
  wait_for 10 curl -s "$COUNTING_URL/"
}

# counted KIND COMMAND...: adds the requests of a command to those of its kind.
counted() {
  : >"$WORK/requests"
  "${@:2}" >"$WORK/counted.out" 2>&1 || not_ok "$1: $2" "$(<"$WORK/counted.out")"
  cat "$WORK/requests" >>"$COUNTED/$1"
}

poll_bucket() { [[ $(outcome s3://store/mirror "up=$SOURCE" --s3-path-style) == "$1" ]]; }
poll_folder() { outcome "$LOCAL" "up=$SOURCE" >/dev/null; }
export_bucket() { "$CATALOG_MIRROR" export --static s3://tree/mirror --store "$LOCAL" --s3-path-style; }
collect() { "$CATALOG_MIRROR" gc --store s3://store/mirror --s3-path-style; }
copy() { "$CATALOG_MIRROR" sync "$COUNTING_URL" "$WORK/copy" up; }

# publish NUMBER: brings the update and prints how many packages it changes.
publish() {
  if [[ $SOURCE == "$REGISTRY"/* ]]; then
    copy_image "oci:$LAYOUT:$(printf 'step-%03d' "$1")" "docker://$SOURCE"
    changed "$1" | sort -u | grep -c .
  else
    generated_package "generated-$(($1 % 4))" "$1" >"$FILES/generated-$(($1 % 4)).yaml"
    echo 1
  fi
}

# update NUMBER: the first one makes the catalog, whose requests are not counted.
update() {
  local changed
  changed=$(publish "$1")
  counted publication poll_bucket "published 10"
  counted status poll_bucket "unchanged 0"
  poll_folder
  counted tree export_bucket
  poll_folder
  counted tree export_bucket
  counted copy copy
  printf '%s %s\n' "$changed" "$(current "$LOCAL" up | jq .packages)" >>"$COUNTED/updates"
}

LAST=${UPDATES:-10} real=
if $SHORT; then LAST=2; fi
if $SHORT || ((LAST > LAST_STEP)); then
  SOURCE=dir:$FILES
  for number in 1 2 3; do generated_package "generated-$number" 0 >"$FILES/generated-$number.yaml"; done
elif [[ -n $(data_folder) ]]; then
  real=real
fi
start_s3 moto
start_counting "$S3_URL"
use_s3 "$COUNTING_URL"
make_bucket store && make_bucket tree
serve "$LOCAL"
start_counting "$URL"
update 0
rm "$COUNTED"/*
for number in $(seq "$LAST"); do update "$number"; done
counted idle poll_bucket "unchanged 0"
counted tree-idle export_bucket
counted collect collect
python3 -B "$LIB/bill.py" "$COUNTED" "$LOCAL/catalogs/up/current.json" $real | relay ""
