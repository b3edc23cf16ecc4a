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

# need_go COMMAND PACKAGE@VERSION: builds a program with Go, once.
need_go() {
  has_go_program "$1" "$2" && return
  say "building $2"
  # `go install` also asks which other versions there are, and not every proxy of modules tells that.
  GOBIN=$GO_PROGRAMS go install "$2" 2>/dev/null || go_module "$@"
  echo "$2" >"$GO_PROGRAMS/$1.source"
}

# need_go_folder COMMAND FOLDER: the same from a source that lies here.
need_go_folder() {
  local source
  source=$(cat "$2"/{main.go,go.mod,go.sum} | sha256)
  has_go_program "$1" "$source" && return
  say "building $1"
  (cd "$2" && CGO_ENABLED=0 go build -o "$GO_PROGRAMS/$1" .) || die "$1 cannot be built"
  echo "$source" >"$GO_PROGRAMS/$1.source"
}

# has_go_program COMMAND SOURCE: whether it is there, made of that; if not, Go is there afterwards.
has_go_program() {
  GO_PROGRAMS=${XDG_CACHE_HOME:-$HOME/.cache}/catalog-mirror/go
  export PATH=$PATH:$GO_PROGRAMS
  if [[ -x $GO_PROGRAMS/$1 && $(cat "$GO_PROGRAMS/$1.source" 2>/dev/null) == "$2" ]]; then return 0; fi
  export PATH=$PATH:/usr/local/go/bin
  need_debian go=golang-go
  return 1
}

# go_module COMMAND PACKAGE@VERSION: through a module that requires the package.
go_module() {
  local module=$WORK/module-$1
  mkdir -p "$module"
  (cd "$module" && go mod init tool && go get "$2" && CGO_ENABLED=0 go build -o "$GO_PROGRAMS/$1" "${2%@*}") >"$module/log" 2>&1 ||
    die "$2 cannot be built: $(tail -5 "$module/log")"
}

# need_tool COMMAND PACKAGE: the same, unless the command is on the path already.
need_tool() {
  command -v "$1" >/dev/null || need_python "$@"
}

need_debian_venv() {
  as_root apt-get install -qq -y python3-venv >/dev/null
}
