"""Learns step by step, saves as it goes, and goes on where it was when it was interrupted."""

import json
import os
import random
import signal
import sys

from model import block, loss_and_accuracy, points, probability, save

training, data = block("TRAINING"), block("DATA")
steps, seed = training.get("steps", 200), training.get("seed", 1)
batch_size, rate = training.get("batch_size", 32), training.get("learning_rate", 0.5)
log_every, save_every = training.get("log_every", 10), block("CHECKPOINT").get("every_steps", 50)
checkpoint = os.path.join(os.environ["DROVER_CHECKPOINT_DIR"], "last.json")

stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))

examples = points(data.get("samples", 1000), "training")
weights, step = [0.0] * len(examples[0][0]), 0
if os.environ.get("DROVER_RESUME") == "1":
    with open(checkpoint, encoding="utf-8") as file:
        saved = json.load(file)
    weights, step = saved["weights"], saved["step"]
    print("resumed at step", step)

with open(os.environ["DROVER_METRICS_FILE"], "a", encoding="utf-8") as metrics:
    while step < steps:
        # Of its own for each step: what comes next does not depend on interruptions.
        batch = random.Random(f"{seed} {step}").choices(examples, k=batch_size)
        for point, side in batch:
            error = side - probability(weights, point)
            weights = [w + rate / batch_size * error * x for w, x in zip(weights, point)]
        step += 1
        if step % log_every == 0 or step == steps:
            loss, accuracy = loss_and_accuracy(weights, batch)
            print(f"step {step}: loss {loss:.4f}, accuracy {accuracy:.3f}")
            measured = {"step": step, "loss": loss, "accuracy": accuracy}
            metrics.write(json.dumps(measured) + "\n")
            metrics.flush()
        if stopping or step % save_every == 0 or step == steps:
            save(checkpoint, {"step": step, "weights": weights})
        if stopping:
            sys.exit(f"stopped at step {step}")

save(os.path.join(os.environ["DROVER_RESULT_DIR"], "model.json"), {"weights": weights})
print("done at step", step)
