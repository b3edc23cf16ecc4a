# Kills, full and read-only disks, and missing rights, over small catalogs. Each command ends in success or in a clear error, the published
# state stays served, and the next run finishes the work. scripts/chaos has several writers, clocks that jump, and all of it at once.
# The tests of shared/core/store have an S3 server that fails or hangs.
# shellcheck shell=bash

# They take most of the time of this part.
KILLS=40

# version NUMBER: a folder with a small catalog; neighbours share most packages.
version() {
  local package folder=$WORK/version-$1
  for package in ant bee cow dog; do
    mkdir -p "$folder/$package"
    printf 'schema: olm.package\nname: %s\n---\nschema: olm.bundle\nname: %s.v1\npackage: %s\n' "$package" "$package" \
      "$package" >"$folder/$package/catalog.yaml"
  done
  printf -- '---\nschema: olm.bundle\nname: bee.v%s\npackage: bee\n' "$(($1 + 2))" >>"$folder/bee/catalog.yaml"
  echo "$folder"
}

# small_poll STORE VERSION [OPTION...]
small_poll() { "$CATALOG_MIRROR" poll --detailed-exitcode --store "$1" --catalog "f=dir:$WORK/version-$2" "${@:3}"; }
verify() { "$CATALOG_MIRROR" verify --store "$1"; }

# The part sync kills sync and import. Polls are forced, since others refuse a revision under which several processes in a row died.
killed_everywhere() {
  local store=$WORK/killed rings=$WORK/killed-rings number
  small_poll "$store" 0 >/dev/null 2>&1 || true
  kills poll "$store" "$CATALOG_MIRROR" poll --force --store "$store" --catalog "f=dir:$WORK/version-{}"
  kills rollback "$store" "$CATALOG_MIRROR" rollback --store "$store" f --previous
  for number in 0 1; do
    printf 'catalogs: [{name: f, source: "dir:%s", hold: off}, {name: ring, ring: {of: f, after: 1s}}]' "$WORK/version-$number" >"$WORK/rings-$number.yaml"
  done
  # A store of its own: publications in quick succession are dated a second apart, so those above may have a date in the future, which is
  # not old enough for a ring. For the same reason each run begins more than the delay after the one before.
  PAUSE=1.1 kills ring "$rings" "$CATALOG_MIRROR" poll --force --store "$rings" --config "$WORK/rings-{}.yaml"
  succeeds "the ring took at least $((KILLS / 8)) steps" test "$(jq .serial "$rings/catalogs/ring/current.json")" -gt "$((KILLS / 8))"
  kills gc "$store" "$CATALOG_MIRROR" gc --store "$store"
}

# bad_place NAME REGEX STORE MEND...: while something is wrong with the store a poll fails with these words, and what was published is
# whole. After the command MEND the next poll succeeds.
bad_place() {
  fails "$1: a poll fails, and says so" "$2" with_rights_only "$CATALOG_MIRROR" poll --store "$3" --catalog "f=dir:$WORK/version-1"
  succeeds "$1: what was published is still whole" verify "$3"
  "${@:4}"
  is "$1: the next poll succeeds" "$(code_of small_poll "$3" 2)" 10
  succeeds "$1: verify finds nothing wrong then" verify "$3"
}

# with_rights_only COMMAND...: runs it without the capabilities by which root ignores file modes.
with_rights_only() {
  if ((EUID == 0)); then setpriv --bounding-set=-dac_override,-dac_read_search "$@"; else "$@"; fi
}

bad_places() {
  local disk=$WORK/disk store=$WORK/read-only rights=$WORK/rights
  need_debian setpriv=util-linux
  mkdir -p "$disk" "$store"
  if mount -t tmpfs -o size=512k tmpfs "$disk" 2>/dev/null; then
    small_poll "$disk/store" 0 >/dev/null 2>&1 || true
    dd if=/dev/zero of="$disk/ballast" bs=4k >/dev/null 2>&1 || true
    bad_place "a full disk" "[Nn]o space" "$disk/store" rm "$disk/ballast"
    umount "$disk"
    mount --bind "$store" "$store"
    small_poll "$store" 0 >/dev/null 2>&1 || true
    mount -o remount,ro,bind "$store"
    bad_place "a folder that became read-only" "[Rr]ead-only" "$store" mount -o remount,rw,bind "$store"
    umount "$store"
  else
    say "NOT TRIED: a full disk and a read-only folder, as nothing may be mounted here"
  fi
  small_poll "$rights" 0 >/dev/null 2>&1 || true
  chmod a-w "$rights/catalogs/f"
  bad_place "a folder that may not be written" "not allowed to" "$rights" chmod u+w "$rights/catalogs/f"
  chmod 0 "$rights/catalogs/f/current.json"
  is "a pointer that may not be read is none that is missing" "$(code_of with_rights_only "$CATALOG_MIRROR" poll \
    --store "$rights" --catalog "f=dir:$WORK/version-1")" 1
  chmod 644 "$rights/catalogs/f/current.json"
  is "its serial is as it was" "$(serials "$rights")" 2
}

for number in 0 1 2; do version "$number" >/dev/null; done
killed_everywhere
bad_places
