"""Checkpoints inside a job: where they lie, the newest one, saving one whole, and the warning.

state = load(path) if (path := checkpoint.resume_from()) else fresh()
checkpoint.on_preempt(lambda: checkpoint.save(f"step-{step}.pt", write))
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Callable, Union

from .errors import DroverError
from .files import draft_of, publish

Writer = Union[bytes, Callable[[Path], object]]
# Outside of Drover, so that the same script runs on a laptop.
_LOCAL = "checkpoints"
# 128 + SIGTERM, as a shell reports it.
_EXIT_TERMINATED = 143
_asked = False


def directory() -> Path:
    """$DROVER_CHECKPOINT_DIR, or ./checkpoints outside of a job; made where it is missing."""
    path = Path(os.environ.get("DROVER_CHECKPOINT_DIR") or _LOCAL)
    path.mkdir(parents=True, exist_ok=True)
    return path


def latest(pattern: str = "*") -> Path | None:
    """The last by name, numbers counted as numbers: step-10 comes after step-9.

    Not by time: a checkpoint restored on another machine has the time of its restoring.
    """
    found = [path for path in directory().glob(pattern) if not path.name.startswith(".")]
    return max(found, key=lambda path: _natural(path.name), default=None)


def save(name: str, writer: Writer) -> Path:
    """Bytes, or a function that writes a file or a folder at the path it is given.

    It is written under another name, brought to disk, and renamed: what `latest` finds is whole.
    """
    if not name or name.startswith(".") or Path(name).name != name:
        hint = "write a plain name such as step-100.pt"
        raise DroverError("USAGE", f"{name!r} is no name for a checkpoint", hint=hint)
    target = directory() / name
    if target.is_dir():
        hint = "take a new name for each step: step-1, step-2"
        raise DroverError("USAGE", f"{target} is a folder and cannot be replaced whole", hint=hint)
    draft = draft_of(target)
    try:
        if isinstance(writer, bytes):
            draft.write_bytes(writer)
        else:
            writer(draft)
        if not draft.exists():
            hint = "write to the path that the function is given"
            raise DroverError("USAGE", f"the writer of {name} wrote nothing", hint=hint)
        publish(draft, target)
    except BaseException:
        _remove(draft)
        raise
    return target


def resume_from(pattern: str = "*") -> Path | None:
    """What an earlier attempt left, by $DROVER_RESUME; None in the first attempt."""
    told = os.environ.get("DROVER_RESUME", "")
    if told in ("", "0", "false"):
        return None
    named = Path(told)
    # A folder is where they were restored; a file is the one to take.
    return named if named.is_file() else latest(pattern)


def on_preempt(callback: Callable[[], object] | None = None, *, exit: bool = True) -> None:
    """Runs when the job is asked to end (SIGTERM): there is the job's grace time to save.

    With `exit` the process then ends with 143; without, the program looks at `preempted()`.
    Call it in the main thread.
    """

    def asked(_signal: int, _frame: FrameType | None) -> None:
        global _asked
        _asked = True
        if callback is not None:
            callback()
        if exit:
            sys.exit(_EXIT_TERMINATED)

    signal.signal(signal.SIGTERM, asked)


def preempted() -> bool:
    """Whether the job was asked to end, since `on_preempt` was called."""
    return _asked


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)
