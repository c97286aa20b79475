#!/bin/sh
# srun within a job of Drover: runs a command once per task, here and on the job's other nodes.
. "$DROVER_SBATCH_DIR/lib.sh"
tasks='' nodes='' per='' list='' label='' out='' err='' in='' turn=''
gpus=${SLURM_GPUS_PER_TASK:-}

need() {
  say "srun: $1 needs a value"
  exit 2
}
take() {
  case $1 in
    -n | --ntasks) tasks=$2 ;;
    -N | --nodes) nodes=${2%%-*} ;;
    --ntasks-per-node) per=$2 ;;
    -w | --nodelist) list=$2 ;;
    -o | --output) out=$2 ;;
    -e | --error) err=$2 ;;
    -i | --input) in=$2 ;;
    -c | --cpus-per-task) export SLURM_CPUS_PER_TASK="$2" ;;
    -D | --chdir) cd "$2" || exit 1 ;;
    --gpus-per-task) gpus=${2##*:} ;;
    --export) set_exports "$2" ;;
  esac
}
# ALL, or ALL,NAME=VALUE: what else there is stays, which is what scripts want of it.
set_exports() {
  old=$IFS
  IFS=,
  for pair in $1; do case $pair in *=*) export "${pair?}" ;; esac done
  IFS=$old
}
while [ $# -gt 0 ]; do
  case $1 in
    --) shift && break ;;
    --*=*) take "${1%%=*}" "${1#*=}" ;;
    --label) label=1 ;;
    --exclusive | --exact) turn=1 ;;
    --unbuffered | --kill-on-bad-exit | --overlap | --overcommit | --quiet | --verbose | --pty | \
      --no-kill | --oversubscribe | --preserve-env | --disable-status | --multi-prog | \
      --immediate | --use-min-nodes | --spread-job | --contiguous | --export) ;;
    --*)
      [ $# -gt 1 ] || need "$1"
      take "$1" "$2"
      shift
      ;;
    -l) label=1 ;;
    -[ukKOQvXsEZH]*) ;;
    -?)
      [ $# -gt 1 ] || need "$1"
      take "$1" "$2"
      shift
      ;;
    -??*)
      value=${1#-?}
      take "${1%"$value"}" "${value#=}"
      ;;
    *) break ;;
  esac
  shift
done
if [ $# -eq 0 ]; then
  say 'srun: there is no command to run'
  exit 2
fi

if [ -z "$nodes" ]; then
  nodes=$SLURM_NNODES
  [ -z "$list" ] || nodes=$(scontrol show hostnames "$list" | wc -l)
fi
if [ -z "$tasks" ]; then
  usual=$(((SLURM_NTASKS + SLURM_NNODES - 1) / SLURM_NNODES))
  tasks=$((nodes * ${per:-$usual}))
  [ "$nodes" -ne "$SLURM_NNODES" ] || [ -n "$per" ] || tasks=$SLURM_NTASKS
fi
case $tasks$nodes in *[!0-9]*) say "srun: $tasks tasks on $nodes nodes?" && exit 2 ;; esac
[ "$nodes" -le "$tasks" ] || nodes=$tasks
SLURM_STEP_ID=$(ls "$DROVER_SBATCH_DIR/steps" | wc -l)
SLURM_STEP_ID=$((SLURM_STEP_ID))
export SLURM_STEP_ID SLURM_STEPID="$SLURM_STEP_ID" SLURM_NTASKS="$tasks" SLURM_NPROCS="$tasks"
export SLURM_STEP_NUM_TASKS="$tasks" SLURM_STEP_NUM_NODES="$nodes"
export SLURM_STEP_NODELIST="${list:-$SLURM_JOB_NODELIST}"
# Kept when the step is over: the names count the steps.
began "$$" >"$DROVER_SBATCH_DIR/steps/$$"
[ -z "$in" ] || exec <"$in"
[ -z "$out" ] || exec >"$(expand "$out")"
[ -z "$out" ] || [ -n "$err" ] || exec 2>&1
[ -z "$err" ] || exec 2>"$(expand "$err")"

if [ "$SLURM_NNODES" -gt 1 ]; then
  hosts=$list
  [ -z "$list" ] || hosts=$(scontrol show hostnames "$list" | paste -s -d , -)
  exec python3 -u "$DROVER_SBATCH_DIR/srun.py" \
    "$tasks" "$nodes" "$hosts" "${gpus:-0}" "$label" "$turn" "$@"
fi

# One node: task $1 of the step, which becomes the command.
become() {
  task=$1
  shift
  export SLURM_PROCID="$task" SLURM_LOCALID="$task" SLURM_NODEID=0
  if [ -n "$gpus" ] && [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
    first=$((task * gpus + 1))
    own=$(printf %s "$CUDA_VISIBLE_DEVICES" | cut -d , -f "$first-$((first + gpus - 1))")
    [ -z "$own" ] || export CUDA_VISIBLE_DEVICES="$own" SLURM_STEP_GPUS="$own"
  fi
  exec "$@"
}
if [ "$tasks" -eq 1 ] && [ -z "$label" ]; then
  become 0 "$@"
fi
pids=
forward() {
  for pid in $pids; do kill -s "$1" "$pid" 2>/dev/null; done
}
for name in TERM INT HUP USR1 USR2; do trap "forward $name" "$name"; done
task=0
while [ "$task" -lt "$tasks" ]; do
  if [ -n "$label" ]; then
    {
      {
        (become "$task" "$@")
        echo $? >"$DROVER_SBATCH_DIR/code.$$.$task"
      } 2>&1 >&3 | sed "s/^/$task: /" >&2
    } 3>&1 | sed "s/^/$task: /" &
  else
    (become "$task" "$@") &
  fi
  pids="$pids $!"
  task=$((task + 1))
done
worst=0 task=0
for pid in $pids; do
  # A signal ends the wait, not the task.
  while :; do
    wait "$pid"
    code=$?
    kill -0 "$pid" 2>/dev/null || break
  done
  [ -z "$label" ] || code=$(cat "$DROVER_SBATCH_DIR/code.$$.$task")
  task=$((task + 1))
  [ "$code" -le "$worst" ] || worst=$code
done
exit "$worst"
