"""What goes into a job and what comes out: inputs, results, checkpoints, jobs of jobs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import drover
from drover import checkpoint
from drover.job import below


def test_inputs_are_there_and_results_come_back(client: drover.Client, tmp_path: Path) -> None:
    data = tmp_path / "numbers.txt"
    data.write_text("1\n2\n3\n")
    script = """
set -e
cd "$DROVER_RESULT_DIR"
mkdir deep
cat "$DROVER_INPUTS/numbers.txt" "$DROVER_INPUTS/more.txt" > deep/all.txt
printf '#!/bin/sh\\n' > tool && chmod +x tool
ln -s deep/all.txt newest
echo kept > "$OLDPWD/out.csv"
"""
    job = client.submit(
        script,
        inputs={"numbers.txt": data, "more.txt": b"4\n"},
        outputs=["*.csv"],
        cpus=0.1,
    )
    files = {file.path: file for file in job.result(60)}
    assert set(files) == {"deep/all.txt", "tool", "out.csv"}
    assert files["deep/all.txt"].read() == b"1\n2\n3\n4\n"
    job.download(tmp_path / "got")
    assert (tmp_path / "got" / "newest").read_text() == "1\n2\n3\n4\n"
    assert (tmp_path / "got" / "tool").stat().st_mode & 0o111
    assert (tmp_path / "got" / "out.csv").read_text() == "kept\n"
    job.download(tmp_path / "got")  # Again, over what is there.


def test_a_job_that_left_nothing_says_so(client: drover.Client) -> None:
    job = client.submit("true", cpus=0.1)
    with pytest.raises(drover.DroverError) as caught:
        job.result(60)
    assert caught.value.code == "NOT_FOUND" and "DROVER_RESULT_DIR" in str(caught.value)


def test_a_name_that_leads_out_of_the_folder_is_refused() -> None:
    for name in ("../x", "/etc/x", "a/../../x", "."):
        with pytest.raises(drover.DroverError, match="no path below"):
            below(Path("got"), name)
    assert below(Path("got"), "a/../b") == Path("got/b")


def counted(steps: int, fail_at: int) -> list[int]:
    """Saves each step; in the first attempt it dies on the way."""
    saved = checkpoint.resume_from("step-*")
    done: list[int] = json.loads(saved.read_text()) if saved else []
    start = len(done)
    for step in range(start, steps):
        if start == 0 and step == fail_at:
            raise SystemError("the first attempt dies here")
        done.append(step)
        checkpoint.save(f"step-{step}.json", json.dumps(done).encode())
    return [start, *done]


def test_the_next_attempt_goes_on_where_the_first_was(client: drover.Client) -> None:
    call = client.call(counted, [8, 5], python=sys.executable, checkpoint=True, retries=1, cpus=0.1)
    assert call.result(90) == [5, 0, 1, 2, 3, 4, 5, 6, 7]
    assert len(list(call.attempts())) == 2
    newest = list(call.checkpoints())[-1]
    assert newest["files"] == 8 and newest["bytes"] > 0


def parent() -> str:
    """Runs in a job, with that job's own token."""
    assert os.environ["DROVER_TOKEN"]
    child = drover.Client().submit("echo from the child", name="child", cpus=0.1)
    child.check(60)
    return child.output()


def test_a_job_submits_a_job(client: drover.Client) -> None:
    call = client.call(parent, python=sys.executable, may_submit=True, cpus=0.1)
    assert call.result(90) == "from the child\n"
