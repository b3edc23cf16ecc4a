# Trees of `export --static` behind each front of infra/static, with the settings that it offers: clients and caches get what `serve`
# answers, and no reader meets a broken state while new ones are published. A short run leaves out MinIO, the page in a browser, the code
# of catalogd and operator-controller, and of Caddy all but its fields. The part sync has nginx over the folder of a store.
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
  for path in catalogs.json catalogs/up/{current.json,content-hash,search.json,api/v1/all,all.json,packages/tick}; do
    same_answer "$path" --compressed
  done
  # A bucket has one coding, and no page at its root unless its domain rewrites that.
  [[ $NAME == bucket* ]] || { same_answer catalogs/up/api/v1/all && same_answer "" --compressed; }
  [[ $NAME != @(nginx|Caddy) ]] || same_answer catalogs
  is "$NAME: an unchanged name is 304" "$(unchanged catalogs/up/content-hash)" 304
  is "$NAME: sync copies from it" "$("$CATALOG_MIRROR" sync --json "$FRONT" "$WORK/copy-$NAME" | jq -r 'map(.outcome) | unique[]')" published
  # The second one sends two entity tags, of which a host knows none.
  is "$NAME: a second copy finds nothing new" "$("$CATALOG_MIRROR" sync --json "$FRONT" "$WORK/copy-$NAME" | jq -r 'map(.outcome) | unique[]')" unchanged
  is "$NAME: the same content" "$(content_hash "$WORK/copy-$NAME" up)" "$hash"
  [[ -z $IMAGE ]] || check_image "$hash"
  $SHORT || check_long
}

# names: each name of the tree, as clients ask for it. A bucket has no page at its root, and its list of catalogs is no name of `serve`.
names() {
  (cd "$TREE" && find . -type f ! -name '*.gz' ! -path './.tmp/*' ! -name static.json) | sed 's|^\./||; s/^catalogs-list\.json$/catalogs/; s/\.\(index\|manifest\)$//; s/^index\.html$//' |
    if [[ $NAME == bucket* ]]; then grep -vx 'catalogs\|'; else cat; fi | sort -u
}

# fields_of URL FIELD... <NAMES: these fields of each name, as a page of another origin gets them.
fields_of() {
  sed "s|.*|url = \"$1/&\"\noutput = \"/dev/null\"|" >"$WORK/asked"
  curl -sS -H 'Origin: https://docs.lab' --config "$WORK/asked" -w "%{url_effective} %{http_code}$(printf ' %%header{%s}' "${@:2}")\n" | sed "s|^$1||"
}

# same_fields [FIELD...]: the front sends with each name what `serve` sends.
same_fields() {
  same_lines "$NAME: $* of $(names | wc -l) names" "$(names | fields_of "$FRONT" "$@")" "$(names | fields_of "$URL" "$@")"
}

# check_fields NAME URL: what a cache and a page of another origin read, also of what is missing and of what a browser asks first.
check_fields() {
  local fields=(cache-control access-control-allow-origin access-control-expose-headers) missing
  NAME=$1 FRONT=$2
  same_fields "${fields[@]}"
  missing=$(printf '%s\n' nothing static.json .tmp/lock catalogs/none/status.json catalogs/up/packages/none all/sha256/none.json.zst page/none.js v2/up/manifests/none)
  same_lines "$NAME: ${fields[*]} of what is missing" "$(fields_of "$FRONT" "${fields[@]}" <<<"$missing")" "$(fields_of "$URL" "${fields[@]}" <<<"$missing")"
  same_lines "$NAME: a page may send a condition" "$(preflight "$FRONT")" "$(preflight "$URL")"
}

# preflight URL: what a browser is told before it sends a condition or a login.
preflight() {
  curl -sS -o /dev/null -D - -X OPTIONS -H 'Origin: https://docs.lab' -H 'Access-Control-Request-Method: GET' -H 'Access-Control-Request-Headers: if-none-match' \
    "$1/catalogs/up/content-hash" | tr -d '\r' | tr '[:upper:]' '[:lower:]' | grep -E '^(http|allow|access-control-(allow|max))' | cut -d' ' -f1-4
}

# check_closed NAME URL: a front with a password that names an origin.
check_closed() {
  is "$1, closed: a request without a login" "$(status "$2/catalogs.json")" 401
  is "$1, closed: a page of the origin may send one" "$(preflight "$2" | grep -E '^http|origin' | cut -d' ' -f2 | paste -sd' ')" "204 https://docs.lab"
  is "$1, closed: and reads" "$(curl -sS -o /dev/null -u reader:word -w '%{http_code} %header{access-control-allow-origin}' "$2/catalogs.json")" "200 https://docs.lab"
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

# start_bucket NAME SERVER: a bucket of a server, with the tree, and nginx as its domain, which is what a CDN or a custom domain is. Its URL is NGINX.
start_bucket() {
  local signed=
  start_s3 "$2"
  # MinIO is ready before it makes buckets.
  wait_for 20 make_bucket tree
  if [[ $2 == moto ]]; then
    # A CDN signs what it asks a private bucket for. moto looks at the key alone.
    signed='proxy_set_header Authorization "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=b";'
  else
    env -u AWS_CA_BUNDLE aws --region us-east-1 s3api put-bucket-policy --bucket tree --policy '{"Version": "2012-10-17", "Statement": [
      {"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::tree/*"]}]}'
  fi
  export_tree s3://tree
  is "$1: each file of the tree is written" "$(jq -c '.[0] | [.written, .linked]' <<<"$TREE_REPORT")" "$(jq -c '.[0] | [.files, 0]' <<<"$TREE_REPORT")"
  BUCKET_TREES+=("$S3_URL")
  start_nginx "$WORK/domain" "" "location / { proxy_pass $S3_URL/tree/; proxy_set_header Host ${S3_URL#http://}; $signed }"
  wait_for 10 curl -sf "$NGINX/catalogs.json"
}

start_python() {
  local port
  port=$(free_port)
  start "$WORK/python.log" python3 -m http.server --bind 127.0.0.1 --directory "$TREE" "$port"
  PYTHON=http://127.0.0.1:$port
  wait_for 10 curl -sf "$PYTHON/catalogs.json"
}

# start_caddy [LINE...]: with further lines of the site.
start_caddy() {
  local port home
  port=$(free_port)
  home=$WORK/caddy-$port
  mkdir -p "$home"
  printf '{\n admin off\n auto_https off\n}\nhttp://127.0.0.1:%s {\n root * %s\n import %s\n%s\n}\n' "$port" "$TREE" "$ROOT/infra/static/Caddyfile" \
    "$(printf ' %s\n' "$@")" >"$home/Caddyfile"
  start "$home/log" env HOME="$home" caddy run --config "$home/Caddyfile" --adapter caddyfile
  CADDY=http://127.0.0.1:$port
  wait_for 20 curl -s "$CADDY/catalogs.json"
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

# The commands of the page send R2 the rules for the own host, and allow pages of other origins.
sent_rules() {
  mkdir -p "$WORK/r2"
  printf '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" != -d ] || printf "%%s\\n" "$2" >>%q; shift; done\n' "$WORK/r2/rules" >"$WORK/r2/curl"
  printf '#!/bin/sh\necho "$*" >>%q\n' "$WORK/r2/said" | tee "$WORK/r2/aws" >"$WORK/r2/catalog-mirror"
  chmod +x "$WORK/r2/"*
  awk '/^```sh$/ {block = ""; inside = 1; next} /^```$/ {if (block ~ /r2.json/) print block; inside = 0} inside {block = block $0 "\n"}' \
    "$ROOT/infra/static/README.md" | sed 's/mirror\.example\.com/own.lab/' >"$WORK/r2/commands.sh"
  succeeds "the page's commands for R2 run" env -C "$ROOT" PATH="$WORK/r2:$PATH" CLOUDFLARE_TOKEN=a ZONE=b bash -euo pipefail "$WORK/r2/commands.sh"
  is "they send rules for the own host" "$(jq -r '.rules[].expression' "$WORK/r2/rules" | grep -o '"[^"]*"' | head -2 | sort -u) $(jq -r .phase "$WORK/r2/rules" | wc -l)" '"own.lab" 2'
  matches "and its CORS rules" "$(<"$WORK/r2/said")" 'put-bucket-cors .*infra/static/cors.json'
}

# R2's rules and the workflow of Pages cannot run here; the commands of the workflow can.
checked_files() {
  local template=$ROOT/infra/static/cloudfront.yaml cdn
  succeeds "cfn-lint accepts the template" cfn-lint --template "$template"
  "$VENV/bin/python" "$LIB/template.py" resolve "$template" "$WORK" <<<$'stack\nclosed WebAclArn=a'
  is "the stack allows pages of other origins, with the policy of serve" \
    "$(jq -r '.PageHeaders.Properties.ResponseHeadersPolicyConfig | .CorsConfig.AccessControlAllowOrigins.Items[], .SecurityHeadersConfig.ContentSecurityPolicy.ContentSecurityPolicy' "$WORK/stack.json")" \
    "*"$'\n'"$(field "$URL/" content-security-policy)"
  is "unless a web ACL closes it" "$(jq -c '[.PageHeaders.Properties.ResponseHeadersPolicyConfig.CorsConfig, .Bucket.Properties.CorsConfiguration]' "$WORK/closed.json")" '[null,null]'
  is "the bucket of the stack is private" "$(jq -c '.Bucket.Properties.PublicAccessBlockConfiguration | [length, all(.[]; .)]' "$WORK/stack.json")" '[4,true]'
  jq .BucketPolicy.Properties.PolicyDocument "$WORK/stack.json" >"$WORK/policy.json"
  cdn=principal=cloudfront.amazonaws.com
  is "its CDN may read it, and nothing else" "$(printf '%s\n' "s3:GetObject Bucket.Arn/v2/ $cdn AWS:SourceArn=arn:aws:cloudfront::123456789012:distribution/Distribution" \
    "s3:GetObject Bucket.Arn/v2/ $cdn AWS:SourceArn=arn:aws:cloudfront::123456789012:distribution/other" \
    "s3:GetObject Bucket.Arn/v2/ principal=someone" | "$VENV/bin/python" "$LIB/policy.py" "$WORK/policy.json" | paste -sd' ')" "Allow None None"
  sent_rules
  is "R2's rules are for the phases of the cache and of rewriting" "$(jq -r '.[].phase' "$ROOT/infra/static/r2.json" | sort | tr '\n' ' ')" \
    "http_request_cache_settings http_request_transform "
  sed -n "/- name: Tree/,/- uses/s/^          //p" "$ROOT/infra/static/pages.yml" >"$WORK/pages.sh"
  mkdir -p "$WORK/pages"
  # Its source is on the network.
  sed -i "s|catalog=quay.io[^ ]*|catalog=dir:$ROOT/tests/catalogs/v1|" "$WORK/pages.sh"
  succeeds "the commands of the workflow for Pages make a tree" env -C "$WORK/pages" PATH="$(dirname "$CATALOG_MIRROR"):$PATH" bash -eu "$WORK/pages.sh"
  is "which has the catalog" "$(jq -c '[.. | strings]' "$WORK/pages/public/catalogs.json")" '["catalog"]'
}

# Each with what its comments say of a mirror with a password.
closed_fronts() {
  local open=$CADDY hash
  printf 'reader:%s\n' "$(openssl passwd -apr1 word)" >"$WORK/users"
  sed 's|set $origin "\*"|set $origin https://docs.lab|' "$ROOT/infra/static/nginx.conf" >"$WORK/closed.conf"
  start_nginx "$TREE" "" "auth_basic mirror; auth_basic_user_file $WORK/users; include $WORK/closed.conf;"
  check_closed nginx "$NGINX"
  hash=$(HOME=$WORK caddy hash-password --plaintext word)
  start_caddy '@reads not method OPTIONS' 'basicauth @reads {' "reader $hash" '}' 'header Access-Control-Allow-Origin https://docs.lab'
  check_closed Caddy "$CADDY"
  CADDY=$open
}

need_crane
need_caddy
publish_state 0
serve "$TREE_STORE"
export_tree
start_nginx "$TREE" "" "include $ROOT/infra/static/nginx.conf;"
FOLDER=$NGINX
is "nginx: the page has the policy of serve" "$(field "$FOLDER/" content-security-policy)" "$(field "$URL/" content-security-policy)"
start_python
start_bucket bucket moto
FRONTS=("+$FOLDER" "$PYTHON" "+$NGINX")
$SHORT || {
  need_olm_clients
  need_debian chromium=chromium
  need_node
  OLM_READS=$(olm-clients http "$URL/catalogs/up" "$WORK/olm-of-serve")
  CATALOGD_PULLS=$(olm-clients image "${URL#http://}/up:latest" "$WORK/pulled-of-serve" 2>/dev/null)
  matches "the code of OLM v1 reads all packages of serve" "$OLM_READS $CATALOGD_PULLS" '^30 .* 10 '
}
check_front nginx "$FOLDER" registry
check_fields nginx "$FOLDER"
check_front python "$PYTHON"
check_front bucket "$NGINX" registry
same_fields cache-control
env -u AWS_CA_BUNDLE aws --region us-east-1 s3api put-bucket-cors --bucket tree --cors-configuration "file://$ROOT/infra/static/cors.json"
matches "bucket: with cors.json pages may read" "$(fields_of "$NGINX" access-control-allow-origin access-control-expose-headers <<<catalogs.json)" ' 200 https://docs.lab ETag, '
start_caddy
is "Caddy: the page has the policy of serve" "$(field "$CADDY/" content-security-policy)" "$(field "$URL/" content-security-policy)"
check_fields Caddy "$CADDY"
closed_fronts
$SHORT || {
  check_front Caddy "$CADDY" registry
  start_bucket bucket-of-minio minio
  check_front bucket-of-minio "$NGINX" registry
  FRONTS+=("+$CADDY" "+$NGINX")
}
checked_files
watched_trees "${FRONTS[@]}"
