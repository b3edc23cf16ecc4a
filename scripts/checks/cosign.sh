# The part signatures with cosign too: it signs, makes bundles, and accepts what openssl signed. A long check, because building
# cosign takes eight minutes.
# shellcheck shell=bash

# shellcheck disable=SC2034 # The part below reads it.
WITH_COSIGN=1
# shellcheck source=/dev/null
source "$HERE/signatures.sh"
