"""Where the server is: arguments, environment, `drover login`, `drover up`, as the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Mapping, NamedTuple
from urllib.parse import urlsplit

from .errors import DroverError


class TlsFiles(NamedTuple):
    """Whom to trust beside the public authorities, and what to show where it is asked for."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class Connection(NamedTuple):
    url: str
    token: str | None
    tls: TlsFiles = TlsFiles()


class Context(NamedTuple):
    """A server that `drover login` remembers."""

    name: str
    url: str
    token: str
    tls: TlsFiles


def find_connection(
    url: str | None,
    token: str | None,
    env: Mapping[str, str] = os.environ,
    ca_file: str | None = None,
) -> Connection:
    """The URL of the first source that names one; the rest given, or saved for the same URL."""
    given = token or env.get("DROVER_TOKEN") or None
    for text, what in ((url, "url"), (env.get("DROVER_URL"), "DROVER_URL")):
        if text:
            wanted = normal_url(text, what)
            saved = TlsFiles()
            if given is None or wanted.startswith("https:"):
                for known in _known_servers(env):
                    if known.url == wanted:
                        given, saved = given or known.token, known.tls
                        break
            return Connection(wanted, given, _tls_files(env, ca_file, saved))
    known_servers = _known_servers(env)
    if known_servers:
        first = known_servers[0]
        return Connection(first.url, given or first.token, _tls_files(env, ca_file, first.tls))
    raise DroverError(
        "USAGE",
        "no server is known here",
        hint="start one with `make up`, or name one: Client(url), DROVER_URL, `drover login URL`",
    )


def normal_url(text: str, what: str) -> str:
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    usable = parts.scheme in ("http", "https") and parts.hostname and port != -1
    if not usable or parts.username or parts.query:
        raise DroverError(
            "USAGE", f"{what} {text!r} is not a server's address", hint="write http://HOST:PORT"
        )
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    standard = {"http": 80, "https": 443}[parts.scheme]
    authority = host if port in (None, standard) else f"{host}:{port}"
    return f"{parts.scheme}://{authority}{parts.path}".rstrip("/")


def _tls_files(env: Mapping[str, str], ca_file: str | None, saved: TlsFiles) -> TlsFiles:
    return TlsFiles(
        ca_file or env.get("DROVER_CA_FILE") or saved.ca_file,
        env.get("DROVER_CERT_FILE") or saved.cert_file,
        env.get("DROVER_KEY_FILE") or saved.key_file,
    )


def _saved_tls_files(entry: Mapping[str, Any], file: Path) -> TlsFiles:
    names = ("caFile", "certFile", "keyFile")
    return TlsFiles(*(_text(entry, name, file) if name in entry else None for name in names))


def _known_servers(env: Mapping[str, str]) -> list[Connection]:
    contexts = _contexts(env)
    named = env.get("DROVER_CONTEXT")
    if named:
        contexts = [entry for entry in contexts if named in (entry.name, entry.url)]
        if not contexts:
            hint = "`drover context` lists them"
            raise DroverError("USAGE", f"there is no context {named!r}", hint=hint)
    servers = [Connection(entry.url, entry.token, entry.tls) for entry in contexts]
    up_file = Path(env.get("DROVER_DATA") or _home(env) / ".drover") / "connection.json"
    up = _read_json(up_file)
    if up is not None:
        url = normal_url(_text(up, "url", up_file), str(up_file))
        token = _text(up, "token", up_file)
        servers.append(Connection(url, token, _saved_tls_files(up, up_file)))
    return servers


def _contexts(env: Mapping[str, str]) -> list[Context]:
    """The current one first."""
    config = Path(env.get("XDG_CONFIG_HOME") or _home(env) / ".config")
    file = config / "drover" / "context.json"
    content = _read_json(file) or {}
    contexts: list[Context] = []
    for url, value in _object(content.get("servers", {}), file).items():
        entry = _object(value, file)
        name = str(entry.get("name") or urlsplit(url).netloc)
        place = 0 if url == content.get("current") else len(contexts)
        token, tls = _text(entry, "token", file), _saved_tls_files(entry, file)
        contexts.insert(place, Context(name, url, token, tls))
    return contexts


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def _read_json(file: Path) -> dict[str, Any] | None:
    try:
        return _object(json.loads(file.read_text("utf-8")), file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DroverError("USAGE", f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise _damaged(file, str(error)) from None


def _object(value: Any, file: Path) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _damaged(file, "an object is expected")


def _text(entry: Mapping[str, Any], key: str, file: Path) -> str:
    value = entry.get(key)
    if isinstance(value, str):
        return value
    raise _damaged(file, f"it has no {key}")


def _damaged(file: Path, why: str) -> DroverError:
    hint = "remove it, then `drover login URL` or start `drover up` again"
    return DroverError("USAGE", f"{file} is damaged: {why}", hint=hint)
