"""The published peers in their own environment, and what stands in for everything that they reach besides this actor.

The peers' code is as it was published. Stand-ins are the testing actor's two doors (a model writes its tests), GitHub's
API, and a Kubernetes cluster: a `kubectl` that says of the tests first that they are red, then that they are green.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.demo.loopback import LoopbackServer

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv" / "peers"
DRIVER = ROOT / "tests" / "shipped" / "peer_driver.py"
_TIMEOUT_S = 100.0

_SAYS = """\
context: {contract}/agentic-context/v1
capability: ACME.PARTS.CAP.SUP.007.WID
source_repo: acme-lab/ACME.PARTS.CAP.SUP.007.WID-{role}
"""
ORCHESTRATION = _SAYS.format(contract="foundry-task-orchestration-actor", role="task-orchestration") + (
    "components: [backend, stub]\n"
)
TESTING = _SAYS.format(contract="foundry-testing-actor", role="testing") + (
    "engine: claude-code\nregistry_repo: acme-lab/registry\nground_in: []\n"
    "components: [{name: backend, tests: backend/tests/}, {name: stub, tests: stub/tests/}]\n"
)

# Keeps what each component was deployed from. The tests' log is red as long as there is a file `red`.
_KUBECTL = """\
#!/bin/sh
desk=DESK
case "$*" in
    "kustomize "*) cp "$2/kustomization.yaml" "$(mktemp "$desk/deployed.XXXXXX")" ;;
    *" get secret "*) echo '{"data": {"login": "eA=="}}' ;;
    *" get job/"*) echo '{"status": {"conditions": [{"type": "Complete", "status": "True"}]}}' ;;
    *" logs "*) cat "$desk/red" 2>/dev/null && rm "$desk/red" || echo '==== 2 passed in 0.1s ====' ;;
esac
"""
RED = "test_orders.py::test_the_code_is_empty_order FAILED\n==== 1 failed, 1 passed in 0.1s ====\n"


def ask(what: str, order: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Any:
    """What one function of `peer_driver` answers, run by the Python of the peers' environment.

    Raises:
        AssertionError: it raised; the message holds its traceback.
    """
    if not (ENVIRONMENT / ".installed").is_file():
        pytest.skip("the published peers are not installed; run `make test`, or `sh scripts/setup-peers`")
    home = os.environ["HOME"]
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", "-I", DRIVER, what],
        env={"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, **(environment or {})},
        input=json.dumps(order), capture_output=True, text=True, check=False, timeout=_TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Elsewhere(LoopbackServer):
    """The testing actor at `url`, and GitHub's API at `url`/api, while it is open.

    Args:
        expectations: what the testing actor proposes.
        test_image: the ref that it answers with.
    """

    def __init__(self, expectations: list[dict[str, Any]], test_image: str) -> None:
        self.asked: list[tuple[str, Any]] = []
        tested = {"accepted": True, "branch": "test/TASK-014", "images": [test_image]}
        self._answers = {
            "propose-acceptance": {"expectations": expectations, "open_questions": [], "datasets": []},
            "test-task": tested,
        }
        super().__init__(_Answering)

    def answer(self, path: str, body: Any) -> Any:
        """What is answered to a POST, which is kept."""
        self.asked.append((path, body))
        number = len(self.asked)
        door = self._answers.get(path.strip("/"))
        return door or {
            "number": number,
            "html_url": f"https://forge.example{path.removeprefix('/api/repos')}/{number}",
        }

    def bodies(self, end: str) -> list[Any]:
        """What was posted to paths with this end."""
        return [body for path, body in self.asked if path.endswith(end)]


class _Answering(BaseHTTPRequestHandler):
    server: Elsewhere

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(self.server.answer(self.path, body.get("payload", body)))

    def do_GET(self) -> None:
        """The one thing that is read: which issues are open."""
        self._send([])

    def log_message(self, *_: object) -> None:
        """Not on the test's stderr."""

    def _send(self, answer: Any) -> None:
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Cluster:
    """The `kubectl` of a cluster, in `bin`; the first tests in it are red.

    Args:
        base: an empty directory.
    """

    def __init__(self, base: Path) -> None:
        self.bin = base / "bin"
        self._desk = base / "desk"
        for folder in (self.bin, self._desk):
            folder.mkdir(parents=True)
        (self._desk / "red").write_text(RED)
        (self.bin / "kubectl").write_text(_KUBECTL.replace("DESK", str(self._desk)))
        (self.bin / "kubectl").chmod(0o755)
        self.namespace_file = base / "namespace"
        self.namespace_file.write_text("acme\n")

    @property
    def deployed(self) -> list[str]:
        """The kustomizations that the components were deployed with, in no order."""
        return [path.read_text() for path in self._desk.glob("deployed.*")]
