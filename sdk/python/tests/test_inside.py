"""What a job uses inside: checkpoints that are whole, the warning before the end, metrics."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drover import DroverError, checkpoint, log_metrics


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DROVER_CHECKPOINT_DIR", str(tmp_path / "checkpoints"))
    monkeypatch.delenv("DROVER_RESUME", raising=False)
    return tmp_path / "checkpoints"


def test_the_latest_is_the_last_by_number(folder: Path) -> None:
    assert checkpoint.latest() is None
    for step in (9, 10, 2):
        checkpoint.save(f"step-{step}.json", json.dumps(step).encode())
    newest = checkpoint.latest()
    assert newest == folder / "step-10.json" and newest.read_text() == "10"
    checkpoint.save("best.json", b"{}")
    assert checkpoint.latest("step-*") == newest


def test_a_writer_that_fails_leaves_the_last_good_one(folder: Path) -> None:
    checkpoint.save("state.bin", b"good")

    def torn(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        checkpoint.save("state.bin", torn)
    assert [path.name for path in folder.iterdir()] == ["state.bin"]
    assert (folder / "state.bin").read_bytes() == b"good"


def test_a_folder_is_saved_whole_and_never_overwritten(folder: Path) -> None:
    def write(path: Path) -> None:
        (path / "weights").mkdir(parents=True)
        (path / "weights" / "a").write_text("1")

    saved = checkpoint.save("step-1", write)
    assert (saved / "weights" / "a").read_text() == "1"
    with pytest.raises(DroverError, match="cannot be replaced"):
        checkpoint.save("step-1", write)
    with pytest.raises(DroverError, match="wrote nothing"):
        checkpoint.save("step-2", lambda path: None)
    for name in ("", "../x", ".hidden", "a/b"):
        with pytest.raises(DroverError, match="no name"):
            checkpoint.save(name, b"")


def test_resuming_is_told_by_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = checkpoint.save("step-1", b"x")
    assert checkpoint.resume_from() is None
    monkeypatch.setenv("DROVER_RESUME", "1")
    assert checkpoint.resume_from() == saved
    monkeypatch.setenv("DROVER_RESUME", str(saved))
    assert checkpoint.resume_from() == saved
    monkeypatch.setenv("DROVER_RESUME", str(folder))
    assert checkpoint.resume_from("other-*") is None


PREEMPTED = """
import time
from drover import checkpoint
step = 0
checkpoint.on_preempt(lambda: checkpoint.save(f"step-{step}", b"saved"))
print("ready", flush=True)
while True:
    step += 1
    time.sleep(0.01)
"""


def test_the_callback_runs_before_the_end(folder: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", PREEMPTED], stdout=subprocess.PIPE)
    assert child.stdout and child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(10) == 143
    child.stdout.close()
    newest = checkpoint.latest()
    assert newest and newest.read_bytes() == b"saved"


def test_without_exit_the_loop_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(checkpoint, "_asked", False)
    try:
        checkpoint.on_preempt(exit=False)
        assert not checkpoint.preempted()
        os.kill(os.getpid(), signal.SIGTERM)
        assert checkpoint.preempted()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_metrics_are_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "metrics.jsonl"
    monkeypatch.delenv("DROVER_METRICS_FILE", raising=False)
    assert log_metrics({"loss": 1.0}) is False
    monkeypatch.setenv("DROVER_METRICS_FILE", str(file))
    assert log_metrics({"loss": 0.5, "epoch": 2}, step=7) is True
    log_metrics({"loss": float("nan")})
    first, second = [json.loads(line) for line in file.read_text().splitlines()]
    assert (first["loss"], first["epoch"], first["step"]) == (0.5, 2, 7)
    assert second["loss"] is None and "step" not in second and second["atMs"] > 1e12
    for wrong in ({"loss": "high"}, {"step": 1}):
        with pytest.raises(DroverError):
            log_metrics(wrong)
