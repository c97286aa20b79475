#!/bin/bash
# Makes sure that tests have these Python packages: tools/python-packages.sh NAME PACKAGE==VERSION…
# They lie in .cache/python/NAME, away from the system's, and are installed when the list changes.
set -u
name=$1
shift
folder=.cache/python/$name
list=$(printf '%s\n' "$@")
[ "$(cat "$folder/drover-packages" 2>/dev/null)" = "$list" ] && exit 0

echo "Installing Python packages for tests ($name): $*"
log=$(mktemp)
if rm -rf "$folder" && mkdir -p "$(dirname "$folder")" && python3 -m venv "$folder" &&
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"; then
  echo "$list" >"$folder/drover-packages"
fi >"$log" 2>&1
if [ ! -e "$folder/drover-packages" ]; then
  cat "$log" >&2
  echo "Could not install the Python packages of $name. Tests that need them will fail." >&2
  rm -f "$log"
  [ "${CI:-}" = true ] && exit 1
fi
rm -f "$log"
exit 0
