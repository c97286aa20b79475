"""Blobs: bytes named by their hash, sent once and fetched to memory or to a file."""

from __future__ import annotations

import hashlib
import io
import os
import time
from pathlib import Path
from typing import IO, Union

from .answer import CHUNK_BYTES
from .errors import DroverError
from .files import draft_of
from .http import Transport

Source = Union[bytes, "os.PathLike[str]"]
# Above this a question is cheaper than sending what the server has.
ASK_FIRST_BYTES = 64 * 1024
# How long what was sent is taken to be there: unused blobs are collected, but not so soon.
BELIEVED_S = 600.0


class Blobs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        # When this client sent what; a lost race only sends it twice.
        self._sent: dict[str, float] = {}

    def put(self, source: Source) -> str:
        """The hash, `sha256:…`, once the bytes are safe at the server."""
        name = hash_of(source)
        if time.monotonic() - self._sent.get(name, float("-inf")) < BELIEVED_S:
            return name
        if _size_of(source) > ASK_FIRST_BYTES and not self._missing(name):
            pass
        elif isinstance(source, bytes):
            self._transport.upload(f"/v1/blobs/{name}", source)
        else:
            self._transport.upload(f"/v1/blobs/{name}", lambda: _open(source))
        self._sent[name] = time.monotonic()
        return name

    def get(self, name: str) -> bytes:
        content = io.BytesIO()
        self._fetch(name, content)
        return content.getvalue()

    def save(self, name: str, target: Path, mode: int = 0o644) -> None:
        """Whole or not at all: what broke off leaves no file behind."""
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = draft_of(target)
        try:
            with draft.open("wb") as file:
                self._fetch(name, file)
            draft.chmod(mode)
            os.replace(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def _missing(self, name: str) -> bool:
        body = {"hashes": [name]}
        answer = self._transport.call("POST", "/v1/blobs/missing", body=body)
        return name in answer.data["missing"]

    def _fetch(self, name: str, file: IO[bytes]) -> None:
        digest = hashlib.sha256()

        def take(chunk: bytes) -> None:
            digest.update(chunk)
            file.write(chunk)

        self._transport.download(f"/v1/blobs/{name}", take)
        if f"sha256:{digest.hexdigest()}" != name:
            hint = "fetch it again; if it stays, the store is damaged"
            raise DroverError("HASH_DIFFERS", f"what came is not {name}", hint=hint)


def hash_of(source: Source) -> str:
    digest = hashlib.sha256()
    if isinstance(source, bytes):
        digest.update(source)
    else:
        with _open(source) as file:
            for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
                digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _open(path: os.PathLike[str]) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        hint = "name a file that can be read; pack a folder into one first"
        raise DroverError("USAGE", f"{path}: {error.strerror}", hint=hint) from None


def _size_of(source: Source) -> int:
    return len(source) if isinstance(source, bytes) else os.stat(source).st_size
