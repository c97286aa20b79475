#!/bin/sh
# A GROMACS run that goes on where it was killed, on whatever machine comes next.
set -eu
saved=$DROVER_CHECKPOINT_DIR
number=$(ls "$saved" | sed -n 's/^save-//p' | sort -n | tail -1)
number=${number:-0}
[ "$number" = 0 ] || cp -p "$saved/save-$number"/* .

# Its checkpoint and its output files belong together. The checkpoint is copied first: GROMACS cuts
# files that are longer than it knows, and refuses shorter ones.
save() {
  [ -e md.cpt ] || return 0
  [ "$number" = 0 ] || [ md.cpt -nt "$saved/save-$number/md.cpt" ] || return 0
  rm -rf "$saved/next.tmp"
  mkdir "$saved/next.tmp"
  cp -p md.cpt "$saved/next.tmp"
  cp -p md.trr md.edr md.log "$saved/next.tmp"
  mv "$saved/next.tmp" "$saved/save-$((number + 1))"
  rm -rf "$saved/save-$number"
  number=$((number + 1))
}

# One thread and -reprod: the same bits in every run. Checkpoints this often are for this example.
gmx -quiet mdrun -deffnm md -nt 1 -reprod -cpi md.cpt -cpt 0.005 &
mdrun=$!
stopped=
trap 'stopped=1; kill -TERM "$mdrun"' TERM
while kill -0 "$mdrun" 2>/dev/null; do
  sleep 0.5
  save
done
wait "$mdrun"
save
[ -z "$stopped" ] || exit 1
cp md.trr md.edr md.log "$DROVER_RESULT_DIR"
