"""What a program writes just before it exits."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.system.process import Child, Stream

SIZE = 900_000
# As the claude CLI does: what the pipe does not take at once is lost.
HASTY = f"import os; os.set_blocking(1, False); os.write(1, b'x' * {SIZE})"


def test_a_program_that_does_not_wait_for_its_reader_loses_nothing_of_its_last_words(tmp_path: Path) -> None:
    command = Command(
        (sys.executable, "-I", "-S", "-c", HASTY), cwd=tmp_path, env={"PATH": os.environ["PATH"]}, timeout_s=60
    )
    size = 0
    with Child(command) as child:
        while (output := child.read(60)).stream is Stream.STDOUT:
            size += len(output.chunk)
    assert (size, output.stream, child.code) == (SIZE, Stream.ENDED, 0)
