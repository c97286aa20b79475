"""A training loop that goes on where it was: run it with `drover run --checkpoint . -- ...`.

It saves every 100 steps and when it is asked to end, and tells its loss as it goes. On a laptop it
runs as it is, with ./checkpoints for its checkpoints.
"""

import json
import sys

import drover
from drover import checkpoint


def main(steps: int) -> None:
    state = {"step": 0, "x": 0.0}
    saved = checkpoint.resume_from("step-*") or checkpoint.latest("step-*")
    if saved:
        state = json.loads(saved.read_text())
        print(f"resumed at step {state['step']}")

    def save() -> None:
        content = json.dumps(state).encode()
        checkpoint.save(f"step-{state['step']}.json", content)

    checkpoint.on_preempt(save)
    while state["step"] < steps:
        x = state["x"]
        state = {"step": state["step"] + 1, "x": x - 0.01 * 2 * (x - 3)}
        if state["step"] % 100 == 0:
            save()
            drover.log_metrics({"loss": (state["x"] - 3) ** 2}, step=int(state["step"]))
    print(f"x is {state['x']:.3f} after {state['step']} steps")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
