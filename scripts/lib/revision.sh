# The commit and the time of what is built.
# shellcheck shell=bash

# set_time_and_revision: REVISION is the commit, with `-dirty` if something differs from it; a source archive has none. CREATED is its time.
set_time_and_revision() {
  REVISION=$(git -C "$ROOT" describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null) || REVISION=unknown
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null)} ||
    die "this is not a git checkout: set SOURCE_DATE_EPOCH to the time of the commit, in seconds since 1970"
  export SOURCE_DATE_EPOCH
  CREATED=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
}
