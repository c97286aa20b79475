"""Estimates pi with concurrent.futures; the processes are jobs on whatever machine is free."""

import random
from concurrent.futures import as_completed

import drover


def hits(seed: int, points: int) -> int:
    draw = random.Random(seed).random
    return sum(draw() ** 2 + draw() ** 2 <= 1 for _ in range(points))


if __name__ == "__main__":
    points = 100_000
    with drover.Executor(cpus=0.1, time="10m") as executor:
        futures = [executor.submit(hits, seed, points) for seed in range(4)]
        total = 0
        for future in as_completed(futures):
            total += future.result()
            print(f"{future.job.id} is done")
    print(f"pi is about {4 * total / (points * len(futures)):.2f}")
