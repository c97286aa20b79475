#!/bin/bash
#SBATCH --job-name=nbody
#SBATCH --ntasks=4 --cpus-per-task=1
#SBATCH --mem=600M
#SBATCH --time=30:00
#SBATCH --hint=nomultithread
#SBATCH --account=astro

# One process per task, as MPI programs are started; the ranks come from Slurm's variables.
echo "tasks: $SLURM_NTASKS, cores here: $SLURM_CPUS_ON_NODE"
srun --mpi=pmix --cpu-bind=cores bash -c \
  'echo "rank $SLURM_PROCID of $SLURM_NTASKS, local $SLURM_LOCALID on node $SLURM_NODEID"'
srun -n 2 -l echo "a smaller step"
srun --ntasks=3 sh -c 'exit $SLURM_PROCID'
echo "the worst exit code: $?"
