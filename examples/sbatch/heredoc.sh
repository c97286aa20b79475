#!/usr/bin/env bash
#
#SBATCH --time 5:00
#SBATCH --mem 200M   --nodes 1
##SBATCH --mem 900G
#SBATCH --error="results/run %j.err" --output="results/run %j.out"

# Writes its own input; the lines below this one are no options any more.
mkdir -p results
cat > results/config.yaml <<EOF
#SBATCH --time=99:00:00
name: ${SLURM_JOB_NAME}
scratch: ${SLURM_TMPDIR:+set}
EOF
#SBATCH --time=88:00:00
cat results/config.yaml
python3 - <<'PYTHON'
import os
print("from python:", os.environ["SLURM_JOB_NAME"], os.environ["SLURM_MEM_PER_NODE"], "MB")
PYTHON
