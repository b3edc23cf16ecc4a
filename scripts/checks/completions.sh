# Tab in interactive shells, with names of packages and of files that a shell would run as commands. What is completed is a name, and
# a name that no shell takes as one word is not offered.
# shellcheck shell=bash

HOME_OF_SHELL=$WORK/home

# The catalog and the files of strangers. `redis` is sound, so that a shell that completes nothing is noticed.
strange_names() {
  mkdir -p "$WORK/cat" "$WORK/bin" "$HOME_OF_SHELL" "$WORK/typed"
  ln -sf "$CATALOG_MIRROR" "$WORK/bin/catalog-mirror"
  jq -nc '"etcd;touch made1", "kafka$(touch${IFS}made2)", "mongo\ntouch made3", "nats`touch made4`", "--force", "qdrant&touch made5",
      "redis" | {schema: "olm.package", name: ., defaultChannel: "s"},
    {schema: "olm.channel", package: ., name: "s", entries: [{name: "v1"}]},
    {schema: "olm.bundle", package: ., name: "v1", image: "x/y:1",
      properties: [{type: "olm.package", value: {packageName: ., version: "1.0.0"}}]}' >"$WORK/cat/catalog.json"
  "$CATALOG_MIRROR" poll --store "$WORK/typed/st" --catalog "c=dir:$WORK/cat" >/dev/null 2>&1
  touch "$WORK/typed/a;touch made6" "$WORK/typed/b\$(touch made7)" "$WORK/typed/receipt.json"
}

# tab_in SHELL PROGRAM...: types the lines into the shell, whose first line loads the completions.
tab_in() {
  local shell=$1
  shift
  rm -rf "$WORK"/typed/made* "$WORK/typed/drawn"
  (
    cd "$WORK/typed" || exit
    env HOME="$HOME_OF_SHELL" XDG_CONFIG_HOME="$HOME_OF_SHELL" XDG_DATA_HOME="$HOME_OF_SHELL" XDG_RUNTIME_DIR="$HOME_OF_SHELL" \
      PATH="$WORK/bin:$PATH" CATALOG_MIRROR_STORE=st TERM=xterm python3 "$ROOT/scripts/lib/type_lines.py" "$@"
  ) >"$WORK/$shell.screen" 2>&1 <<EOF
$(cat)
catalog-mirror graph c etc\t
catalog-mirror graph c kaf\t
catalog-mirror graph c mon\t
catalog-mirror graph c nat\t
catalog-mirror graph c qdr\t
catalog-mirror import a\t
catalog-mirror import b\t
catalog-mirror graph c red\t --format dot > drawn
EOF
  is "$shell: no name of a stranger runs as a command" "$(cd "$WORK/typed" && compgen -G 'made*')" ""
  matches "$shell: a sound name is completed" "$(cat "$WORK/typed/drawn" 2>&1)" 'digraph "redis"'
}

# The protocol of each shell, also of PowerShell, which is no package of Debian: no candidate needs a quote.
candidates() {
  local shell words=(catalog-mirror graph --store "$WORK/typed/st" c "")
  for shell in bash elvish fish powershell zsh; do
    same_lines "$shell is offered the sound name alone" "$(
      _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) CATALOG_MIRROR_COMPLETE=$shell "$CATALOG_MIRROR" -- "${words[@]}" |
        sed 's/[:\t].*//' | grep -v '^-'
    )" redis
  done
}

need_debian jq=jq python3=python3 zsh=zsh fish=fish elvish=elvish
strange_names
tab_in bash bash --norc --noprofile -i <<<'source <(catalog-mirror completions bash)'
tab_in zsh zsh -f -i <<<'autoload -Uz compinit && compinit -u && source <(catalog-mirror completions zsh)'
tab_in fish fish --private -i <<<'catalog-mirror completions fish | source'
tab_in elvish elvish -norc <<<'eval (catalog-mirror completions elvish | slurp)'
candidates
