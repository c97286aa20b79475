#!/bin/bash
# Makes sure that the named Debian packages are here: installs them as root, else says what to type.
set -u
missing=()
for package in "$@"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)
  [[ $status == *'ok installed' ]] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "Tests need packages that are not installed. On Debian or Ubuntu:" >&2
  echo "  sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 0 # The tests that need them say so themselves, and fail where CI=true.
fi

# Their daemons (prometheus, redis) must not start here: only the programs are wanted.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
echo "Installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null; } # Another's install is waited for.
install() { apt install -y -qq --no-install-recommends "${missing[@]}"; }
log=$(mktemp)
if install >"$log" 2>&1 || { apt update -qq && install; } >"$log" 2>&1; then
  rm -f "$log"
else
  cat "$log" >&2
  echo "Could not install: ${missing[*]}. Tests that need them will fail." >&2
  [ "${CI:-}" = true ] && exit 1
fi
exit 0
