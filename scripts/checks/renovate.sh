# Renovate raises the versions of an ImageSetConfiguration and of Subscriptions by the documents of the mirror, without a connection: all
# channels, pinned at their heads before each update of the series. It proposes each move of a head, and nothing else. With a minimum age it
# proposes nothing, because the mirror has seen the versions today.
# shellcheck shell=bash

STORE=$WORK/store
FILES=$WORK/files
REPOSITORY=$WORK/repository
mkdir -p "$FILES" "$REPOSITORY"
need_renovate

# heads: package, channel, version and bundle of each head.
heads() {
  local package
  curl -sSf "$URL/catalogs/up/packages" | jq -r '.packages[].name' | while read -r package; do
    curl -sSf "$URL/catalogs/up/packages/$package/versions.json" | jq -r --arg package "$package" '.channels | to_entries[] | .key as $channel |
      .value | select(.tags) | .tags.head as $head | first(.releases[] | select(.version == $head)) | [$package, $channel, .version, .bundle] | @tsv'
  done
}

# configure [AGE]: the recipes of infra/gitops.md, with the address of this mirror, and without a minimum age unless one is given. The last
# Renovate for Node.js 20 has an older name for the patterns of files, which are without slashes.
configure() {
  python3 - "$ROOT/infra/gitops.md" "$URL/catalogs/up/versions/{{packageName}}.json" "${1:-0 days}" >"$REPOSITORY/renovate.json" <<'PY'
import json, re, sys
blocks = [json.loads(block) for block in re.findall(r'```json\n(.*?)```', open(sys.argv[1]).read(), re.S)]
config = {'customDatasources': {}, 'packageRules': [], 'customManagers': []}
for block in blocks:
    for key, value in block.items():
        if isinstance(value, dict): config[key].update(value)
        else: config[key] += value
config['customDatasources']['operators']['defaultRegistryUrlTemplate'] = sys.argv[2]
config['packageRules'][0]['minimumReleaseAge'] = sys.argv[3]
config['enabledManagers'] = ['custom.regex']
for manager in config['customManagers']:
    manager['fileMatch'] = [pattern.strip('/') for pattern in manager.pop('managerFilePatterns')]
print(json.dumps(config))
PY
}

# pin <HEADS: one ImageSetConfiguration with a package for each channel, and a Subscription for each channel.
pin() {
  local package channel version bundle
  printf 'mirror:\n  operators:\n    - catalog: registry.example/index:v4.20\n      packages:\n' >"$REPOSITORY/imageset.yaml"
  rm -f "$REPOSITORY"/subscription-*
  while IFS=$'\t' read -r package channel version bundle; do
    printf '        - name: %s\n          channels:\n            - name: %s\n              minVersion: %s\n              maxVersion: %s\n' \
      "$package" "$channel" "$version" "$version" >>"$REPOSITORY/imageset.yaml"
    printf 'spec:\n  name: %s\n  channel: %s\n  source: cs-up-latest\n  sourceNamespace: olm\n  startingCSV: %s\n' \
      "$package" "$channel" "$bundle" >"$REPOSITORY/subscription-$package-$channel.yaml"
  done
}

# look: lets Renovate look for updates, without what it remembers of the step before.
look() {
  rm -rf "$WORK/cache"
  (cd "$REPOSITORY" && env -i PATH="$PATH" HOME="$WORK" LOG_LEVEL=debug LOG_FORMAT=json RENOVATE_PLATFORM=local RENOVATE_CACHE_DIR="$WORK/cache" \
    "$RENOVATE" >"$WORK/renovate.log" 2>"$WORK/renovate.err")
}

# proposed FILE: what Renovate would raise in the files of that name, as package/channel and version.
proposed() {
  jq -r --arg file "$1" 'select(.msg == "packageFiles with updates") | .config.regex[] | select(.packageFile | test($file)) | .deps[] |
    .depName as $name | .updates[]? | select(.pendingChecks | not) | "\($name) \(.newVersion)"' "$WORK/renovate.log" | sort -u
}

moves=0
for step in $(steps); do
  lay_over "$step" "$FILES"
  ((step == 0)) || { heads >"$WORK/before"; pin <"$WORK/before"; }
  "$CATALOG_MIRROR" poll --store "$STORE" --catalog "up=dir:$FILES" >>"$WORK/poll.log" 2>&1
  ((step > 0)) || { serve "$STORE"; continue; }
  # A server holds a pointer for a second.
  sleep 1.1
  heads >"$WORK/after"
  expected=$(join -t $'\t' <(cut -f1-3 "$WORK/before" | sed 's/\t/\//' | sort) <(cut -f1-3 "$WORK/after" | sed 's/\t/\//' | sort) | awk -F'\t' '$2 != $3 {print $1, $3}' | sort)
  [[ -n $expected ]] || continue
  moves=$((moves + $(wc -l <<<"$expected")))
  configure
  succeeds "step $step: Renovate looks for updates" look
  same_lines "step $step: it proposes the moves of heads in the ImageSetConfiguration" "$(proposed '^imageset')" "$expected"
  same_lines "step $step: and in the Subscriptions" "$(proposed '^subscription')" "$expected"
done
matches "$moves heads moved" "$moves" '^[1-9]'
configure "7 days"
succeeds "Renovate looks with a minimum age" look
is "a minimum age holds them" "$(proposed .)" ""
