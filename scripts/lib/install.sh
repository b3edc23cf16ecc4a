# Installs what is missing; what cannot be installed is an error, never a skip.
# shellcheck shell=bash

as_root() {
  if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

# need_debian COMMAND=PACKAGE...: installs the packages whose commands are missing.
need_debian() {
  local missing=() pair
  export PATH=$PATH:/usr/sbin
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || missing+=("${pair##*=}")
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  # Packages that start a service must not: the suite starts its own, on its own ports.
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || die "${pair##*=} is installed, but there is no ${pair%%=*}"
  done
}

# need_python COMMAND PACKAGE...: puts packages into a virtual environment that later runs use again.
need_python() {
  VENV=${XDG_CACHE_HOME:-$HOME/.cache}/catalog-mirror/venv
  if [[ ! -x $VENV/bin/$1 ]]; then
    say "installing ${*:2}"
    [[ -x $VENV/bin/pip ]] || python3 -m venv "$VENV" || { need_debian_venv && python3 -m venv --clear "$VENV"; }
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
  fi
  export PATH=$PATH:$VENV/bin
}

# need_go COMMAND MODULE@VERSION: builds a program with Go, once.
need_go() {
  local programs=${XDG_CACHE_HOME:-$HOME/.cache}/catalog-mirror/go
  if [[ ! -x $programs/$1 ]]; then
    export PATH=$PATH:/usr/local/go/bin
    need_debian go=golang-go
    say "building $2"
    GOBIN=$programs go install "$2"
  fi
  export PATH=$PATH:$programs
}

# need_tool COMMAND PACKAGE: the same, unless the command is on the path already.
need_tool() {
  command -v "$1" >/dev/null || need_python "$@"
}

need_debian_venv() {
  as_root apt-get install -qq -y python3-venv >/dev/null
}
