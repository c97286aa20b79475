#!/bin/bash
#SBATCH --job-name=prepare --time=5 --mem=100M

# The first of a chain, see submit-chain.sh.
echo "rows: 42" > dataset.txt
echo "prepared"
