# A registry that fails now and then, a catalog that changes every second, and other work while clients send requests.
# shellcheck shell=bash

SOAK_REPOSITORY=ns/soak

# note_registry: the process of the registry that was just started, which is the plain one, over the same folder and port each time.
note_registry() {
  echo "$STARTED_PID" >"$WORK/registry.pid"
  # Or the shell would tell of every end that it is meant to have.
  disown "$STARTED_PID"
}

keep_moving() { python3 -B "$LIB/soak_catalog.py" "$PLAIN_REGISTRY" "$SOAK_REPOSITORY" "$WORK/stop" "$WORK/moves"; }

# Two to six times a minute the registry ends, is killed, or stops answering for some seconds, at random moments.
keep_failing() {
  local signals=(TERM KILL STOP) signal
  while [[ ! -e $WORK/stop ]]; do
    sleep "$((5 + RANDOM % 16)).$((RANDOM % 10))"
    signal=${signals[RANDOM % 3]}
    kill "-$signal" "$(<"$WORK/registry.pid")"
    sleep "$((2 + RANDOM % 4)).$((RANDOM % 10))"
    if [[ $signal == STOP ]]; then
      kill -CONT "$(<"$WORK/registry.pid")"
    else
      run_registry "$WORK/plain-registry" && note_registry && wait_for 20 curl -sf -m 1 "http://$PLAIN_REGISTRY/v2/"
    fi
    echo "$signal" >>"$WORK/outages"
  done
}

# Collection runs beside everything else. Its steps are two hours apart, so in a short run it condemns and deletes nothing;
# what follows the last copy does.
keep_collecting() {
  while [[ ! -e $WORK/stop ]]; do
    sleep "$BETWEEN"
    collect "$WORK/store"
    collect "$WORK/copy"
  done
}

# collect STORE [OPTION...]: one run; its report is added to $WORK/gc.
collect() {
  [[ -d $1/catalogs ]] || return 0
  "$CATALOG_MIRROR" gc --json --store "$1" --keep-generations 2 "${@:2}" >>"$WORK/gc" 2>>"$WORK/gc.err" ||
    echo "gc of ${1##*/}" >>"$WORK/failures"
}

# Another mirror copies this one again and again.
keep_copying() {
  while [[ ! -e $WORK/stop ]]; do
    sleep "$((1 + RANDOM % 4))"
    if copy 2>"$WORK/copy.err"; then
      echo copied >>"$WORK/copies"
    else
      echo "sync: $(tail -1 "$WORK/copy.err")" >>"$WORK/failures"
    fi
  done
}

copy() { "$CATALOG_MIRROR" sync "$URL" "$WORK/copy" >/dev/null; }

lines_of() { if [[ -f $1 ]]; then wc -l <"$1"; else echo 0; fi; }
