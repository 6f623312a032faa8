"""Records on stdout: in order, and never in the way of the service when nobody reads them."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from served import Service
from test_service_serve import SCRIPT, SERVE, environment

from foundry_implementation_actor.service.calls import Calls
from foundry_implementation_actor.service.records import Records
from support.repos import SIDECAR

PIPE = 4096


class Pipe(NamedTuple):
    """Both ends of a pipe that holds little."""

    reading: int
    writing: int


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE)
    yield Pipe(reading, writing)
    for descriptor in (reading, writing):
        os.close(descriptor)


def put(records: Records, text: str) -> None:
    records.handle(logging.LogRecord("x", logging.INFO, "", 0, "%s", (text,), None))


def test_records_are_written_in_their_order(pipe: Pipe) -> None:
    records = Records(pipe.writing)
    for number in range(100):
        put(records, str(number))
    records.close()
    assert os.read(pipe.reading, PIPE).decode().split() == [str(number) for number in range(100)]


@pytest.mark.parametrize("blocking", [True, False])
def test_a_stalled_reader_delays_nobody_and_learns_what_it_missed(pipe: Pipe, blocking: bool) -> None:
    os.set_blocking(pipe.writing, blocking)
    records = Records(pipe.writing, most_bytes=10_000)
    line = "x" * 999
    for _ in range(100):
        put(records, line)
    text = b""
    while b"records-dropped" not in text:
        text += os.read(pipe.reading, PIPE)
    *kept, told = text.splitlines()
    assert set(kept) == {line.encode()}
    assert 10 <= len(kept) <= 20
    assert json.loads(told)["count"] == 100 - len(kept)
    put(records, "after")
    records.close()
    assert os.read(pipe.reading, PIPE) == b"after\n"


def test_a_reader_that_has_gone_costs_records_only() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    records = Records(writing)
    put(records, "lost")
    records.close()
    os.close(writing)


def test_a_service_whose_records_nobody_reads_answers_and_ends(tmp_path: Path, pipe: Pipe) -> None:
    folder = tmp_path / "capability"
    folder.mkdir()
    (folder / "actor-agentic-context.yaml").write_text(SIDECAR)
    (folder / "play.yaml").write_text(SCRIPT)
    argv = [sys.executable, "-c", SERVE, str(folder)]
    with subprocess.Popen(argv, env=environment(folder), stdout=pipe.writing, stderr=subprocess.PIPE) as process:
        try:
            service = Service(json.loads(os.read(pipe.reading, PIPE))["port"], [], Calls(), lambda: None)
            for _ in range(60):
                assert service.call("assess-task", {"task_id": "T-1"}).status == 400
            assert service.send("GET", "/health").json == {"status": "ok"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()
        assert process.stderr
        assert process.stderr.read() == b""
    assert threading.active_count() == 1
