"""The service's records on stdout, written by a thread of their own: a reader that stalls delays nothing."""

from __future__ import annotations

import json
import logging
import os
import select
import threading
from collections import deque

MOST_BYTES = 8 * 1024 * 1024
FLUSH_S = 1.0


class Records(logging.Handler):
    """Writes each record's line to a descriptor, in order, without ever making its caller wait.

    What a stalled reader leaves unread is kept up to a limit. What comes above that is dropped and
    counted in an event `records-dropped` once there is room again. A reader that has gone away costs
    records, not the service.

    Args:
        descriptor: where lines go; stays open.
        most_bytes: what may wait.
    """

    def __init__(self, descriptor: int, most_bytes: int = MOST_BYTES) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._most_bytes = most_bytes
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self._ending = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write, name="records", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record."""
        line = (self.format(record) + "\n").encode("utf-8", "replace")
        with self._changed:
            if self._size + len(line) > self._most_bytes:
                self._dropped += 1
                return
            self._waiting.append(line)
            self._size += len(line)
            self._changed.notify()

    def close(self) -> None:
        """Wait until all is written, for a second at most."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(FLUSH_S)
        super().close()

    def _write(self) -> None:
        while lines := self._next():
            try:
                _write_all(self._descriptor, lines)
            except OSError:
                continue
            finally:
                with self._changed:
                    self._size -= len(lines)

    def _next(self) -> bytes:
        """What is to be written now; empty when nothing will come any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._dropped or self._ending)
            if self._waiting:
                return self._waiting.popleft()
            dropped, self._dropped = self._dropped, 0
            line = _told(dropped) if dropped else b""
            self._size += len(line)
            return line


def _told(dropped: int) -> bytes:
    record = {"level": "warn", "event": "event", "step": "records-dropped", "count": dropped, "correlation_id": ""}
    return json.dumps(record).encode() + b"\n"


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        try:
            content = content[os.write(descriptor, content) :]
        except BlockingIOError:  # whoever shares the pipe made it so
            select.select((), (descriptor,), ())
