"""Submits a command, shows its output as it comes, and ends with its exit code."""

import sys

import drover

client = drover.Client()
job = client.submit(
    'for i in 1 2 3; do echo "step $i on $(hostname)"; sleep 0.2; done',
    name="hello",
    cpus=0.5,
    time="5m",
)
print(f"submitted {job.id}", file=sys.stderr)
job.print_logs(follow=True)
sys.exit(job.wait()["exitCode"])
