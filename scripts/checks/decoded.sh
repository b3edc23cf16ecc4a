# Random updates of a small catalog: gunzip, Python, zstd and umoci decode every object of every publication, and of copies of one in ten.
# UPDATES in the environment says how many, SEED which.
# shellcheck shell=bash

COUNT=${UPDATES:-2000}
if $SHORT; then COUNT=20; fi
python3 -B "$LIB/decoded.py" random "$CATALOG_MIRROR" "$WORK/random" "$COUNT" "${SEED:-$RANDOM}" | relay ""
