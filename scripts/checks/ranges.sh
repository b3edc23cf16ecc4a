# Ranges of versions against the libraries that OLM and oc-mirror v2 read them with: blang/semver v4.0.0 for what bundles require,
# Masterminds/semver v3.4.0 for selections.
# shellcheck shell=bash

need_versions
"$TESTED/examples/ranges" >"$WORK/ranges.jsonl"
succeeds "both libraries and the mirror agree on $(wc -l <"$WORK/ranges.jsonl") ranges" versions <"$WORK/ranges.jsonl"
