# One line per check on standard output: `ok ...` or `not ok ...`. Results add up in $RESULTS over all parts.
# shellcheck shell=bash

ok() {
  printf 'ok %s\n' "$*"
  printf 'ok\n' >>"$RESULTS"
}

not_ok() {
  local detail=${2:-}
  printf 'not ok %s\n' "$1"
  printf 'not ok\n' >>"$RESULTS"
  printf '%s: %.200s\n' "$(basename "$WORK")" "$1 (${detail//$'\n'/ })" >>"$RESULTS.failed"
  shift
  # What is known of the failure follows as comments, so that a reader of the log need not run it again.
  for detail in "$@"; do printf '%s\n' "$detail" | head -c 2000 | head -20 | sed 's/^/#   /'; done
}

# is NAME ACTUAL EXPECTED
is() {
  if [[ $2 == "$3" ]]; then ok "$1"; else not_ok "$1" "is:       $2" "expected: $3"; fi
}

# matches NAME ACTUAL REGEX
matches() {
  if [[ $2 =~ $3 ]]; then ok "$1"; else not_ok "$1" "is:       $2" "expected: $3"; fi
}

# same_lines NAME ACTUAL EXPECTED: as sets of lines, printed as a difference.
same_lines() {
  local difference
  if difference=$(diff <(sort <<<"$2") <(sort <<<"$3")); then
    ok "$1"
  else
    not_ok "$1" "< is, > expected:" "$difference"
  fi
}

# succeeds NAME COMMAND...
succeeds() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "$*" "$output"; fi
}

# at_most FIGURE MAX: also of numbers with a fraction.
at_most() { awk -v figure="$1" -v max="$2" 'BEGIN {exit !(figure <= max)}'; }

# code_of COMMAND...: its exit code; what it says is in $WORK/said.
code_of() {
  local code=0
  "$@" >"$WORK/said" 2>&1 || code=$?
  echo "$code"
}

# fails NAME REGEX COMMAND...: with exit code 1 and these words.
fails() { matches "$1" "$(code_of "${@:3}") $(<"$WORK/said")" "^1 .*($2)"; }

# ends_well NAME PID: SIGTERM ends the process, with exit code 0.
ends_well() {
  local code=0
  kill -TERM "$2"
  wait "$2" || code=$?
  is "$1" "$code" 0
}

# relay PREFIX: the lines of a program that checks by itself, on standard input, as checks with the prefix.
relay() {
  local line
  while IFS= read -r line; do
    case $line in
      'ok '*) ok "$1${line#ok }" ;;
      'not ok '*) not_ok "$1${line#not ok }" ;;
      *) say "$line" ;;
    esac
  done
}

# tally: what failed, then the closing line; fails if anything did, or if nothing was checked at all.
tally() {
  local passed failed
  [[ ! -f $RESULTS.failed ]] || sed 's/^/not ok /' "$RESULTS.failed"
  passed=$(grep -cx ok "$RESULTS" || true)
  failed=$(grep -cx 'not ok' "$RESULTS" || true)
  printf '%s passed, %s failed\n' "$passed" "$failed"
  ((failed == 0 && passed > 0))
}
