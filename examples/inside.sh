#!/bin/sh
# Looks into a running job in every way there is: drover must be on the PATH, and a server known.
set -eu
scratch=$(mktemp -d)
job=$(drover run -d --name looked-into -- sh -c 'mkdir out; echo 42 >out/answer
  exec python3 -u -m http.server --bind 127.0.0.1 --directory out 0')
trap 'drover cancel "$job" >/dev/null; rm -rf "$scratch"' EXIT
until port=$(drover logs "$job" | sed -n 's/.*port \([0-9]*\).*/\1/p') && [ -n "$port" ]; do
  sleep 0.2
done

echo '--- its processes'
drover ps "$job"

echo '--- ssh and rsync'
drover ssh --config >"$scratch/ssh_config"
ssh -F "$scratch/ssh_config" "drover-$job" 'pwd; cat out/answer'
rsync -a -e "ssh -F $scratch/ssh_config" "drover-$job:out/" "$scratch/out/"
cat "$scratch/out/answer"

echo '--- its web server on a port of this machine'
drover forward "$job" "0:$port" >"$scratch/forward" &
forward=$!
until address=$(grep -o '127.0.0.1:[0-9]*' "$scratch/forward"); do sleep 0.1; done
curl -s "http://$address/answer"
kill "$forward"

echo '--- done'
