"""A real server for all tests: `drover up` from the checkout, in a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, NamedTuple

import pytest
from proxy import Proxy

import drover

ROOT = Path(__file__).resolve().parents[3]
START_LIMIT_S = 60.0


class Server(NamedTuple):
    url: str
    token: str
    home: Path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("home")
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "DROVER_GRPC_PORT": "0",
        "DROVER_LEASES_LONG_POLL_MS": "2000",
    }
    arguments = ["up", "--port", "0", "--resources", "cpus=8,mem=8Gi"]
    with (home / "up.log").open("wb") as log:
        up = subprocess.Popen([str(ROOT / "drover"), *arguments], env=env, stdout=log, stderr=log)
    try:
        yield _started(up, home)
    finally:
        _cancel_all(home)
        up.send_signal(signal.SIGTERM)
        up.wait(30)


def _started(up: subprocess.Popen[bytes], home: Path) -> Server:
    give_up_at = time.monotonic() + START_LIMIT_S
    while "Ctrl-C" not in (home / "up.log").read_text():
        if up.poll() is not None or time.monotonic() > give_up_at:
            raise RuntimeError(f"drover up did not start: {(home / 'up.log').read_text()}")
        time.sleep(0.05)
    connection = json.loads((home / ".drover" / "connection.json").read_text())
    return Server(connection["url"], connection["token"], home)


def _cancel_all(home: Path) -> None:
    """What runs would outlive the server, as it should."""
    file = home / ".drover" / "connection.json"
    if not file.exists():
        return
    connection = json.loads(file.read_text())
    with drover.Client(connection["url"], connection["token"]) as client:
        for state in ("PENDING", "RUNNING"):
            for view in client.jobs(state=state):
                client.job(view["id"]).cancel()
        for _ in range(200):
            if all(worker["attempts"] == 0 for worker in client.workers()):
                break
            time.sleep(0.05)


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[drover.Client]:
    with drover.Client(server.url, server.token) as client:
        yield client


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.url) as proxy:
        yield proxy
