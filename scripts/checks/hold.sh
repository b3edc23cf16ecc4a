# What looks like an accident is held back, and updates are not: accidents, releases and renderings made of real catalogs, and the
# real updates.
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

packages stable
is "the first content is published" "$(poll)" "published 10"
packages fast
is "content that looks like an accident is refused" "$(poll)" "refused 1"
matches "ls tells the reasons" "$("$CATALOG_MIRROR" ls --store "$WORK/store")" "the channels of 6 of 6 packages change at once \(many-channels\): a: the channel stable is gone"
fails "diff --held asks for the folder, of which the store knows the last part" "dir:source: name the file" "$CATALOG_MIRROR" diff --held c --store "$WORK/store"
matches "and shows all of it" "$("$CATALOG_MIRROR" diff --held c "dir:$WORK/source" --store "$WORK/store")" "f +channel .*fast"
succeeds "release lets it through" "$CATALOG_MIRROR" release c --store "$WORK/store"
is "what was released is published" "$(poll)" "published 10"
fails "nothing is held any more" "nothing of c is held back" "$CATALOG_MIRROR" release c --store "$WORK/store"
packages stable
is "it is held once more" "$(poll)" "refused 1"
is "a forced poll publishes it" "$(outcome "$WORK/store" "c=dir:$WORK/source" --force)" "published 10"
