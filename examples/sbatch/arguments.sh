#!/bin/sh
#SBATCH -t 0:05:00 -n1 --comment="with arguments"

# drover sbatch arguments.sh --seed 7 "two words"
echo "$# arguments"
while [ $# -gt 0 ]; do
  echo "<$1>"
  shift
done
exit 3
