"""A stand-in for a training script: counts epochs and resumes from a checkpoint if there is one."""
import argparse
import json
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--workers", type=int, default=1)
parser.add_argument("--learning-rate", type=float, default=0.1)
parser.add_argument("--checkpoint")
parser.add_argument("--seconds-per-epoch", type=float, default=0)
options = parser.parse_args()

epoch = 0
if options.checkpoint and os.path.exists(options.checkpoint):
    with open(options.checkpoint) as file:
        epoch = json.load(file)["epoch"]
    print(f"resumed at epoch {epoch}", flush=True)
while epoch < options.epochs:
    time.sleep(options.seconds_per_epoch)
    epoch += 1
    print(f"epoch {epoch} of {options.epochs}: rate {options.learning_rate}", flush=True)
    if options.checkpoint:
        with open(options.checkpoint + ".new", "w") as file:
            json.dump({"epoch": epoch}, file)
        os.rename(options.checkpoint + ".new", options.checkpoint)
print(f"done with {options.workers} workers", flush=True)
