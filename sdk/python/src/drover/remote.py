"""Runs in the job: loads a call, makes it, and leaves the outcome where results are kept."""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
import zipfile
from pathlib import Path
from typing import Any, TypedDict

from .files import write_whole

RUNTIME_INPUT = "drover-runtime.zip"
CALL_INPUT = "drover-call.zip"
RESULT_FILE = "drover-outcome.pkl"


class Outcome(TypedDict):
    ok: bool
    # The pickled result or exception; apart, so that one that cannot be loaded can be told of.
    value: bytes
    text: str
    traceback: str


def main() -> None:
    call_file = sys.argv[1]
    index = int(os.environ.get("DROVER_ARRAY_INDEX", "0"))
    try:
        value = _call(call_file, index)
        outcome: Outcome = {"ok": True, "value": _dumps(value), "text": "", "traceback": ""}
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        outcome = _failure(error)
    folder = Path(os.environ["DROVER_RESULT_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RESULT_FILE, pickle.dumps(outcome))
    sys.exit(0 if outcome["ok"] else 1)


def _call(call_file: str, index: int) -> Any:
    with zipfile.ZipFile(call_file) as archive:
        about = json.loads(archive.read("call.json"))
        _check_version(about)
        try:
            function = pickle.loads(archive.read("function.pkl"))
            arguments, keywords = pickle.loads(archive.read(f"arguments/{index}.pkl"))
        except ImportError as error:
            raise ImportError(
                f"{about['name']} needs a module that this worker's Python lacks: {error}. "
                "Install it there, or name an image or a lock file that has it."
            ) from error
    return function(*arguments, **keywords)


def _check_version(about: dict[str, Any]) -> None:
    """Functions by value are byte code, which only the same Python reads."""
    there, here = tuple(about["python"]), sys.version_info[:2]
    if about["byValue"] and there != here:
        raise RuntimeError(
            f"{about['name']} was sent by Python {there[0]}.{there[1]}, and {sys.executable} here "
            f"is {here[0]}.{here[1]}: name one that matches, as in python='python{there[0]}."
            f"{there[1]}'"
        )


def _failure(error: BaseException) -> Outcome:
    if isinstance(error, SystemExit):
        error = RuntimeError(f"the function called sys.exit({error.code!r})")
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        value = _dumps(error)
    except Exception:  # One that holds a socket, a lock or the like: its text still travels.
        value = b""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return {"ok": False, "value": value, "text": text, "traceback": trace}


def _dumps(value: Any) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value)
    return bytes(cloudpickle.dumps(value))
