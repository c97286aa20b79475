#!/bin/sh
# Joins this machine to a Drover cluster: gets the self-contained agent, once, and becomes it.
#
#   curl -fsS URL/install/join.sh | DROVER_JOIN_TOKEN=… sh
#   curl -fsS URL/install/join.sh | DROVER_JOIN_TOKEN=… sh -s -- --name gpu-3
#
# Options are those of `drover agent`. Variables, beside its settings:
#   DROVER_JOIN_TOKEN       the token of `drover tokens create --kind join`
#   DROVER_JOIN_TOKEN_FILE  or a file that holds it and that only its owner may read
#   DROVER_URL              another address of the same gateway
#   DROVER_CA_FILE          whom to trust beside the public authorities (PEM)
#   DROVER_INSTALL_DIR      where agents are kept by checksum; else below the home folder
set -eu
umask 077

SUM_TRIES=6
# A server that many machines ask at once lets them wait for some minutes.
TRIES=40
WRONG_SUMS=3
LONGEST_PAUSE_S=15
# Whoever began the download and has not shown itself for so long is taken for dead.
LOCK_MINUTES=2

fail() {
  printf 'drover: %s\n' "$1" >&2
  exit 1
}

have() {
  command -v "$1" >/dev/null 2>&1
}

fetch() {
  if have curl; then
    curl -fsS --connect-timeout 20 ${DROVER_CA_FILE:+--cacert "$DROVER_CA_FILE"} "$url/install/$1"
  else
    wget -q -O - ${DROVER_CA_FILE:+--ca-certificate="$DROVER_CA_FILE"} "$url/install/$1"
  fi
}

# Machines that start together should not come back together.
pause() {
  [ "$1" -lt "$LONGEST_PAUSE_S" ] || set -- "$LONGEST_PAUSE_S"
  sleep $(($1 + $$ % 3))
}

is_whole() {
  found=$(sha256sum <"$1")
  [ "${found%% *}" = "$sum" ]
}

learn_sum() {
  try=1
  until sum=$(fetch "agent.sha256?platform=$platform"); do
    [ "$try" -lt "$SUM_TRIES" ] ||
      fail "$url/install/agent.sha256 cannot be read; a server has it after: make agent-bundle"
    pause "$try"
    try=$((try + 1))
  done
  sum=${sum%% *}
  case $sum in
    *[!0-9a-f]*) sum='' ;;
  esac
  [ "${#sum}" -eq 64 ] || fail "$url/install/agent.sha256 is no checksum; is a proxy in between?"
}

# Into a name of its own on every machine that shares the folder.
fetch_agent() {
  touch "$lock" 2>/dev/null || :
  if have gzip; then
    fetch "agent.gz?platform=$platform" >"$part.gz" || return 1
    gzip -dc <"$part.gz" >"$part" || :
    rm -f "$part.gz"
  else
    fetch "agent?platform=$platform" >"$part" || return 1
  fi
  is_whole "$part" && return 0
  wrong=$((wrong + 1))
  [ "$wrong" -lt "$WRONG_SUMS" ] || fail "$url/install/agent does not fit its checksum"
  return 1
}

# Whole or not at all.
download() {
  try=1 wrong=0
  until fetch_agent; do
    [ "$try" -lt "$TRIES" ] || fail "$url/install/agent could not be fetched"
    pause "$try"
    try=$((try + 1))
  done
  chmod 700 "$part"
  mv -f "$part" "$agent"
}

give_up() {
  rm -f "$part" "$part.gz"
  rmdir "$lock" 2>/dev/null || :
}

# One download for all that share the folder, also over NFS, where a folder is made only once.
get() {
  [ -w "$cache" ] || fail "$cache cannot be written; name another folder by DROVER_INSTALL_DIR"
  lock=$agent.lock part=$agent.$(uname -n).$$.part
  until mkdir "$lock" 2>/dev/null; do
    [ ! -x "$agent" ] || return 0
    dead=$(find "$lock" -prune -mmin "+$LOCK_MINUTES" 2>/dev/null || :)
    [ -z "$dead" ] || rmdir "$lock" 2>/dev/null || :
    sleep 1
  done
  trap give_up EXIT
  trap 'exit 130' INT TERM HUP
  [ -x "$agent" ] || download
  give_up
  trap - EXIT INT TERM HUP
}

read_token() {
  file=${DROVER_JOIN_TOKEN_FILE:-}
  unset DROVER_JOIN_TOKEN_FILE
  [ -n "$file" ] || return 0
  [ -r "$file" ] || fail "DROVER_JOIN_TOKEN_FILE names $file, which cannot be read"
  case $(ls -lLd "$file") in
    -r[w-][x-]------*) ;;
    *) fail "$file holds a secret and others may read it; try: chmod 600 $file" ;;
  esac
  DROVER_JOIN_TOKEN=$(cat "$file")
  export DROVER_JOIN_TOKEN
}

# Everything is in here, so that half a script, from a connection that broke, does nothing.
main() {
  url='@URL@'
  url=${DROVER_URL:-$url}
  url=${url%/}
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) platform=linux-x64 ;;
    Linux-aarch64) platform=linux-arm64 ;;
    *) fail "there is no agent for $(uname -s) on $(uname -m)" ;;
  esac
  have curl || have wget || fail 'neither curl nor wget is installed'
  have sha256sum || fail 'sha256sum is not installed; it is part of coreutils'
  home=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
  cache=${DROVER_INSTALL_DIR:-${home:+$home/drover}}
  unset DROVER_INSTALL_DIR
  [ -n "$cache" ] || fail 'HOME is not set; name a folder for the agent by DROVER_INSTALL_DIR'
  read_token
  learn_sum
  mkdir -p "$cache"
  agent=$cache/agent-$sum
  if [ -x "$agent" ] && ! is_whole "$agent"; then
    rm -f "$agent"
  fi
  [ -x "$agent" ] || get
  "$agent" --version >/dev/null ||
    fail "$agent does not run here: it needs glibc 2.28, libstdc++ and no mount with noexec"
  exec "$agent" agent --join "$url" "$@" </dev/null
}

main "$@"
