"""Blobs: bytes named by their hash, sent once and fetched to memory or to a file."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import IO, Iterator, Union

from .errors import DroverError
from .http import CHUNK_BYTES, Transport

Source = Union[bytes, "os.PathLike[str]"]


class Blobs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        # What this client sent before; a lost race only sends it twice.
        self._sent: set[str] = set()

    def put(self, source: Source) -> str:
        """The hash, `sha256:…`, once the bytes are safe at the server."""
        name = hash_of(source)
        if name in self._sent:
            return name
        if isinstance(source, bytes):
            self._transport.upload(f"/v1/blobs/{name}", source)
        else:
            self._transport.upload(f"/v1/blobs/{name}", lambda: _open(source))
        self._sent.add(name)
        return name

    def get(self, name: str) -> bytes:
        return self._transport.download(f"/v1/blobs/{name}", lambda chunks: _checked(name, chunks))

    def save(self, name: str, target: Path) -> None:
        """Whole or not at all: what broke off leaves no file behind."""
        target.parent.mkdir(parents=True, exist_ok=True)

        def take(chunks: Iterator[bytes]) -> None:
            handle, draft = tempfile.mkstemp(prefix=".", suffix=".part", dir=target.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    _copy(name, chunks, file)
                os.replace(draft, target)
            except BaseException:
                os.unlink(draft)
                raise

        self._transport.download(f"/v1/blobs/{name}", take)


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


def _checked(name: str, chunks: Iterator[bytes]) -> bytes:
    content = b"".join(chunks)
    if hash_of(content) != name:
        raise _differs(name)
    return content


def _copy(name: str, chunks: Iterator[bytes], file: IO[bytes]) -> None:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
        file.write(chunk)
    if f"sha256:{digest.hexdigest()}" != name:
        raise _differs(name)


def _differs(name: str) -> DroverError:
    hint = "fetch it again; if it stays, the store is damaged"
    return DroverError("HASH_DIFFERS", f"what came is not {name}", hint=hint)
