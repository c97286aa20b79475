# Stands in for Slurm on the worker: makes what a batch script expects, runs it, ends as it does.
# Run by `sh -c 'eval "$DROVER_SBATCH_START"' NAME ARGUMENT…` in the job's directory.
mask=$(umask)
umask 077
dir=$(mktemp -d "${TMPDIR:-/tmp}/drover-sbatch.XXXXXX") || exit 125
# Handled here, so that the end is recorded and nothing is left; the script has them as they come.
stopped=
trap 'stopped=1' TERM INT
trap : HUP USR1 USR2 ALRM
mkdir "$dir/bin" "$dir/tmp" "$dir/steps" || exit 125
printf '%s\n' "$DROVER_SBATCH_LIB" >"$dir/lib.sh"
printf '%s' "$DROVER_SBATCH_SCRIPT" >"$dir/slurm_script"
printf '%s\n' "$DROVER_SBATCH_SRUN" >"$dir/bin/srun"
printf '%s\n' "$DROVER_SBATCH_SCONTROL" >"$dir/bin/scontrol"
printf '%s\n' "${DROVER_SBATCH_STEPS:-}" >"$dir/steps.py"
printf '%s\n' "${DROVER_SBATCH_STEP:-}" >"$dir/srun.py"
chmod 700 "$dir/slurm_script" "$dir/bin/srun" "$dir/bin/scontrol"
output=${DROVER_SBATCH_OUTPUT:-} error=${DROVER_SBATCH_ERROR:-} input=${DROVER_SBATCH_INPUT:-}
mode=${DROVER_SBATCH_OPEN_MODE:-} limit=${DROVER_SBATCH_LIMIT:-0}
signal=${DROVER_SBATCH_SIGNAL:-} signal_to=${DROVER_SBATCH_SIGNAL_TO:-}
signal_after=${DROVER_SBATCH_SIGNAL_AFTER:-}
for name in $(env | sed -n 's/^\(DROVER_SBATCH_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
. "$dir/lib.sh"

# Where the worker has environment modules, scripts find `module`; elsewhere it says so and goes on.
modules=
for init in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/modules/init/bash; do
  [ -n "$modules" ] || [ ! -r "$init" ] || modules=$init
done
if [ -z "$modules" ]; then
  printf '#!/bin/sh\n%s\n' 'echo "drover: no modules on this worker, ignored: module $*" >&2' \
    >"$dir/bin/module"
  chmod 700 "$dir/bin/module"
fi
# A login shell (#!/bin/bash -l) sets PATH anew; this is read after that.
{
  echo "case :\$PATH: in *:$dir/bin:*) ;; *) PATH=$dir/bin:\$PATH ;; esac"
  for init in "$modules" "${BASH_ENV:-}"; do [ -z "$init" ] || echo ". '$init'"; done
} >"$dir/environment"
export BASH_ENV="$dir/environment"

# Slurm's ids are numbers, and scripts count on it: MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000)).
number() {
  printf %s "$1" | cksum | cut -d ' ' -f 1
}
SLURM_JOB_ID=$(number "$DROVER_JOB_ID")
if [ -n "${DROVER_ARRAY_INDEX:-}" ]; then
  export SLURM_ARRAY_JOB_ID="$SLURM_JOB_ID" SLURM_ARRAY_TASK_ID="$DROVER_ARRAY_INDEX"
  SLURM_JOB_ID=$(number "$DROVER_TASK_ID")
fi
[ "$DROVER_ATTEMPT" -le 1 ] || export SLURM_RESTART_COUNT=$((DROVER_ATTEMPT - 1))
SLURMD_NODENAME=$(uname -n)
SLURM_JOB_START_TIME=$(date +%s)
[ "$limit" -eq 0 ] || export SLURM_JOB_END_TIME=$((SLURM_JOB_START_TIME + limit))
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  export SLURM_JOB_GPUS="$CUDA_VISIBLE_DEVICES" GPU_DEVICE_ORDINAL="$CUDA_VISIBLE_DEVICES"
fi
export SLURM_JOB_ID SLURM_JOBID="$SLURM_JOB_ID" SLURM_JOB_START_TIME SLURMD_NODENAME
export SLURM_NODEID="${RANK:-0}" SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_GTIDS=0 SLURM_TASK_PID=$$
export SLURM_SUBMIT_DIR="${SLURM_SUBMIT_DIR:-$PWD}"
export SLURM_TMPDIR="$dir/tmp" SLURM_CLUSTER_NAME=drover DROVER_SBATCH_DIR="$dir"
export SLURM_JOB_UID="$(id -u)" SLURM_JOB_NODELIST="$SLURMD_NODENAME"
export PATH="$dir/bin:$PATH"

finish() {
  rm -rf "$dir"
  exit "$1"
}

# The first node runs the script, as in Slurm; the others run what its srun asks for.
hub=
if [ "$SLURM_NNODES" -gt 1 ]; then
  if ! command -v python3 >/dev/null; then
    say 'a job over several nodes needs python3 on its workers, for srun'
    finish 127
  fi
  if [ "$RANK" != 0 ]; then
    python3 -u "$dir/steps.py" member
    finish $?
  fi
  mkfifo "$dir/alive" && : >"$dir/hub.log" || finish 125
  python3 -u "$dir/steps.py" hub <"$dir/alive" 2>"$dir/hub.log" &
  hub=$!
  exec 9>"$dir/alive"
  while [ ! -e "$dir/nodes" ]; do
    if [ -n "$stopped" ]; then
      kill -KILL "$hub"
      finish 143
    fi
    if ! kill -0 "$hub" 2>/dev/null; then
      say 'the nodes did not come together:'
      cat "$dir/hub.log" >&2
      finish 1
    fi
    sleep 0.1
  done
  SLURM_JOB_NODELIST=$(paste -s -d , "$dir/nodes")
  SLURMD_NODENAME=$(head -n 1 "$dir/nodes")
  unset DROVER_GANG_TOKEN
  # Of the ports it holds, the first is taken by the above; the script may have the other.
  export MASTER_PORT="${DROVER_PORTS##*,}"
fi
export SLURM_NODELIST="$SLURM_JOB_NODELIST"
# A script for Slurm works these out itself, and what it starts must not find ours.
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK GROUP_WORLD_SIZE \
  ROLE_RANK ROLE_WORLD_SIZE ROLE_NAME TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT \
  TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_USE_AGENT_STORE

# Copies a stream to a file and to the log; signals to the group must not stop it before the script.
copiers=
copy() {
  mkfifo "$1" || finish 125
  (
    trap '' TERM INT HUP USR1 USR2 ALRM
    exec tee -a "$2" <"$1" >&"$3" 5>&- 6>&- 9>&-
  ) &
  copiers="$copiers $!"
}
# Prints the file's name; it and its folder are there then.
open_file() {
  name=$(expand "$1")
  mkdir -p -- "$(dirname -- "$name")" 2>/dev/null
  if [ "$mode" = append ]; then true >>"$name"; else true >"$name"; fi || return
  printf '%s\n' "$name"
}
umask "$mask"
exec 5>&1 6>&2
if [ -n "$output" ]; then
  file=$(open_file "$output") || finish 1
  copy "$dir/out" "$file" 5
  exec 5>"$dir/out"
fi
[ -z "$error" ] || file=$(open_file "$error") || finish 1
if [ -n "$output$error" ]; then
  copy "$dir/err" "$file" 6
  exec 6>"$dir/err"
fi

# Sends the signal of --signal that long before the time limit: to the script, or to its steps.
timer=
if [ -n "$signal" ]; then
  (
    exec 5>&- 6>&- 9>&-
    trap 'kill "$sleeper"; exit' TERM
    sleep "$signal_after" &
    sleeper=$!
    wait "$sleeper"
    case $signal_to in
      batch) kill -s "$signal" "$(cat "$dir/pid")" ;;
      *) signal_steps "$signal" ;;
    esac
  ) 2>/dev/null &
  timer=$!
fi

[ -z "$stopped" ] || finish 143
sh -c 'echo $$ >"$DROVER_SBATCH_DIR/pid"; exec "$DROVER_SBATCH_DIR/slurm_script" "$@"' \
  "$0" "$@" <"$(expand "${input:-/dev/null}")" >&5 2>&6 5>&- 6>&- 9>&-
code=$?
exec 5>&- 6>&- 9>&-
[ -z "$timer" ] || kill "$timer" 2>/dev/null
# What the script left behind may hold the streams open: not for long.
tries=0
for copier in $copiers $hub; do
  while kill -0 "$copier" 2>/dev/null && [ "$tries" -lt 30 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  kill -KILL "$copier" 2>/dev/null
done
[ ! -e "$dir/requeue" ] || code=85
finish "$code"
