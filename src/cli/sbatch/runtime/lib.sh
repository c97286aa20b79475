# What batch.sh, srun and scontrol share.

# Prints a file name pattern of sbatch with its %j, %A, %a, %x … filled in.
expand() {
  rest=$1 made=
  while :; do
    case $rest in
      *%*) made=$made${rest%%"%"*} rest=${rest#*"%"} ;;
      *) break ;;
    esac
    width=${rest%%[!0-9]*}
    rest=${rest#"$width"}
    letter=${rest%"${rest#?}"}
    rest=${rest#?}
    case $letter in
      %) value=% ;;
      A) value=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} ;;
      a) value=${SLURM_ARRAY_TASK_ID:-4294967294} ;;
      j) value=$SLURM_JOB_ID ;;
      J) value=$SLURM_JOB_ID${SLURM_STEP_ID:+.$SLURM_STEP_ID} ;;
      N) value=${SLURMD_NODENAME%%.*} ;;
      n) value=${SLURM_NODEID:-0} ;;
      s) value=${SLURM_STEP_ID:-batch} ;;
      t) value=${SLURM_PROCID:-0} ;;
      u) value=${SLURM_JOB_USER:-} ;;
      x) value=$SLURM_JOB_NAME ;;
      *) value=%$width$letter width= ;;
    esac
    case $value in *[!0-9]* | '') width= ;; esac
    [ -z "$width" ] || while [ "${#value}" -lt "$width" ]; do value=0$value; done
    made=$made$value
  done
  printf '%s\n' "$made$rest"
}

say() {
  printf 'drover: %s\n' "$1" >&2
}

# When a process began: with its number, that is who it is.
began() {
  sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
}

signal_steps() {
  for step in "$DROVER_SBATCH_DIR"/steps/*; do
    [ "$(began "${step##*/}")" != "$(cat "$step")" ] || kill -s "$1" "${step##*/}"
  done 2>/dev/null
}
