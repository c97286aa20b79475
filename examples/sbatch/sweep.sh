#!/bin/bash
#SBATCH -J sweep
#SBATCH -a 1-9:4%2
#SBATCH -c 1 --mem-per-cpu=256
#SBATCH -t 10
#SBATCH -o logs/sweep/%A_%a.out -e logs/sweep/%A_%a.err

# One task per learning rate, two at a time; the index picks the line.
rates=(unused 0.1 0.05 0.02 0.01 0.005 0.002 0.001 0.0005 0.0001)
rate=${rates[$SLURM_ARRAY_TASK_ID]}
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT ($SLURM_ARRAY_TASK_MIN to" \
  "$SLURM_ARRAY_TASK_MAX by $SLURM_ARRAY_TASK_STEP)"
echo "a warning" >&2
python3 train.py --epochs 1 --learning-rate "$rate"
