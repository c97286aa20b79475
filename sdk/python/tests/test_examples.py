"""Each file of examples/python does what it says, as a user would start it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from conftest import ROOT, Server

EXAMPLES = ROOT / "examples" / "python"
SHOWN = {
    "submit.py": r"step 1 on \S+\nstep 2 on \S+\nstep 3 on \S+\n",
    "sweep.py": r"rate 0.001: error 7\.\d+\n(.*\n)+best: 0.3\n",
    "executor.py": r"(\S+ is done\n){4}pi is about 3\.1\d\n",
    "train.py": r"x is 3.000 after 500 steps\n",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_it_shows_what_it_promises(name: str, server: Server, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "DROVER_URL": server.url, "DROVER_TOKEN": server.token}
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(SHOWN[name], ended.stdout)


def test_training_goes_on_where_it_was(tmp_path: Path) -> None:
    metrics, checkpoints = tmp_path / "metrics.jsonl", tmp_path / "checkpoints"
    env = {
        **os.environ,
        "DROVER_CHECKPOINT_DIR": str(checkpoints),
        "DROVER_METRICS_FILE": str(metrics),
    }

    def run(steps: int) -> str:
        command = [sys.executable, str(EXAMPLES / "train.py"), str(steps)]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    assert "resumed" not in run(250)
    assert "resumed at step 200\n" in run(500)
    assert [json.loads(line)["step"] for line in metrics.read_text().splitlines()] == [
        *(100, 200),
        *(300, 400, 500),
    ]


def test_the_package_says_that_it_is_typed() -> None:
    assert files("drover").joinpath("py.typed").is_file()
