# The workflows of .github: actionlint finds no fault in them, and zizmor no way in. Both work without a network. What the workflows run
# is there.
# shellcheck shell=bash

FLOWS=$ROOT/.github/workflows

need_actionlint
need_python zizmor "$ZIZMOR"
# actionlint has shellcheck read the steps.
need_debian shellcheck=shellcheck
succeeds "actionlint accepts the workflows" actionlint -no-color "$FLOWS"/*.yml
succeeds "zizmor finds nothing, as an auditor" zizmor --offline --no-progress --color never --persona auditor "$ROOT/.github"
is "each action is pinned by its commit" "$(grep -hE '^ *-? *uses:' "$FLOWS"/*.yml | grep -vE '@[0-9a-f]{40} # v[0-9.]+$')" ""
is "no job has rights by default" "$(grep -Lx 'permissions: {}' "$FLOWS"/*.yml)" ""
while read -r script; do
  succeeds "the script $script is there" test -x "$ROOT/$script"
done < <(grep -hoE '(^|[ ])(\.ci/run|scripts/[a-z-]+)' "$FLOWS"/*.yml | tr -d ' ' | sort -u)
