#!/bin/sh
# The parts of scontrol that batch scripts call about themselves.
. "$DROVER_SBATCH_DIR/lib.sh"

# gpu[01-03],login1, one host per line.
hostnames() {
  printf '%s\n' "$1" | awk '
    function spread(text,   open, shut, head, tail, parts, count, i, ends, width, n) {
      open = index(text, "[")
      if (open == 0) { print text; return }
      shut = index(text, "]")
      head = substr(text, 1, open - 1)
      tail = substr(text, shut + 1)
      count = split(substr(text, open + 1, shut - open - 1), parts, ",")
      for (i = 1; i <= count; i++) {
        if (split(parts[i], ends, "-") == 1) ends[2] = ends[1]
        width = length(ends[1])
        for (n = ends[1] + 0; n <= ends[2] + 0; n++)
          spread(head sprintf("%0" width "d", n) tail)
      }
    }
    {
      depth = 0; word = ""
      for (at = 1; at <= length($0); at++) {
        letter = substr($0, at, 1)
        if (letter == "[") depth++
        if (letter == "]") depth--
        if (letter == "," && depth == 0) { spread(word); word = "" }
        else word = word letter
      }
      if (word != "") spread(word)
    }'
}

show_job() {
  end=Unknown
  [ -z "${SLURM_JOB_END_TIME:-}" ] || end=$(date -d "@$SLURM_JOB_END_TIME" +%Y-%m-%dT%H:%M:%S)
  cat <<EOF
JobId=$SLURM_JOB_ID JobName=$SLURM_JOB_NAME
   JobState=RUNNING Restarts=${SLURM_RESTART_COUNT:-0} EndTime=$end
   NumNodes=$SLURM_NNODES NumTasks=$SLURM_NTASKS NodeList=$SLURM_JOB_NODELIST
   BatchHost=$SLURMD_NODENAME WorkDir=$PWD Comment=drover:$DROVER_JOB_ID
EOF
}

case "${1:-} ${2:-}" in
  'show hostname' | 'show hostnames') hostnames "${3:-$SLURM_JOB_NODELIST}" ;;
  'show job') show_job ;;
  requeue*)
    # The job ends here and is queued again, as a machine that was lost would make it.
    : >"$DROVER_SBATCH_DIR/requeue"
    signal_steps TERM
    kill "$(cat "$DROVER_SBATCH_DIR/pid")"
    ;;
  *)
    say "scontrol ${1:-}: here there are only: show hostnames, show job, requeue"
    exit 1
    ;;
esac
