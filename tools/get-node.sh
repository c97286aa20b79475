#!/bin/bash
# Puts a Node binary from the npm registry into .node/bin: get-node.sh PACKAGE@VERSION
set -euo pipefail
package=$1
pins=$PWD/tools/node.sha512
if ! command -v npm >/dev/null; then
  echo "Drover gets Node and its packages by npm, which is not installed." >&2
  echo "On Debian or Ubuntu: sudo apt-get install -y nodejs npm" >&2
  exit 1
fi
echo "Getting $package into .node/ (the system's Node is $(node -v 2>/dev/null || echo absent))"
rm -rf .node
mkdir -p .node/tmp .node/bin
if ! npm pack --silent --prefer-offline --pack-destination .node/tmp "$package" >/dev/null; then
  echo "npm could not get $package. Check the network, or install Node 24.15 or newer." >&2
  exit 1
fi
# npm has checked the archive against the registry's digest. With no line in the list this fails.
(cd .node/tmp && sha512sum --check --quiet --ignore-missing "$pins")
tar -xzf .node/tmp/*.tgz -C .node/tmp package/bin/node
mv .node/tmp/package/bin/node .node/bin/node
touch .node/bin/node
rm -rf .node/tmp
