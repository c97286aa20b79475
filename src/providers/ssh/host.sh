# What the ssh provider does on a host, for any POSIX sh. It is sent whole with each command; before
# it stand assignments: verb, root, cluster, pool, host, and what the verb needs. Everything that
# must be remembered lies in one folder here; who made the link `label` in it owns the host.
# shellcheck disable=SC2154 # those assignments
set -u
umask 077
LC_ALL=C
export LC_ALL

# Orderly end of an agent: it gives itself 20 s.
STOP_S=25
# What is still running of attempts is killed at once; this is for the kernel.
ATTEMPTS_S=30
# A run this long was no failure to start.
STEADY_S=600
LOG_BYTES=16777216

case $root in
  /*) ;;
  *) root=$HOME/$root ;;
esac
here=$root/$cluster/$pool/$host
read -r boot </proc/sys/kernel/random/boot_id

say() {
  printf '%s %s\n' "$1" "$2"
}

# Exit 4: this host cannot; what to do is in the words.
refuse() {
  printf '%s\n' "$1" >&2
  exit 4
}

# Sets began and state; false when there is no such process.
began_of() {
  began='' state='' stat=''
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  # shellcheck disable=SC2086 # its fields
  set -- ${stat##*) }
  state=$1 began=${20}
}

# Is it the very process that was recorded in file $1? A zombie holds nothing any more.
lives() {
  pid='' recorded='' booted=''
  { read -r pid recorded booted <"$1"; } 2>/dev/null || return 1
  [ "$booted" = "$boot" ] && began_of "$pid" && [ "$began" = "$recorded" ] && [ "$state" != Z ]
}

# The recorded process leads a group; somebody of it may have outlived it.
group_lives() {
  lives "$1" && return 0
  [ -n "$pid" ] && [ "$booted" = "$boot" ] || return 1
  # A number in use again was free before: then nobody of ours is left.
  [ -z "$began" ] || [ "$began" = "$recorded" ] || return 1
  kill -0 "-$pid" 2>/dev/null || return 1
  leader=$pid
  for file in /proc/[0-9]*/stat; do
    { read -r stat <"$file"; } 2>/dev/null || continue
    # shellcheck disable=SC2086 # its fields
    set -- ${stat##*) }
    [ "$3" = "$leader" ] && [ "$1" != Z ] && return 0
  done
  return 1
}

# Not every sleep knows parts of a second.
pause() {
  sleep 0.2 2>/dev/null || sleep 1
}

label_here() {
  [ -L "$here/label" ] && readlink "$here/label"
}

# The nearest folder above $1 that exists.
existing() {
  folder=$1
  while [ ! -d "$folder" ]; do folder=${folder%/*}; done
  printf '%s\n' "${folder:-/}"
}

look_at_machine() {
  say clock "$(date +%s)"
  say platform "$(uname -s)-$(uname -m)"
  # shellcheck disable=SC2046 # its columns
  set -- $(df -Pk "$(existing "$here")" | tail -n 1)
  say free "${4:-}"
  say cpus "$(grep -c '^processor' /proc/cpuinfo)"
  while read -r key amount _; do
    [ "$key" = MemTotal: ] && say memory "$amount"
  done </proc/meminfo
  if [ -d /proc/driver/nvidia/gpus ]; then
    set -- /proc/driver/nvidia/gpus/*
    say gpus "$#"
  fi
  for link in "$root"/*/*/"$host"/label; do
    other=${link%/label}
    if [ "$other" = "$here" ] || [ ! -L "$link" ]; then continue; fi
    group_lives "$other/agent.pid" || continue
    other=${other#"$root"/}
    say other "${other%/*}"
  done
  [ -d "$root/leftovers" ] && say leftovers "$root/leftovers"
}

look() {
  look_at_machine
  label=$(label_here) || return 0
  say label "$label"
  for file in version resources url starts exit; do
    [ -s "$here/$file" ] || continue
    read -r text <"$here/$file"
    say "$file" "$text"
  done
  if [ -e "$here/stop.pid" ]; then
    say state stopping
  elif group_lives "$here/agent.pid"; then
    say state running
    say pid "$pid"
    shorten_log
    return 0
  elif [ -s "$here/agent.pid" ]; then
    say state ended
    read -r _ _ booted <"$here/agent.pid"
    [ "$booted" = "$boot" ] || say rebooted yes
  else
    say state cut
  fi
  [ -f "$here/log" ] || return 0
  say log -
  tail -c 4000 "$here/log"
}

# The agent appends, so what is written meanwhile comes after the cut.
shorten_log() {
  [ -f "$here/log" ] && [ "$(wc -c <"$here/log")" -gt "$LOG_BYTES" ] || return 0
  tail -c 1048576 "$here/log" >"$here/log.old" && : >"$here/log"
}

put() {
  printf '%s\n' "$2" >"$here/$1"
}

# Nothing half written: whoever cannot go on gives the host back.
give_back() {
  for entry in "$here"/*; do
    [ "$entry" = "$here/label" ] || rm -rf "$entry"
  done
  rm -f "$here/label"
  rmdir "$here" 2>/dev/null
}

prepare() {
  put token "$token" && put command "$command" && put environment "$environment" &&
    put run "$run" && put resources "$resources" && put url "$url" &&
    put launched "$(date +%s)" && mkdir -p "$here/data" || return 1
  [ -z "$authorities" ] || put authorities.pem "$authorities"
}

launch() {
  command -v setsid >/dev/null 2>&1 || refuse 'there is no setsid: install util-linux'
  mkdir -p "$here" || refuse "cannot make the folder $here"
  if ! ln -s "$label" "$here/label" 2>/dev/null; then
    now=$(label_here) || refuse "cannot make links in $here"
    [ "$now" = "$label" ] || exit 3
    [ ! -e "$here/agent.pid" ] || return 0
  fi
  # Those of old versions; one that is still wanted is fetched again.
  find "$root/agents" -name 'agent-*' -mtime +30 -exec rm -f {} + 2>/dev/null
  prepare || {
    give_back
    refuse "cannot write below $here: is there room?"
  }
  start
}

# Total, in a row, when: read by look, so that a new controller goes on counting.
count_start() {
  total=0 row=0 last=0 ended=''
  [ ! -s "$here/starts" ] || read -r total row last <"$here/starts"
  [ ! -s "$here/exit" ] || read -r _ ended <"$here/exit"
  booted=$boot
  [ ! -s "$here/agent.pid" ] || read -r _ _ booted <"$here/agent.pid"
  [ "$booted" = "$boot" ] || row=0
  [ -z "$ended" ] || [ $((ended - last)) -lt "$STEADY_S" ] || row=0
  put starts "$((total + 1)) $((row + 1)) $(date +%s)"
}

start() {
  [ "$(label_here)" = "$label" ] || exit 3
  [ ! -e "$here/stop.pid" ] || exit 3
  group_lives "$here/agent.pid" && return 0
  [ -s "$here/run" ] || refuse 'its launch was cut off'
  if ! count_start || ! put version "$version"; then
    refuse "cannot write below $here: is there room?"
  fi
  rm -f "$here/exit"
  echo "drover: start $((total + 1)) under $label" >>"$here/log"
  setsid /bin/sh "$here/run" </dev/null >>"$here/log" 2>&1 &
  pid=$!
  began_of "$pid" || refuse "$here/run ended at once"
  put agent.pid "$pid $began $boot"
}

stop() {
  [ "$(label_here)" = "$label" ] || return 0
  lives "$here/stop.pid" && return 0
  put stop.pid ''
  end_all </dev/null >/dev/null 2>&1 &
  pid=$!
  began_of "$pid" && [ -e "$here/stop.pid" ] && put stop.pid "$pid $began $boot" 2>/dev/null
  return 0
}

# Runs on after we are gone. The label goes last: while it is there, the host is ours.
end_all() {
  trap '' HUP
  end_agent
  end_attempts || return 1
  for entry in "$here"/* "$here"/.[!.]*; do
    [ "$entry" = "$here/label" ] || [ "$entry" = "$here/stop.pid" ] || discard "$entry"
  done
  rm -f "$here/stop.pid" "$here/label"
  rmdir "$here" "${here%/*}" "$root/$cluster" "$root" 2>/dev/null
  return 0
}

end_agent() {
  group_lives "$here/agent.pid" || return 0
  kill -TERM "-$pid"
  until_s=$(($(date +%s) + STOP_S))
  while [ "$(date +%s)" -lt "$until_s" ]; do
    pause
    group_lives "$here/agent.pid" || return 0
  done
  kill -KILL "-$pid"
}

# The agent's own watchdog ends attempts whose lease ran out: it knows groups and containers.
end_attempts() {
  data=$here/data until_s=$(($(date +%s) + ATTEMPTS_S))
  set -- "$data"/leases/*
  if [ -e "$1" ]; then
    for lease; do
      echo 000000000000000 >"$lease"
    done
    setsid /bin/sh "$data/watchdog.sh" "$data" "$boot" &
    watchdog=$!
    while [ -e "$1" ]; do
      [ "$(date +%s)" -lt "$until_s" ] || return 1
      pause
      set -- "$data"/leases/*
    done
    # It must not write into what is removed next.
    kill "$watchdog" 2>/dev/null
    wait "$watchdog"
  fi
  for list in "$data"/attempts/*/cgroups "$data"/spares/*/cgroups; do
    [ -f "$list" ] || continue
    while read -r group; do
      rmdir "$group" 2>/dev/null
    done <"$list"
  done
  return 0
}

# Files of a container's root cannot be removed by us; the host is free all the same.
discard() {
  rm -rf "$1" 2>/dev/null || { pause && rm -rf "$1" 2>/dev/null; }
  [ -e "$1" ] || return 0
  mkdir -p "$root/leftovers" && mv "$1" "$root/leftovers/$(date +%s).$$.${1##*/}"
}

logs() {
  [ "$(label_here)" = "$label" ] || return 0
  [ ! -f "$here/log" ] || tail -n 200 "$here/log"
}

# The agent itself, on standard input, for hosts that cannot fetch it.
upload() {
  agents=$root/agents part=$root/agents/part.$$
  mkdir -p "$agents" || refuse "cannot make the folder $agents"
  cat >"$part" || { rm -f "$part"; refuse "cannot write $part"; }
  found=$(sha256sum <"$part")
  [ "${found%% *}" = "$sum" ] || { rm -f "$part"; refuse 'what came is not what was sent'; }
  chmod 700 "$part" && mv -f "$part" "$agents/agent-$sum"
  [ "$(label_here)" = "$label" ] || exit 3
  put uploaded "$sum"
}

"$verb"
