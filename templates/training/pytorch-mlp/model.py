"""A multilayer perceptron, and the points it learns to classify."""

import json
import os

import torch


def block(name):
    """A block of the request, as the template passes it on."""
    return json.loads(os.environ.get("BLOCK_" + name, "{}"))


def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build():
    model = block("MODEL")
    inputs, classes = model.get("inputs", 16), model.get("classes", 4)
    hidden, dropout = model.get("hidden", [64, 64]), model.get("dropout", 0.1)
    layers, width = [], inputs
    for size in hidden:
        layers += [torch.nn.Linear(width, size), torch.nn.ReLU(), torch.nn.Dropout(dropout)]
        width = size
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, classes)).to(device())


def points(count, which):
    """So many points around the centre of their class; `which`: 0 learnt from, 1 held out."""
    model, data = block("MODEL"), block("DATA")
    inputs, classes = model.get("inputs", 16), model.get("classes", 4)
    seed, noise = data.get("seed", 1), data.get("noise", 1.0)
    centres = torch.randn(classes, inputs, generator=torch.Generator().manual_seed(seed))
    draw = torch.Generator().manual_seed(1000 * (seed + 1) + which)
    labels = torch.randint(0, classes, (count,), generator=draw)
    found = centres[labels] + noise * torch.randn(count, inputs, generator=draw)
    return found.to(device()), labels.to(device())


def loss_and_accuracy(logits, labels):
    loss = torch.nn.functional.cross_entropy(logits, labels)
    return loss, (logits.argmax(1) == labels).float().mean()


def save(path, value):
    """Whole or not at all: a file counts once it is renamed into place."""
    torch.save(value, path + ".tmp")
    os.rename(path + ".tmp", path)
