"""Functions as jobs: what is packed and sent, and how the answer is read.

Two files go up. The runtime holds this package (and cloudpickle) and is the same for all calls; the
call holds the function and its arguments. `python3 RUNTIME CALL` runs remote.main there.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import io
import json
import pickle
import sys
import sysconfig
import types
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

from .errors import DroverError, RemoteTraceback
from .remote import CALL_INPUT, RESULT_FILE, RUNTIME_INPUT, Outcome

Arguments = tuple[Sequence[Any], Mapping[str, Any]]
# Zip files carry times; a fixed one keeps equal content equal, so that it is sent once.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_MAIN = "from drover.remote import main\n\nmain()\n"


def command_of(python: str) -> list[str]:
    line = f'exec "$0" "$DROVER_INPUTS/{RUNTIME_INPUT}" "$DROVER_INPUTS/{CALL_INPUT}"'
    return ["sh", "-c", line, python]


def name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


@lru_cache(maxsize=1)
def pack_runtime() -> bytes:
    files = {"__main__.py": _MAIN.encode(), **_sources("drover")}
    if _cloudpickle() is not None:
        files.update(_sources("cloudpickle"))
    return _zip(files)


def pack_call(function: Callable[..., Any], calls: Sequence[Arguments]) -> bytes:
    """One function and the arguments of each task."""
    by_value = _cloudpickle() is not None
    about = {"name": name_of(function), "python": sys.version_info[:2], "byValue": by_value}
    files = {"call.json": json.dumps(about).encode()}
    with _sending_module_of(function):
        files["function.pkl"] = _dumps(function, f"the function {name_of(function)}", function)
        for index, call in enumerate(calls):
            arguments = (tuple(call[0]), dict(call[1]))
            what = f"an argument of {name_of(function)} (call {index})"
            files[f"arguments/{index}.pkl"] = _dumps(arguments, what, function)
    return _zip(files)


def read_outcome(content: bytes) -> Any:
    """The value, or the exception of the job with its traceback there as the cause."""
    outcome: Outcome = pickle.loads(content)
    if outcome["ok"]:
        return pickle.loads(outcome["value"])
    trace = RemoteTraceback(outcome["traceback"])
    try:
        error = pickle.loads(outcome["value"])
    except Exception:  # Its class exists only there: its text is what can be told.
        error = None
    if not isinstance(error, BaseException):
        error = DroverError("REMOTE_ERROR", outcome["text"], hint="the traceback is in the log")
    raise error from trace


def outcome_in(files: Sequence[Any]) -> Any | None:
    return next((file for file in files if file.path == RESULT_FILE), None)


def _dumps(value: Any, what: str, function: Callable[..., Any]) -> bytes:
    cloudpickle = _cloudpickle()
    if cloudpickle is None:
        _refuse_what_has_no_import(function)
    try:
        content = (cloudpickle or pickle).dumps(value)
    except Exception as error:  # Whatever a class's own __reduce__ raises.
        raise DroverError(
            "USAGE",
            f"{what} cannot be sent: {error}",
            hint="open files, connections, locks and generators inside the function",
        ) from error
    return bytes(content)


def _refuse_what_has_no_import(function: Callable[..., Any]) -> None:
    name = name_of(function)
    if getattr(function, "__module__", None) == "__main__" or "<" in name:
        raise DroverError(
            "USAGE",
            f"{name} is part of a script, a notebook or another function: no worker can import it",
            hint="pip install cloudpickle, or move it to a module that is installed on the workers",
        )


@contextlib.contextmanager
def _sending_module_of(function: Callable[..., Any]) -> Iterator[None]:
    """A module of the user's own is not on the workers: its functions and classes go along."""
    cloudpickle, module = _cloudpickle(), _own_module(function)
    if cloudpickle is None or module is None:
        yield
        return
    already = module.__name__ in cloudpickle.list_registry_pickle_by_value()
    if not already:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        if not already:
            cloudpickle.unregister_pickle_by_value(module)


def _own_module(function: Callable[..., Any]) -> types.ModuleType | None:
    inner = getattr(function, "func", function)  # functools.partial
    name = str(getattr(inner, "__module__", None) or type(inner).__module__)
    module = sys.modules.get(name.split(".")[0])
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ in ("__main__", "drover"):
        return None
    installed = [sysconfig.get_path(part) for part in ("stdlib", "purelib", "platlib")]
    parents = Path(file).resolve().parents
    return None if any(Path(place).resolve() in parents for place in installed) else module


def _cloudpickle() -> Any:
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def _sources(package: str) -> dict[str, bytes]:
    return {
        f"{package}/{entry.name}": entry.read_bytes()
        for entry in importlib.resources.files(package).iterdir()
        if entry.name.endswith(".py")
    }


def _zip(files: Mapping[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name])
    return content.getvalue()
