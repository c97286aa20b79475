#!/bin/bash
#SBATCH --job-name=evaluate
#SBATCH --time=5
#SBATCH --mem=100M

# The second of a chain: starts when prepare.sh has succeeded.
echo "evaluated on $(cat dataset.txt)"
