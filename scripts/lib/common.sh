# What every script here needs: where things are, a temporary folder that goes away, processes that end with the script.
# shellcheck shell=bash

((BASH_VERSINFO[0] >= 4)) || { echo "$0 needs bash 4 or later, and this is $BASH_VERSION" >&2; exit 1; }
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
LIB=$ROOT/scripts/lib
export ROOT

# use NAME...: more files of this folder.
use() {
  local file
  for file in "$@"; do
    # shellcheck source=/dev/null
    source "$LIB/$file.sh"
  done
}

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

# The comment on top of the script is its help.
print_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

# read_options ARGUMENT...: OPTION has the options of the script with their defaults, and afterwards what the arguments say. An option
# whose default is `false` takes no value. WORDS has the other arguments.
read_options() {
  local name
  WORDS=()
  while (($#)); do
    name=${1#--}
    if [[ $1 == --help ]]; then
      print_help
      exit
    elif [[ $1 != -* ]]; then
      WORDS+=("$1")
    elif [[ $1 != --?* || -z ${OPTION[$name]+known} ]]; then
      die "there is no option $1; see --help"
    elif [[ ${OPTION[$name]} == @(false|true) ]]; then
      OPTION[$name]=true
    else
      (($# >= 2)) || die "$1 needs a value"
      OPTION[$name]=$2
      shift
    fi
    shift
  done
}

# read_only_options ARGUMENT...: the same for a script that takes nothing else.
read_only_options() {
  read_options "$@"
  ((${#WORDS[@]} == 0)) || die "there is no option ${WORDS[0]}; see --help"
}

# Makes WORK, and removes it when the script ends, however it ends.
use_work_folder() {
  WORK=$(mktemp -d) PORTS=$WORK/ports
  export WORK PORTS
  shuf -n 1 -i 20000-26000 >"$PORTS"
  STARTED=()
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

clean_up() {
  local status=$?
  trap - EXIT
  # A stopped process ends only when it goes on.
  for process in "${STARTED[@]}"; do { kill "$process" && kill -CONT "$process"; } 2>/dev/null || true; done
  # Kubernetes' API server waits for minutes for an etcd that ended before it.
  wait_for 10 all_ended || kill -KILL "${STARTED[@]}" 2>/dev/null || true
  for process in "${STARTED[@]}"; do wait "$process" 2>/dev/null || true; done
  rm -rf "$WORK"
  return "$status"
}

all_ended() { ((${#STARTED[@]} == 0)) || ! kill -0 "${STARTED[@]}"; }

# start LOG COMMAND...: runs a server in the background; its process is $STARTED_PID.
start() {
  local log=$1
  shift
  "$@" >>"$log" 2>&1 &
  STARTED_PID=$!
  STARTED+=("$STARTED_PID")
}

# end_process PID...: with its ordinary signal, and waits for its end.
end_process() {
  kill "$@"
  wait "$@" 2>/dev/null || true
}

# free_port: a port that nothing listens on now, and that nothing else of this run gets.
free_port() { python3 -B "$ROOT/scripts/lib/ports.py"; }

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local tries=$(($1 * 20))
  shift
  for ((i = 0; i < tries; i++)); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.05
  done
  say "gave up waiting for: $*"
  return 1
}

# use_binary [PROFILE]: the program that is run: $CATALOG_MIRROR, or a build of this checkout in the profile (default: release).
use_binary() {
  local profile=${1:-release}
  if [[ -z ${CATALOG_MIRROR:-} ]]; then
    (cd "$ROOT" && cargo build --locked --quiet --profile "$profile" --bin catalog-mirror)
    CATALOG_MIRROR=$(target_folder)/$profile/catalog-mirror
  fi
  need_program
}

need_program() {
  [[ -x $CATALOG_MIRROR ]] || die "$CATALOG_MIRROR is no program"
  export CATALOG_MIRROR
}

# Sets TESTED to the folder with the program, the controller, both functions, the load test and the examples (one of them is
# the conformance suite of the stores): $CATALOG_MIRROR_TESTED, or a build with the features of `cargo test --workspace`. The
# examples make cargo count the features that tests add; otherwise the AWS SDK and a hundred libraries would be compiled once
# more.
use_tested() {
  TESTED=${CATALOG_MIRROR_TESTED:-}
  if [[ -z $TESTED ]]; then
    (cd "$ROOT" && cargo build --locked --quiet --workspace --bin catalog-mirror --bin catalog-mirror-controller \
      --bin poller --bin reader --bin load --examples)
    TESTED=$(target_folder)/debug
  fi
  CATALOG_MIRROR=${CATALOG_MIRROR:-$TESTED/catalog-mirror}
  need_program
}

# package_of PROGRAM: the package of this workspace that has the program.
package_of() {
  cargo metadata --manifest-path "$ROOT/Cargo.toml" --format-version 1 --no-deps |
    jq -er --arg program "$1" '.packages[] | select(any(.targets[]; .kind == ["bin"] and .name == $program)).name' || die "no package has the program $1"
}

target_folder() { (cd "$ROOT" && cargo metadata --format-version 1 --no-deps | jq -r .target_directory); }

sha256() { sha256sum "$@" | cut -d' ' -f1; }
now_ms() { date +%s%3N; }
