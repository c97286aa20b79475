#!/usr/bin/env bash
# What only a machine with an NVIDIA GPU and PyTorch can show: `make check-gpu`. It starts a server
# of its own on loopback, in a folder of its own, and ends both.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$(mktemp -d)
export DROVER_DATA=$root/data DROVER_SERVER_PORT=0 DROVER_GRPC_PORT=0
export DROVER_AGENT_METRICS_MS=1000 DROVER_IDLE_DEVICES_ACTION=none
failed=0
./drover up >"$root/up.log" 2>&1 &
server=$!
trap 'kill -INT $server; wait $server; rm -rf "$root"' EXIT

check() { # NAME EXPECTED-PATTERN TEXT
  if grep -Eq -- "$2" <<<"$3"; then echo "ok    $1"; else
    echo "FAIL  $1: wanted $2, got:"
    sed 's/^/        /' <<<"$3" | head -20
    failed=1
  fi
}

for _ in $(seq 100); do grep -q 'Ctrl-C' "$root/up.log" && break; sleep 0.1; done
online() { ./drover workers --json 2>/dev/null | grep -q ONLINE; }
for _ in $(seq 100); do online && break; sleep 0.1; done
name=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
count=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1)

model=${name##* }
check 'the worker says which GPUs it has' "\"model\": ?\"[^\"]*$model" "$(./drover workers --json)"
check 'a job that asks for one sees exactly one' '^1$' \
  "$(./drover run --gpus 1 -- python3 -c 'import torch; print(torch.cuda.device_count())' 2>&1)"
check 'a job that asks for none sees none' '^0$' \
  "$(./drover run -- python3 -c 'import torch; print(torch.cuda.device_count())' 2>&1)"
check 'by model and memory' '^seen$' "$(./drover run --gpus "$model:1" -- echo seen 2>&1)"
check 'more than there is is refused' 'NEVER_FITS|no worker|waits|UNSCHEDULABLE' \
  "$(./drover run --gpus $((count + 1)) --start-within 3s -- true 2>&1)"

work='import time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.time() + 16
while time.time() < end:
    for _ in range(50):
        b = a @ a
    torch.cuda.synchronize()
print("done", torch.cuda.get_device_name())'
job=$(./drover run -d --gpus 1 -- python3 -c "$work")
./drover wait "$job" >/dev/null
metrics=$(./drover metrics "$job")
echo "$metrics"
use=$(./drover metrics "$job" --json | python3 -c '
import json, sys
print({s["name"]: s["max"] for s in map(dict, json.load(sys.stdin))})' 2>&1)
check 'the use of the device is measured' "system.devicePercent': ([5-9][0-9]|100)" "$use"
check 'and its memory' "system.deviceMemoryBytes': [1-9][0-9]{8,}" "$use"
check 'the capsule names driver and device' "$driver" "$(./drover job "$job" --capsule 2>&1)"

first=$(./drover run -d --gpus 0.5 -- sleep 8)
second=$(./drover run -d --gpus 0.5 -- sleep 8)
sleep 3
both=$(./drover jobs --limit 2)
echo "$both"
check 'two halves of one device run at once' '2' "$(grep -c RUNNING <<<"$both")"
./drover wait "$first" "$second" >/dev/null 2>&1

hold='import time, torch
a = torch.zeros(1 << 28, device="cuda")
time.sleep(120)'
idle=$(./drover run -d --gpus 1 --idle-stop 10s -- python3 -c "$hold")
timeout 90 ./drover wait "$idle" >/dev/null 2>&1
check 'an idle device is taken away' 'its devices are idle' "$(./drover job "$idle")"
echo "$name, $count of them, driver $driver: $([ $failed = 0 ] && echo all well || echo FAILED)"
exit $failed
