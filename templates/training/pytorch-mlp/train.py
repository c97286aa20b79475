"""Learns step by step, saves as it goes, and goes on where it was when it was interrupted."""

import json
import os
import signal
import sys

import torch
from model import block, build, loss_and_accuracy, points, save

training, data = block("TRAINING"), block("DATA")
steps, batch_size = training.get("steps", 500), training.get("batch_size", 64)
log_every, save_every = training.get("log_every", 10), block("CHECKPOINT").get("every_steps", 100)
checkpoint = os.path.join(os.environ["DROVER_CHECKPOINT_DIR"], "last.pt")

stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))

torch.manual_seed(training.get("seed", 1))
examples, labels = points(data.get("samples", 4096), 0)
model = build()
optimizer = torch.optim.AdamW(model.parameters(), lr=training.get("learning_rate", 1e-3))
step = 0
if os.environ.get("DROVER_RESUME") == "1":
    saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    torch.set_rng_state(saved["random"])
    step = saved["step"]
    print("resumed at step", step)

with open(os.environ["DROVER_METRICS_FILE"], "a", encoding="utf-8") as metrics:
    while step < steps:
        rows = torch.randint(0, len(examples), (batch_size,))
        loss, accuracy = loss_and_accuracy(model(examples[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % log_every == 0 or step == steps:
            print(f"step {step}: loss {loss.item():.4f}, accuracy {accuracy.item():.3f}")
            measured = {"step": step, "loss": loss.item(), "accuracy": accuracy.item()}
            metrics.write(json.dumps(measured) + "\n")
            metrics.flush()
        if stopping or step % save_every == 0 or step == steps:
            save(
                checkpoint,
                {
                    "step": step,
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "random": torch.get_rng_state(),
                },
            )
        if stopping:
            sys.exit(f"stopped at step {step}")

save(os.path.join(os.environ["DROVER_RESULT_DIR"], "model.pt"), model.state_dict())
print("done at step", step)
