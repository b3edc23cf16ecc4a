#!/bin/sh
# Runs after the files are gone. The store and the settings stay, for the administrator to remove.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
