"""Tries learning rates, each in a task of its own, and names the best."""

import drover


def train(rate: float, steps: int = 50) -> float:
    """Gradient descent on (x - 3)^2; returns what is left of the error."""
    x = 0.0
    for step in range(steps):
        x -= rate * 2 * (x - 3)
        drover.log_metrics({"error": (x - 3) ** 2}, step=step)
    return (x - 3) ** 2


if __name__ == "__main__":
    rates = [0.001, 0.01, 0.1, 0.3]
    params = [{"rate": rate} for rate in rates]
    errors = drover.Client().map(train, params, name="sweep", cpus=0.1, time="10m").result()
    for rate, error in zip(rates, errors):
        print(f"rate {rate}: error {error:.2g}")
    print(f"best: {min(zip(errors, rates))[1]}")
