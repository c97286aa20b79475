#!/usr/bin/env python3
#SBATCH --job-name=analysis
#SBATCH --cpus-per-task=2
#SBATCH --time=UNLIMITED
#SBATCH --nodelist=node[01-03]
"""Any interpreter will do: the first line says which."""
import os
import sys

print("python", sys.version_info.major, "with", os.environ["SLURM_CPUS_PER_TASK"], "cores")
