# The page in a browser: how it looks in all sizes, with the keyboard, search, versions, and a catalog whose texts are attacks. Then behind nginx
# and from the reader function.
# shellcheck shell=bash

STORE=$WORK/store
WRITTEN=$WORK/written
mkdir -p "$WRITTEN" "$WORK/hostile/configs" "$WORK/odd/configs"

need_debian chromium=chromium
need_node

# Every text is an attack: on HTML, on links, on the direction of text, on the length of lines.
hostile_catalog() {
  python3 - >"$WORK/hostile/configs/catalog.json" <<'PY'
import base64, json
attack = '<script>alert(1)</script><img src=x onerror=alert(1)>" onload="alert(1) \u202e\u2028 javascript:alert(1)'
markdown = f'# {attack}\n\n[a](javascript:alert(1)) ![b](https://attacker.example/b.png) <iframe src="https://attacker.example">\n\n' + '> ' * 5000 + '\n\n' + \
    '- ' + '*' * 3000 + '[' * 3000 + '\n\n|a|\n|-|\n|' + attack + '|\n'
csv = {'displayName': attack, 'description': markdown, 'provider': {'name': attack}, 'keywords': [attack], 'maintainers': [{'name': attack, 'email': attack}],
       'links': [{'name': attack, 'url': 'javascript:alert(1)'}, {'name': 'x', 'url': 'data:text/html,<script>alert(1)</script>'}, {'name': attack, 'url': 'https://attacker.example/?' + 'a' * 900}],
       'installModes': [{'type': attack, 'supported': True}], 'annotations': {'capabilities': attack, 'categories': attack}}
names = [f'hostile.v{number}.0.0{attack if number == 3 else ""}' for number in range(4)]
metas = [{'schema': 'olm.package', 'name': 'hostile', 'defaultChannel': attack, 'description': markdown,
          'icon': {'base64data': base64.b64encode(b'<script>alert(1)</script>').decode(), 'mediatype': 'text/html'}},
         # A circle, two heads, and an entry without a bundle.
         {'schema': 'olm.channel', 'package': 'hostile', 'name': attack, 'entries': [
             {'name': names[0], 'replaces': names[1]}, {'name': names[1], 'replaces': names[0]}, {'name': names[2], 'skipRange': '<' + '9' * 5000}, {'name': names[3]}, {'name': 'none'}]},
         {'schema': 'olm.deprecations', 'package': 'hostile', 'entries': [{'reference': {'schema': 'olm.package'}, 'message': attack}]},
         {'schema': 'io.openshift.operators.lifecycles.v1alpha1', 'package': 'hostile', 'versions': [{'name': '0.0', 'phases': [{'name': attack, 'startDate': '0', 'endDate': '9'}]}]}]
metas += [{'schema': 'olm.bundle', 'package': 'hostile', 'name': name, 'image': attack, 'properties': [
    {'type': 'olm.package', 'value': {'packageName': 'hostile', 'version': f'{number}.0.0'}}, {'type': 'olm.csv.metadata', 'value': csv},
    {'type': 'olm.gvk', 'value': {'group': attack, 'version': attack, 'kind': attack}}]} for number, name in enumerate(names)]
print('\n'.join(map(json.dumps, metas)))
PY
}

# Every package is odd in one way: sizes, versions, names, icons, and documents that are missing or there twice.
odd_catalog() {
  python3 - >"$WORK/odd/configs/catalog.json" <<'PY'
import base64, json
svg = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg" onload="document.documentElement.id = 1"><script>document.documentElement.id = 2; alert(1)</script>'
    b'<style>rect { fill: red }</style><rect width="9" height="9"/><image href="https://attacker.example/a.png"/></svg>').decode()
# A thousand lines that are 4^30 elements.
bomb = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg"><g id="a0"/>' + b''.join(
    b'<g id="a%d">%b</g>' % (level, b'<use href="#a%d"/>' % (level - 1) * 4) for level in range(1, 30)) + b'</svg>').decode()
# 30,000 x 30,000 pixels.
large = base64.b64encode(b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x75\x30\0\0\x75\x30\x08\x06\0\0\0').decode()
def package(name, versions=('0.0.1', '0.0.2', '0.0.3'), icon=None, text='', heads=1, more=()):
    names = [f'{name[:100]}.v{version or number}' for number, version in enumerate(versions)]
    if heads: yield from [{'schema': 'olm.package', 'name': name, 'defaultChannel': 'stable', **({'icon': icon} if icon else {})}] * heads
    yield {'schema': 'olm.channel', 'package': name, 'name': 'stable', 'entries': [{'name': own, **({'replaces': names[at - 1]} if at else {})} for at, own in enumerate(names)]}
    for own, version in zip(names, versions):
        yield {'schema': 'olm.bundle', 'package': name, 'name': own, 'image': 'quay.io/a/b@sha256:' + '0' * 64, 'properties': [
            {'type': 'olm.package', 'value': {'packageName': name, 'version': version}}, {'type': 'olm.csv.metadata', 'value': {'description': text}}]}
    yield from more
def icon(data, mediatype): return {'base64data': data, 'mediatype': mediatype}
metas = [*package('versions', ['0.0.1'] + [f'{number}.0.0' for number in range(1, 10000)]), *package('no semver', ['latest', '1.2', '01.2.3']), *package('no package', heads=0),
    *package('two packages', heads=2), *package('icon without base64', icon=icon('%%%<', 'image/png')), *package('empty icon', icon=icon('', 'image/png')),
    *package('large icon', icon=icon('A' * 5_000_000, 'image/png')), *package('svg', icon=icon(svg, 'image/svg+xml')), *package('svg bomb', icon=icon(bomb, 'image/svg+xml')),
    *package('png bomb', icon=icon(large, 'image/png')),
    *package('long text', text='word *a* [b](c) ' * 65536), *package('deep text', text='> ' * 10000 + '[' * 10000 + '* ' * 10000 + '\n' + '\n'.join('  ' * depth + '- a' for depth in range(1000))),
    *package('large', text='0123456789abcdef' * 875_000), *package('other schemas', more=[{'schema': 'a.b', 'package': 'other schemas', 'c': [1, None, {}]}, {'schema': 'olm.deprecations', 'package': 'other schemas', 'entries': []}])]
for name in ['a/b', 'a#b', 'a?b', 'a%b', 'a%2Fb', 'a<b', '..', 'a\u202eb', 'a\u2028b', 'n' * 1_000_000]: metas += package(name)
print('\n'.join(map(json.dumps, metas)))
PY
}

hostile_catalog
odd_catalog
"$CATALOG_MIRROR" poll --store "$STORE" --catalog "demo=dir:$ROOT/tests/catalogs/v1" --catalog "hostile=dir:$WORK/hostile/configs" \
  --catalog "odd=dir:$WORK/odd/configs" >"$WORK/poll.log" 2>&1
cp -r "$ROOT/tests/catalogs/v2" "$WORK/demo"
"$CATALOG_MIRROR" poll --store "$STORE" --catalog "demo=dir:$WORK/demo" >>"$WORK/poll.log" 2>&1
# Content that looks like an accident: all packages are gone.
cp -r "$ROOT/tests/catalogs/v1" "$WORK/held"
"$CATALOG_MIRROR" poll --store "$STORE" --catalog "held=dir:$WORK/held" >>"$WORK/poll.log" 2>&1
rm -r "$WORK"/held/*/
"$CATALOG_MIRROR" poll --store "$STORE" --catalog "held=dir:$WORK/held" >>"$WORK/poll.log" 2>&1
serve "$STORE"
node "$LIB/page_cases.mjs" | relay ""
# drive NAME URL FOLDER [KIND]: page.mjs has the kinds.
drive() { node "$LIB/page.mjs" "${@:2}" 2>&1 | relay "$1"; }
drive "" "$URL" "$WRITTEN" "$($SHORT && echo short || echo whole)"

# A static tree.
mkdir "$WORK/other"
"$CATALOG_MIRROR" export --store "$STORE" --static "$WORK/site" >>"$WORK/poll.log" 2>&1
start_nginx "$WORK/site" "" "include $ROOT/infra/static/nginx.conf;"
drive "nginx: " "$NGINX" "$WORK/other" brief

# The reader function, below a path. Not in a short run, which has to take less than a minute.
drive_reader() {
  start_s3 moto
  make_bucket mirror
  local version URL
  for version in v1 v2; do
    "$CATALOG_MIRROR" poll --store s3://mirror/page --catalog "demo=dir:$ROOT/tests/catalogs/$version" --catalog "hostile=dir:$WORK/hostile/configs" >>"$WORK/poll.log" 2>&1
  done
  start_reader s3://mirror/page
  drive "reader: " "$URL" "$WORK/other" few
}
$SHORT || drive_reader

# Programs: a client of the types of the description.
mkdir "$WORK/client"
npm_run() { "$NODE_MODULES/node_modules/.bin/$1" "${@:2}"; }
compile() { npm_run tsc --strict --noUncheckedIndexedAccess --target es2022 --module es2022 --moduleResolution bundler --outDir "$WORK/client/out" "$1"; }
curl -sSf "$URL/openapi.json" >"$WORK/client/openapi.json"
succeeds "openapi-typescript reads the description" npm_run openapi-typescript "$WORK/client/openapi.json" -o "$WORK/client/openapi.ts"
cp "$LIB/client.ts" "$WORK/client/client.ts"
echo '{"type": "module"}' >"$WORK/client/package.json"
succeeds "tsc accepts a client" compile "$WORK/client/client.ts"
is "that lists catalogs, polls and reads packages" "$(node "$WORK/client/out/client.js" "$URL" | sed -n 1p)" "demo true 304 published demo-cache stable 5"
for field in current.packagez found.total.length 'packages[name]?.channels'; do
  sed "s/console.log(catalog/&, $field/" "$LIB/client.ts" >"$WORK/client/wrong.ts"
  matches "and refuses $field" "$(compile "$WORK/client/wrong.ts")" "error TS2[0-9]*: Property '${field##*.}' does not exist"
done

# The configuration of the basket selects what was put into it. The image of the catalog is the mirror's own.
composed=$("$CATALOG_MIRROR" compose --plain-http "$HOST" "$WRITTEN/imageset.yaml" 2>"$WORK/compose.err")
is "the basket's configuration selects its package" "$(jq -r 'select(.schema == "olm.package").name' <<<"$composed")" demo-queue
is "and its channel" "$(jq -r 'select(.schema == "olm.channel").name' <<<"$composed")" "$(cat "$WRITTEN/chosen")"
for kind in ClusterExtension Subscription; do
  matches "the $kind names its package" "$(cat "$WRITTEN/$kind.yaml")" "kind: $kind"$'\n''.*"demo-queue"'
done
