#!/bin/sh
# Stops the services before their program goes, unless this is an update: `remove` for deb, 0 for rpm.
set -e
case ${1:-} in
  remove | 0)
    if [ -d /run/systemd/system ]; then
      systemctl disable --now catalog-mirror.service catalog-mirror-serve.service catalog-mirror-sync.timer catalog-mirror-sync.service
    fi
    ;;
esac
