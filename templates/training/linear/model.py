"""A linear classifier, and the points it learns to tell apart."""

import json
import math
import os
import random


def block(name):
    """A block of the request, as the template passes it on."""
    return json.loads(os.environ.get("BLOCK_" + name, "{}"))


def points(count, which):
    """So many points with their side; `which` tells what is learnt from what is held out."""
    inputs, data = block("MODEL").get("inputs", 8), block("DATA")
    seed, noise = data.get("seed", 1), data.get("noise", 0.1)
    truth = random.Random(f"{seed} truth")
    plane = [truth.gauss(0, 1) for _ in range(inputs)]
    draw = random.Random(f"{seed} {which}")
    found = []
    for _ in range(count):
        point = [draw.gauss(0, 1) for _ in range(inputs)]
        side = sum(a * b for a, b in zip(plane, point)) + draw.gauss(0, noise)
        found.append((point, 1.0 if side > 0 else 0.0))
    return found


def probability(weights, point):
    score = sum(a * b for a, b in zip(weights, point))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def loss_and_accuracy(weights, examples):
    loss, right = 0.0, 0
    for point, side in examples:
        chance = min(1 - 1e-9, max(1e-9, probability(weights, point)))
        loss -= side * math.log(chance) + (1 - side) * math.log(1 - chance)
        right += (chance > 0.5) == (side > 0.5)
    return loss / len(examples), right / len(examples)


def save(path, value):
    """Whole or not at all: a file counts once it is renamed into place."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.rename(path + ".tmp", path)
