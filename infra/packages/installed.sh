#!/bin/sh
# Runs after the files of the package are in place. In a container or a chroot without systemd there is nothing to do.
set -e
if command -v systemd-sysusers >/dev/null; then systemd-sysusers catalog-mirror.conf; fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # What runs goes on with the new program. After a first installation nothing runs. A service that does not start is no failure of the
  # installation.
  systemctl try-restart catalog-mirror.service catalog-mirror-serve.service || true
fi
