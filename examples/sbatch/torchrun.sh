#!/bin/bash
#SBATCH --job-name=multinode
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --time=0-01:00

# PyTorch on several nodes, as its own documentation does it: the script runs on the first node,
# srun starts torchrun on each, and all meet at the first node's address.
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${nodes[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
export MASTER_ADDR=$head_node MASTER_PORT=${MASTER_PORT:-29500}

echo "Node IP: $head_node_ip, ${#nodes[@]} nodes, $SLURM_GPUS_ON_NODE GPUs each"
export LOGLEVEL=INFO

srun torchrun \
  --nnodes "$SLURM_JOB_NUM_NODES" \
  --nproc_per_node "$SLURM_GPUS_ON_NODE" \
  --rdzv_id "$SLURM_JOB_ID" \
  --rdzv_backend c10d \
  --rdzv_endpoint "$MASTER_ADDR:$MASTER_PORT" \
  train.py --epochs 2
