/**
 * The watchdog: one small `sh` per data folder that kills attempts whose lease ran out, also when
 * the agent is dead, stopped or stuck. It only reads files, so it cannot be wrong about more than
 * they are.
 */
import { spawn } from 'node:child_process';
import type { Log } from '../../lib/log.ts';
import { readIfThere, type DataFolder } from './folder.ts';
import { ATTEMPT_MARKER, isSameProcess } from './processes.ts';

/**
 * Arguments: data folder, boot id. The newest one wins: an older one ends when the pid file names
 * another. It ends by itself when neither a lease nor an agent is left, and looks once more after
 * it has taken its pid file away, since an agent that starts just then looks for that file after
 * writing its own.
 */
export const WATCHDOG_SCRIPT = `# Written by drover: kills attempts whose lease ran out.
cd "$1" || exit 1
boot=$2
began_of() {
  began= stat=
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- \${stat##*) }
  began=\${20}
}
began_of $$
me="$$ $began $boot"
announce() {
  echo "$me" >watchdog.pid.$$ && mv -f watchdog.pid.$$ watchdog.pid
}
busy() {
  for lease in leases/*; do
    [ -e "$lease" ] && return 0
  done
  read -r agent agent_began rest 2>/dev/null <agent.pid || return 1
  began_of "$agent" && [ "$began" = "$agent_began" ]
}
is_over() {
  read -r up rest </proc/uptime
  read -r deadline 2>/dev/null <"$1" && [ "\${up%.*}\${up#*.}0" -gt "$deadline" ]
}
kill_found() {
  for found; do
    kill -KILL "$found" 2>/dev/null && killed=1
  done
}
kill_stragglers() {
  while read -r group; do
    for procs in "$group/cgroup.procs" "$group"/*/cgroup.procs; do
      [ -e "$procs" ] || continue
      while read -r member; do
        kill_found "$member"
      done <"$procs"
    done
  done <"attempts/$uid/cgroups"
  [ -s "attempts/$uid/cgroups" ] && return
  marker="${ATTEMPT_MARKER}=$uid"
  for environ in $(grep -Fla "$marker" /proc/[0-9]*/environ 2>/dev/null); do
    tr '\\0' '\\n' 2>/dev/null <"$environ" | grep -Fqx "$marker" || continue
    environ=\${environ#/proc/}
    kill_found "\${environ%/environ}"
  done
}
expire() {
  uid=\${1#leases/}
  dir=attempts/$uid
  [ -d "$dir" ] || { rm -f "$1"; return; }
  is_over "$1" || return
  (set -C; echo none >"$dir/pid") 2>/dev/null
  read -r task task_began shim shim_began task_boot rest <"$dir/pid" || return
  [ "$task_boot" = "$boot" ] || { rm -f "$1"; return; }
  [ -e "$dir/exit" ] || echo >"$dir/expired"
  killed=
  if ! began_of "$task" || [ "$began" = "$task_began" ]; then
    kill_found "-$task" "$task"
  fi
  kill_stragglers
  # What a daemon started for it, see REMOVE_SCRIPT.
  [ -e "$dir/remove.sh" ] && sh "$dir/remove.sh" >/dev/null 2>&1
  [ -n "$killed" ] && return
  began_of "$shim" && [ "$began" = "$shim_began" ] && return
  rm -f "$1"
}
announce || exit 1
while :; do
  read -r now <watchdog.pid || exit 1
  [ "$now" = "$me" ] || exit 0
  for lease in leases/*; do
    is_over "$lease" && expire "$lease"
  done
  if ! busy; then
    rm -f watchdog.pid
    busy || exit 0
    announce || exit 1
  fi
  sleep 1
done
`;

export function isWatchdogAlive(folder: DataFolder, bootId: string): boolean {
  const [pid, began, boot] = (readIfThere(folder.watchdogPid) ?? '').trim().split(' ');
  return boot === bootId && isSameProcess(Number(pid), began ?? '');
}

/** The agent's own pid file must be written before: see the script's end. */
export function ensureWatchdog(
  folder: DataFolder,
  dataDir: string,
  bootId: string,
  log: Log,
): void {
  if (isWatchdogAlive(folder, bootId)) return;
  const child = spawn('/bin/sh', [folder.watchdog, dataDir, bootId], {
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
    detached: true,
    stdio: 'ignore',
  });
  child.once('error', (error) => log.error({ error }, 'the watchdog could not be started'));
  child.unref();
}
