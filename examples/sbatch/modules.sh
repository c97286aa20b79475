#!/bin/bash -l
#SBATCH --job-name="conda job"
#SBATCH --qos=interactive
#SBATCH --gpus=1 --cpus-per-gpu=2 --mem-per-gpu=300M
#SBATCH --time=15:00
#SBATCH --constraint=nvme
#SBATCH --export=NONE

# Modules and conda, as most sites ask for them.
module purge
module load cuda/12.4 gcc/13

source "$HOME/miniconda3/etc/profile.d/conda.sh"
conda activate vision

echo "environment: $CONDA_DEFAULT_ENV, GPUs: $SLURM_GPUS"
python3 -c 'import sys; print("python", sys.version_info.major)'
