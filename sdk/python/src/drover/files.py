"""Files that are there whole or not at all, also after the machine lost its power."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def draft_of(target: Path) -> Path:
    """A hidden name beside it: on the same file system, so that a rename is one step."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def write_whole(target: Path, content: bytes) -> None:
    draft = draft_of(target)
    try:
        draft.write_bytes(content)
        publish(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def publish(draft: Path, target: Path) -> None:
    """Renames what is safe on disk; a folder with all that is in it."""
    if draft.is_dir():
        for folder, _, names in os.walk(draft):
            for name in names:
                sync(Path(folder) / name)
            sync(Path(folder))
    else:
        sync(draft)
    os.replace(draft, target)
    sync(target.parent)


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
