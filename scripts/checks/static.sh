# Trees of `export --static` behind each front of infra/static, with the settings that it offers: clients get what `serve` answers, and
# no reader meets a broken state while new ones are published. A short run leaves out Caddy, MinIO, the page in a browser, and the code
# of catalogd and operator-controller. The part sync has nginx over the folder of a store.
# shellcheck shell=bash

# A front is a URL with a tree: FRONT, and IMAGE for clients of registries where it knows media types, else empty.
TREE=$WORK/tree TREE_STORE=$WORK/tree-store
BUCKET_TREES=()

# export_tree [TO]: brings a tree up to date. TREE_REPORT has what it did.
export_tree() {
  TREE_REPORT=$("$CATALOG_MIRROR" export --json --store "$TREE_STORE" --static "${1:-$TREE}" ${1:+--s3-path-style})
}
export_trees() {
  local to
  export_tree
  for to in "${BUCKET_TREES[@]}"; do use_s3 "$to" && export_tree s3://tree; done
}

# publish_state NUMBER: a catalog `up` of ten packages, of which `tick` has the number.
publish_state() {
  mkdir -p "$WORK/configs"
  for package in tick tock-{1..9}; do json_package "$package" registry.example/a:v1; done |
    jq -c --arg number "$1" 'if .schema == "olm.package" and .name == "tick" then .description = $number else . end' >"$WORK/configs/catalog.json"
  "$CATALOG_MIRROR" poll --store "$TREE_STORE" --catalog "up=dir:$WORK/configs" --catalog "demo=dir:$ROOT/tests/catalogs/v1" >/dev/null
}

# same_answer PATH [CURL-OPTION...]: the front and `serve` send the same bytes, and where it knows types, of the same type.
same_answer() {
  local path=$1 server type=()
  for server in "$FRONT" "$URL"; do
    type+=("$(curl -sSf "${@:2}" -o "$WORK/body-${#type[@]}" -w '%{content_type}' "$server/$path")")
  done
  is "$NAME: the bytes of $path ${*:2}" "$(sha256 <"$WORK/body-0")" "$(sha256 <"$WORK/body-1")"
  [[ -z $IMAGE ]] || is "$NAME: the type of $path ${*:2}" "${type[0]}" "${type[1]}"
}

# check_front NAME URL [registry]: what the table of infra/static/README.md promises.
check_front() {
  local path hash
  NAME=$1 FRONT=$2 IMAGE=
  [[ -z ${3:-} ]] || IMAGE=${FRONT#http://}/up
  hash=$(content_hash "$TREE_STORE" up)
  for path in catalogs.json openapi.json catalogs/up/{current.json,content-hash,search.json,api/v1/all,all.json,packages/tick}; do
    same_answer "$path" --compressed
  done
  # A bucket has one coding, and no page at its root unless its domain rewrites that.
  [[ $NAME == bucket* ]] || { same_answer catalogs/up/api/v1/all && same_answer "" --compressed; }
  is "$NAME: an unchanged name is 304" "$(unchanged catalogs/up/content-hash)" 304
  is "$NAME: sync copies from it" "$("$CATALOG_MIRROR" sync --json "$FRONT" "$WORK/copy-$NAME" | jq -r 'map(.outcome) | unique[]')" published
  # The second one sends two entity tags, of which a host knows none.
  is "$NAME: a second copy finds nothing new" "$("$CATALOG_MIRROR" sync --json "$FRONT" "$WORK/copy-$NAME" | jq -r 'map(.outcome) | unique[]')" unchanged
  is "$NAME: the same content" "$(content_hash "$WORK/copy-$NAME" up)" "$hash"
  [[ -z $IMAGE ]] || check_image "$hash"
  $SHORT || check_long
}

# unchanged PATH: the status of a request with the condition that the front's own answer allows.
unchanged() {
  local tag
  tag=$(field "$FRONT/$1" etag)
  status "$FRONT/$1" -H "${tag:+If-None-Match: $tag}" -H "If-Modified-Since: $(field "$FRONT/$1" last-modified)"
}

check_image() {
  same_answer v2/up/tags/list
  same_answer v2/up/manifests/latest
  succeeds "$NAME: skopeo copies all platforms" copy_image "docker://$IMAGE:latest" "oci:$WORK/all-$NAME:copy" --all
  succeeds "$NAME: skopeo copies one platform" copy_image "docker://$IMAGE:latest" "oci:$WORK/one-$NAME:copy"
  succeeds "$NAME: skopeo inspects" skopeo inspect --no-tags --tls-verify=false "docker://$IMAGE:latest"
  is "$NAME: crane lists the tags" "$(crane ls --insecure "$IMAGE" | sort | tr '\n' ' ')" "$(curl -sSf "$URL/v2/up/tags/list" | jq -r '.tags[]' | sort | tr '\n' ' ')"
  succeeds "$NAME: crane validates the image" crane validate --insecure --remote "$IMAGE:latest"
  is "$NAME: poll reads the image" "$(outcome "$WORK/polled-$NAME" "up=$IMAGE:latest" --plain-http "${FRONT#http://}") $(content_hash "$WORK/polled-$NAME" up)" "published 10 $1"
}

# The code of OLM v1, and the page in a browser.
check_long() {
  is "$NAME: operator-controller reads it" "$(olm-clients http "$FRONT/catalogs/up" "$WORK/olm-$NAME")" "$OLM_READS"
  [[ -z $IMAGE ]] || is "$NAME: catalogd pulls the image" "$(olm-clients image "$IMAGE:latest" "$WORK/pulled-$NAME" 2>/dev/null)" "$CATALOGD_PULLS"
  # A bucket has no page at its root.
  [[ $NAME != bucket* ]] || return 0
  node "$LIB/page.mjs" "$FRONT" "$WORK" demo 2>&1 | relay "$NAME: "
}

# start_bucket NAME URL: a bucket with the tree, and nginx as its domain, which is what a CDN or a custom domain is. Its URL is NGINX.
start_bucket() {
  local signed=
  use_s3 "$2"
  # MinIO is ready before it makes buckets.
  wait_for 20 make_bucket tree
  if [[ $2 == "$MOTO_URL" ]]; then
    # A CDN signs what it asks a private bucket for. moto looks at the key alone.
    signed='proxy_set_header Authorization "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=b";'
  else
    env -u AWS_CA_BUNDLE aws --region us-east-1 s3api put-bucket-policy --bucket tree --policy '{"Version": "2012-10-17", "Statement": [
      {"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::tree/*"]}]}'
  fi
  export_tree s3://tree
  is "$1: each file of the tree is written" "$(jq -c '.[0] | [.written, .linked]' <<<"$TREE_REPORT")" "$(jq -c '.[0] | [.files, 0]' <<<"$TREE_REPORT")"
  BUCKET_TREES+=("$2")
  start_nginx "$WORK/domain" "" "location / { proxy_pass $2/tree/; proxy_set_header Host ${2#http://}; $signed }"
  wait_for 10 curl -sf "$NGINX/catalogs.json"
}

start_python() {
  local port
  port=$(free_port)
  start "$WORK/python.log" python3 -m http.server --bind 127.0.0.1 --directory "$TREE" "$port"
  PYTHON=http://127.0.0.1:$port
  wait_for 10 curl -sf "$PYTHON/catalogs.json"
}

start_caddy() {
  local port home=$WORK/caddy
  port=$(free_port)
  mkdir -p "$home"
  printf '{\n admin off\n auto_https off\n}\nhttp://127.0.0.1:%s {\n root * %s\n import %s\n}\n' "$port" "$TREE" "$ROOT/infra/static/Caddyfile" >"$home/Caddyfile"
  start "$home/log" env HOME="$home" caddy run --config "$home/Caddyfile" --adapter caddyfile
  CADDY=http://127.0.0.1:$port
  wait_for 20 curl -sf "$CADDY/catalogs.json"
}

# Readers of all fronts while states are published.
watched_trees() {
  local number states=${STATES:-200} begin=$SECONDS
  if $SHORT; then states=3; fi
  echo 0 >"$WORK/state"
  start "$WORK/readers.log" python3 -B "$LIB/static_readers.py" "$WORK/state" "$WORK/stop" "$WORK/read" "$@"
  local readers=$STARTED_PID
  for ((number = 1; number <= states; number++)); do
    publish_state "$number"
    export_trees
    echo "$number" >"$WORK/state.new" && mv "$WORK/state.new" "$WORK/state"
  done
  touch "$WORK/stop"
  wait "$readers"
  say "$states publications took $((SECONDS - begin)) s"
  while read -r number; do
    is "$(jq -r '"\(.front): no read of \(.reads) met a broken or old state"' <<<"$number")" "$(jq -c .wrong <<<"$number")" '[]'
    ((0 < $(jq .reads <<<"$number"))) || not_ok "there were reads"
  done <"$WORK/read"
}

# R2's rules and the workflow of Pages cannot run here; the commands of the workflow can.
checked_files() {
  local template=$ROOT/infra/static/cloudfront.yaml cdn
  succeeds "cfn-lint accepts the template" cfn-lint --template "$template"
  "$VENV/bin/python" "$LIB/template.py" resolve "$template" >"$WORK/stack.json"
  is "the bucket of the stack is private" "$(jq -c '.Bucket.Properties.PublicAccessBlockConfiguration | [length, all(.[]; .)]' "$WORK/stack.json")" '[4,true]'
  jq .BucketPolicy.Properties.PolicyDocument "$WORK/stack.json" >"$WORK/policy.json"
  cdn=principal=cloudfront.amazonaws.com
  is "its CDN may read it, and nothing else" "$(printf '%s\n' "s3:GetObject Bucket.Arn/v2/ $cdn AWS:SourceArn=arn:aws:cloudfront::123456789012:distribution/Distribution" \
    "s3:GetObject Bucket.Arn/v2/ $cdn AWS:SourceArn=arn:aws:cloudfront::123456789012:distribution/other" \
    "s3:GetObject Bucket.Arn/v2/ principal=someone" | "$VENV/bin/python" "$LIB/policy.py" "$WORK/policy.json" | paste -sd' ')" "Allow None None"
  is "R2's rules are for the phases of the cache and of rewriting" "$(jq -r '.[].phase' "$ROOT/infra/static/r2.json" | sort | tr '\n' ' ')" \
    "http_request_cache_settings http_request_transform "
  sed -n "/- name: Tree/,/- uses/s/^          //p" "$ROOT/infra/static/pages.yml" >"$WORK/pages.sh"
  mkdir -p "$WORK/pages"
  # Its source is on the network.
  sed -i "s|catalog=quay.io[^ ]*|catalog=dir:$ROOT/tests/catalogs/v1|" "$WORK/pages.sh"
  succeeds "the commands of the workflow for Pages make a tree" env -C "$WORK/pages" PATH="$(dirname "$CATALOG_MIRROR"):$PATH" bash -eu "$WORK/pages.sh"
  is "which has the catalog" "$(jq -c '[.. | strings]' "$WORK/pages/public/catalogs.json")" '["catalog"]'
}

need_crane
publish_state 0
serve "$TREE_STORE"
export_tree
start_nginx "$TREE" "" "include $ROOT/infra/static/nginx.conf;"
FOLDER=$NGINX
is "nginx: the page has the policy of serve" "$(field "$FOLDER/" content-security-policy)" "$(field "$URL/" content-security-policy)"
start_python
start_moto
start_bucket bucket "$MOTO_URL"
FRONTS=("+$FOLDER" "$PYTHON" "+$NGINX")
$SHORT || {
  need_olm_clients
  need_caddy
  need_debian chromium=chromium
  need_node
  OLM_READS=$(olm-clients http "$URL/catalogs/up" "$WORK/olm-of-serve")
  CATALOGD_PULLS=$(olm-clients image "${URL#http://}/up:latest" "$WORK/pulled-of-serve" 2>/dev/null)
  matches "the code of OLM v1 reads all packages of serve" "$OLM_READS $CATALOGD_PULLS" '^30 .* 10 '
}
check_front nginx "$FOLDER" registry
check_front python "$PYTHON"
check_front bucket "$NGINX" registry
$SHORT || {
  start_caddy
  is "Caddy: the page has the policy of serve" "$(field "$CADDY/" content-security-policy)" "$(field "$URL/" content-security-policy)"
  check_front Caddy "$CADDY" registry
  start_minio plain
  start_bucket bucket-of-minio "$MINIO_URL"
  check_front bucket-of-minio "$NGINX" registry
  FRONTS+=("+$CADDY" "+$NGINX")
}
checked_files
watched_trees "${FRONTS[@]}"
