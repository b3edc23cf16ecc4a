# nginx over the store's folder is a mirror: the name of each object that the published snapshot names is the sha256 of the bytes
# that nginx sends. Then nginx over a tree of `export --static`, with the settings that infra/static offers: clients get what `serve` answers.
# shellcheck shell=bash

STORE=$WORK/store

# stored KEY: the sha256 of an object as the static server sends it.
stored() { curl -sSf "$MIRROR/$1" | sha256; }

# A client knows one URL. It follows keys from the pointer to everything else.
follow() {
  local pointer=$WORK/current.json snapshot=$WORK/snapshot.json key bad=0 count=0 form sum
  curl -sSf "$MIRROR/catalogs/s/current.json" >"$pointer"
  key=$(jq -r .snapshot.key "$pointer")
  curl -sSf "$MIRROR/$key" | zstd -qdc >"$snapshot"
  is "the snapshot's key is the hash of its bytes" "$key" "snapshots/sha256/$(stored "$key").json.zst"
  while read -r key; do
    count=$((count + 1))
    sum=$(basename "$key")
    [[ $(stored "$key") == "${sum%%.*}" ]] || { bad=$((bad + 1)) && say "$key has other bytes"; }
  done < <(object_keys "$snapshot")
  is "the names of all $count objects are the hashes of their bytes" "$bad" 0
  for form in zstd gzip identity; do
    key=$(jq -r ".all.$form.key" "$pointer")
    is "the pointer leads to all.json, $form" "$(curl -sSf "$MIRROR/$key" | plain "$form" | sha256)" "$(jq -r .contentHash "$pointer")"
  done
  is "the image has a layer, four manifests, four configurations and an index" "$(blobs <"$snapshot" | wc -l)" 10
  is "the pointer leads to the image's index" "$(jq -r .image.key "$pointer")" "blobs/sha256/$(jq -r .image.index.sha256 "$snapshot")"
}

# plain FORM: decodes standard input.
plain() {
  case $1 in
    zstd) zstd -qdc ;;
    gzip) gzip -dc ;;
    identity) cat ;;
  esac
}

is "a catalog with a plain all.json is published" "$(outcome "$STORE" "s=oci:$LAYOUT:$LAST_TAG" --identity)" "published 10"
start_nginx "$STORE"
MIRROR=$NGINX
is "catalogs.json names the catalog" "$(curl -sSf "$MIRROR/catalogs.json" | jq -c '[.. | strings]')" '["s"]'
follow

# export_tree: brings the tree up to date. TREE_REPORT has what it did.
TREE=$WORK/tree TREE_STORE=$WORK/tree-store
export_tree() { TREE_REPORT=$("$CATALOG_MIRROR" export --json --store "$TREE_STORE" --static "$TREE"); }
reported() { jq -r ".[0].$1" <<<"$TREE_REPORT"; }

# same_answer PATH [CURL-OPTION...]: nginx and `serve` send the same bytes of the same type.
same_answer() {
  local path=$1 server
  for server in "$NGINX" "$URL"; do
    curl -sSf "${@:2}" -o "$WORK/body-${server##*:}" -w '%{content_type}' "$server/$path" >"$WORK/type-${server##*:}"
  done
  is "the type of $path ${*:2}" "$(cat "$WORK/type-${NGINX##*:}")" "$(cat "$WORK/type-${URL##*:}")"
  is "the bytes of $path ${*:2}" "$(sha256 <"$WORK/body-${NGINX##*:}")" "$(sha256 <"$WORK/body-${URL##*:}")"
}

served_tree() {
  local path hash image=${NGINX#http://}/up
  hash=$(content_hash "$TREE_STORE" up)
  for path in catalogs.json openapi.json catalogs/up/{current.json,content-hash,search.json,api/v1/all,all.json} "$(package_path)" v2/up/tags/list \
    v2/up/manifests/latest; do
    same_answer "$path"
    same_answer "$path" --compressed
  done
  is "the page has the policy of serve" "$(field "$NGINX/" content-security-policy)" "$(field "$URL/" content-security-policy)"
  same_answer "" --compressed
  is "an unchanged name is 304" "$(curl -s -o /dev/null -w '%{http_code}' -H "If-None-Match: $(field "$NGINX/catalogs/up/content-hash" etag)" "$NGINX/catalogs/up/content-hash")" 304
  is "sync copies from it" "$("$CATALOG_MIRROR" sync --json "$NGINX" "$WORK/copy" | jq -r '.[0].outcome')" published
  is "the same content" "$(content_hash "$WORK/copy" up)" "$hash"
  succeeds "skopeo copies all platforms" copy_image "docker://$image:latest" "oci:$WORK/all:copy" --all
  succeeds "skopeo copies one platform" copy_image "docker://$image:latest" "oci:$WORK/one:copy"
  succeeds "skopeo inspects" skopeo inspect --no-tags --tls-verify=false "docker://$image:latest"
  is "crane lists the tags" "$(crane ls --insecure "$image" | sort | tr '\n' ' ')" "$(curl -sSf "$URL/v2/up/tags/list" | jq -r '.tags[]' | sort | tr '\n' ' ')"
  succeeds "crane validates the image" crane validate --insecure --remote "$image:latest"
  is "poll reads the image" "$(outcome "$WORK/polled" "up=$image:latest" --plain-http "${NGINX#http://}") $(content_hash "$WORK/polled" up)" "published 10 $hash"
}

# series_tags: the states of the series, in a short run the first six.
series_tags() {
  local most=200
  if $SHORT; then most=6; fi
  jq -r '.manifests[].annotations["org.opencontainers.image.ref.name"]' "$LAYOUT/index.json" | grep ^step- | head -n "$most"
}

package_path() { curl -sSf "$URL/catalogs/up/packages" | jq -r '.packages[0].name | "catalogs/up/packages/\(.)"'; }

# A reader polls while states are published: no torn body, no manifest without its blobs, and what current.json names is there.
watched_tree() {
  local count=0 bad=0 tag
  for tag in $(series_tags); do
    "$CATALOG_MIRROR" poll --store "$TREE_STORE" --catalog "up=oci:$LAYOUT:$tag" >/dev/null
    export_tree & local writer=$!
    while kill -0 "$writer" 2>/dev/null; do
      count=$((count + 1))
      crane validate --insecure --remote "${NGINX#http://}/up:latest" >/dev/null 2>&1 || bad=$((bad + 1))
      "$CATALOG_MIRROR" sync "$NGINX" "$WORK/follower" >/dev/null 2>&1 || bad=$((bad + 1))
    done
    wait "$writer"
  done
  is "no read of $count during the runs met a broken state" "$bad" 0
}

need_crane
is "a catalog is published" "$(outcome "$TREE_STORE" "up=oci:$LAYOUT:step-000")" "published 10"
serve "$TREE_STORE"
export_tree
is "a tree is written" "$(reported catalogs)" 1
start_nginx "$TREE" "" "include $ROOT/infra/static/nginx.conf;"
served_tree
export_tree
is "a second run writes nothing" "$(reported written) $(reported linked) $(reported deleted)" "0 0 0"
watched_tree
