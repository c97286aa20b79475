"""Scores a checkpoint on points that the training has not seen."""

import json
import os

from model import block, loss_and_accuracy, points, save

with open(os.path.join(os.environ["DROVER_INPUTS"], "checkpoint", "last.json")) as file:
    saved = json.load(file)
samples = block("EVALUATION").get("samples", 500)
loss, accuracy = loss_and_accuracy(saved["weights"], points(samples, "held out"))
scores = {"step": saved["step"], "loss": loss, "accuracy": accuracy, "samples": samples}
save(os.path.join(os.environ["DROVER_RESULT_DIR"], "scores.json"), scores)
print(json.dumps(scores))
