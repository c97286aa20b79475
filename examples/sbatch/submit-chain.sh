#!/bin/bash
# Typed on the login node: the second job waits for the first, the third for both, however they end.
set -e
first=$(drover sbatch --parsable prepare.sh)
second=$(drover sbatch --parsable --dependency=afterok:$first evaluate.sh)
drover sbatch --parsable --dependency=afterany:$first:$second --wrap='echo "the chain is over"'
