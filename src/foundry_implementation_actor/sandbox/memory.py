"""Files that lie in memory only, to hand to a program by descriptor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def in_memory(content: bytes) -> Iterator[int]:
    """A descriptor that reads as `content` from its beginning."""
    descriptor = os.memfd_create("content")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
