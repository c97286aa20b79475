"""Scores a checkpoint on points that the training has not seen."""

import json
import os

import torch
from model import block, build, device, loss_and_accuracy, points

path = os.path.join(os.environ["DROVER_INPUTS"], "checkpoint", "last.pt")
saved = torch.load(path, map_location=device(), weights_only=True)
model = build()
model.load_state_dict(saved["model"])
model.eval()
samples = block("EVALUATION").get("samples", 2000)
examples, labels = points(samples, 1)
with torch.no_grad():
    loss, accuracy = loss_and_accuracy(model(examples), labels)
scores = {"step": saved["step"], "loss": loss.item(), "accuracy": accuracy.item()}
scores["samples"] = samples
with open(os.path.join(os.environ["DROVER_RESULT_DIR"], "scores.json"), "w") as file:
    json.dump(scores, file)
print(json.dumps(scores))
