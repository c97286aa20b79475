#!/bin/bash
#SBATCH --job-name=resnet
#SBATCH --partition=gpu
#SBATCH --gres=gpu:a100:1          # one card
#SBATCH --cpus-per-task=2
#SBATCH --mem=512M
#SBATCH --time=00:30:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=ada@example.org

# One GPU, one process: the most common script there is.
set -euo pipefail

echo "job $SLURM_JOB_ID on $SLURMD_NODENAME with GPU $CUDA_VISIBLE_DEVICES"
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
cd "$SLURM_SUBMIT_DIR"
python3 train.py --epochs 3 --workers "$SLURM_CPUS_PER_TASK"
