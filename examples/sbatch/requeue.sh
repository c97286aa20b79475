#!/bin/bash
#SBATCH --job-name=long
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@90
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=logs/long.out

# Runs longer than its time limit: told 90 s before the end, it saves and queues itself again.
save_and_requeue() {
  echo "told to end: requeueing $SLURM_JOB_ID"
  kill -TERM "$training"
  scontrol requeue "$SLURM_JOB_ID"
}
trap save_and_requeue USR1

echo "start number $((${SLURM_RESTART_COUNT:-0} + 1))"
python3 train.py --epochs 4 --seconds-per-epoch "${EPOCH_SECONDS:-20000}" \
  --checkpoint checkpoint.json &
training=$!
wait $training
