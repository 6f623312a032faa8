"""A small forge on loopback: real git over smart HTTP behind one token.

`git http-backend` does the work; this module is the web server in front of it. It answers as a forge
does: 401 for a wrong token, 403 for a push without the right to, 404 for a repository that is not there.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import parse_qs

from foundry_implementation_actor.demo.loopback import LoopbackServer

USER = "x-access-token"

_BLOCK = 64 * 1024
_TARGET = re.compile(r"/([A-Za-z0-9_][\w.-]*)/([A-Za-z0-9_][\w.-]*\.git)(/[\w./-]*)", re.ASCII)
# The server's git sees no configuration but this, and starts nothing that outlives a request.
_CONFIGURATION = (
    "http.receivepack=true",
    "gc.auto=0",
    "receive.autogc=false",
    "maintenance.auto=false",
    "safe.directory=*",
)


class Served(NamedTuple):
    """One request that was answered: its method, its target as the client sent it, the status."""

    method: str
    target: str
    status: int


class _Refused(Exception):  # noqa: N818 - an answer to give, not a fault
    def __init__(self, status: HTTPStatus) -> None:
        self.status = status
        super().__init__(status.phrase)


class GitServer(LoopbackServer):
    """Serves the bare repository `root/<owner>/<repo>.git` at `<url>/<owner>/<repo>.git`.

    Args:
        root: the directory that holds the owners' directories.
        token: reads and pushes, as the password of the user `x-access-token`.
        read_only_token: reads, and is answered 403 on a push; none when empty.
        on_push: called with the repository's path after a client has read the refs and sent its
            push, before git sees it: the moment at which a test moves the remote. What it raises is kept in `errors`.
    """

    def __init__(
        self,
        root: Path,
        token: str,
        *,
        read_only_token: str = "",
        on_push: Callable[[Path], None] | None = None,
    ) -> None:
        super().__init__(_Handler)
        self.root = root.resolve()
        self.on_push = on_push
        self.served: list[Served] = []
        self._writes = {_credentials(token): True}
        if read_only_token:
            self._writes[_credentials(read_only_token)] = False
        self._git = shutil.which("git") or "git"
        self._backends: set[subprocess.Popen[bytes]] = set()
        self._backends_lock = threading.Lock()

    def may_write(self, authorization: str) -> bool:
        """Whether these credentials may push.

        Raises:
            _Refused: 401, when they are nobody's.
        """
        for known, writes in self._writes.items():
            if hmac.compare_digest(authorization.encode(), known.encode()):
                return writes
        raise _Refused(HTTPStatus.UNAUTHORIZED)

    def start_backend(self, env: dict[str, str], body: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start one `git http-backend` in a process group of its own; `end_backend` it after use."""
        options = [word for setting in _CONFIGURATION for word in ("-c", setting)]
        everything = {
            "PATH": os.pathsep.join((str(Path(self._git).parent), os.defpath)),
            "LC_ALL": "C",
            "HOME": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            **env,
        }
        with self._backends_lock:
            if self.closing.is_set():
                raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE)
            backend = subprocess.Popen(
                [self._git, *options, "http-backend"],
                env=everything,
                stdin=body,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                process_group=0,
            )
            self._backends.add(backend)
        return backend

    def end_backend(self, backend: subprocess.Popen[bytes]) -> None:
        """Reap a backend that has closed its output, or was interrupted."""
        if backend.stdout:
            backend.stdout.close()
        backend.wait()
        with self._backends_lock:
            self._backends.discard(backend)

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        with self._backends_lock:
            for backend in self._backends:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(backend.pid, signal.SIGKILL)
        super().__exit__(*exc)


def _credentials(token: str) -> str:
    return "Basic " + base64.b64encode(f"{USER}:{token}".encode()).decode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: GitServer
    path = ""  # stays so when the request line cannot be read

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *args: object) -> None:
        """Nothing on stderr: what was served is kept in `GitServer.served`."""

    def send_response(self, code: int, message: str | None = None) -> None:
        super().send_response(code, message)
        self.server.served.append(Served(self.command or "", self.path, code))

    def _answer(self) -> None:
        with tempfile.TemporaryFile() as body:
            try:
                for block in self._body():
                    body.write(block)
                body.seek(0)
                self._serve(body)
            except _Refused as refused:
                self._refuse(refused.status)

    def _body(self) -> Iterator[bytes]:
        """The request's body. It is read to its end before any answer: a client sends first, then listens."""
        try:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                yield from self._chunks()
            else:
                yield from self._exactly(int(self.headers.get("Content-Length") or 0))
        except ValueError as error:
            self.close_connection = True
            raise _Refused(HTTPStatus.BAD_REQUEST) from error

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield from self._exactly(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue  # trailers carry nothing that git reads

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size > 0:
            block = self.rfile.read(min(size, _BLOCK))
            if not block:
                raise ConnectionResetError
            size -= len(block)
            yield block

    def _serve(self, body: IO[bytes]) -> None:
        may_write = self.server.may_write(self.headers.get("Authorization", ""))
        path, _, query = self.path.partition("?")
        repository, inside = self._repository(path)
        if _is_push(inside, query):
            if not may_write:
                raise _Refused(HTTPStatus.FORBIDDEN)
            if self.command == "POST" and self.server.on_push:
                self.server.on_push(repository)
        self._relay(self._environment(path, query, os.fstat(body.fileno()).st_size), body)

    def _repository(self, path: str) -> tuple[Path, str]:
        parts = _TARGET.fullmatch(path)
        if not parts or ".." in path or not (self.server.root / parts[1] / parts[2] / "HEAD").is_file():
            raise _Refused(HTTPStatus.NOT_FOUND)
        return self.server.root / parts[1] / parts[2], parts[3]

    def _environment(self, path: str, query: str, length: int) -> dict[str, str]:
        return {
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": USER,
            "REMOTE_ADDR": self.client_address[0],
        }

    def _relay(self, env: dict[str, str], body: IO[bytes]) -> None:
        backend = self.server.start_backend(env, body)
        try:
            assert backend.stdout
            self._pass_on(backend.stdout)
        finally:
            self.server.end_backend(backend)

    def _pass_on(self, output: IO[bytes]) -> None:
        status, headers = _cgi_head(output)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while block := output.read(_BLOCK):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block))
        self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, status: HTTPStatus) -> None:
        words = f"{status.phrase}\n".encode()
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words)


def _is_push(inside: str, query: str) -> bool:
    return inside == "/git-receive-pack" or "git-receive-pack" in parse_qs(query).get("service", [])


def _cgi_head(output: IO[bytes]) -> tuple[int, list[tuple[str, str]]]:
    """The status and headers that a CGI program prints first; 500 when it ended without any."""
    status, headers = HTTPStatus.OK.value, list[tuple[str, str]]()
    while line := output.readline():
        name, _, value = line.decode("latin-1").strip().partition(": ")
        if not name:
            return status, headers
        if name == "Status":
            status = int(value.split()[0])
        else:
            headers.append((name, value))
    raise _Refused(HTTPStatus.INTERNAL_SERVER_ERROR)
