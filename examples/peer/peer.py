"""A peer of the actor: it asks before it counts on a task, has it done, checks the branch, and says what is wrong.

usage: python peer.py ACTOR REPOSITORY TASK.json

ACTOR is host:port, REPOSITORY what git clones. Ends with 0 when the branch holds what was agreed, with 1 when it does
not after three tries, and with 2 when the task is not feasible: then a person decides.
"""

import http.client
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TRIES = 3
WAIT_S = 3600  # a session may take half an hour, and may have to wait for its turn
ACCEPTANCE = Path(__file__).with_name("acceptance.py")


def call(actor: str, door: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Put a task to a door. A call that broke off may be made again: the same request never runs twice."""
    connection = http.client.HTTPConnection(actor, timeout=WAIT_S)
    try:
        body = json.dumps({"from": "acme-planner", "payload": payload})
        connection.request("POST", f"/{door}", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer: dict[str, Any] = json.load(response)
    finally:
        connection.close()
    if response.status != http.client.OK:
        sys.exit(f"{door}: {response.status}: {answer['error']}")
    return answer


def show(what: str, entries: list[dict[str, Any]]) -> None:
    """Print what was said about each expectation; a session may say it under more than one key."""
    for entry in entries:
        print(f"{what}: {entry['id']}: {'; '.join(str(text) for key, text in entry.items() if key != 'id')}")


def wrong_with(repository: str, branch: str) -> str:
    """What the acceptance check says about a branch; empty when it holds."""
    with TemporaryDirectory() as folder:
        clone = ["git", "clone", "--quiet", "--depth", "1", "--branch", branch, repository, folder]
        subprocess.run(clone, check=True)
        done = subprocess.run(
            [sys.executable, "-B", ACCEPTANCE], cwd=folder, capture_output=True, text=True, check=False
        )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main(actor: str, repository: str, task_file: str) -> int:
    """Assess, implement, check, and ask again with what is wrong."""
    task = json.loads(Path(task_file).read_text())
    assessed = call(actor, "assess-task", task)
    if not assessed["feasible"]:
        show("for a person to decide", assessed["objections"])
        return 2
    show("committed", assessed["commitments"])
    for _ in range(TRIES):
        answer = call(actor, "implement-task", task)
        wrong = wrong_with(repository, answer["branch"]) if answer["accepted"] else answer["because"]
        if not wrong:
            print(f"agreed and delivered: {answer['branch']}")
            return 0
        print(f"not yet: {wrong.strip()}")
        task["remediation_context"] = wrong
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
