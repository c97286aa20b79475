"""Numbers a job tells of itself: one JSON line each, in the file that Drover reads."""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any, Mapping

from .errors import DroverError

_RESERVED = ("step", "atMs")


def log_metrics(values: Mapping[str, Any], step: int | None = None) -> bool:
    """Appends to $DROVER_METRICS_FILE. False, and nothing happens, outside of a job."""
    line: dict[str, Any] = {"atMs": int(time.time() * 1000)}
    if step is not None:
        line["step"] = int(step)
    for name, value in values.items():
        if name in _RESERVED:
            hint = "pass the step as step=…" if name == "step" else "take another name"
            raise DroverError("USAGE", f"a metric cannot be called {name!r}", hint=hint)
        line[str(name)] = _number(name, value)
    file = os.environ.get("DROVER_METRICS_FILE")
    if not file:
        return False
    content = (json.dumps(line, allow_nan=False) + "\n").encode()
    # One write at the end of the file: lines of several processes do not mix.
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, content)
    finally:
        os.close(handle)
    return True


def _number(name: str, value: Any) -> float | int | None:
    """Also of NumPy and PyTorch, by their own conversion; JSON has no NaN: null stands for it."""
    if isinstance(value, (bool, int)):
        return int(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        detail = f"the metric {name!r} is {value!r}, which is no number"
        raise DroverError("USAGE", detail, hint="log numbers, print texts") from None
    return number if math.isfinite(number) else None
