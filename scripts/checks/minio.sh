# The parts s3 and poller on MinIO, a real server that checks signatures and answers requests side by side. A long check,
# because building MinIO takes five minutes.
# shellcheck shell=bash

# shellcheck disable=SC2034 # The parts below read it.
S3_SERVER=minio
# shellcheck source=/dev/null
source "$HERE/s3.sh"
# shellcheck source=/dev/null
source "$HERE/poller.sh"
