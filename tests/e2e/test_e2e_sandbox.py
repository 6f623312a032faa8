"""What a session in each sandbox can find and reach: no secret, and the listed hosts alone."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

import pytest

from foundry_implementation_actor.egress.proxy import HOST_NAME
from foundry_implementation_actor.sandbox.choose import why_not
from support.egress import Origin
from support.model import ScriptedModel, say, use
from support.place import Landed, Place, shell, task, write
from support.serving import Serving, real_environment

SANDBOXES = ["bubblewrap", "landlock"]
LOOT = r"""
exec > backend/loot.txt 2>&1
env; for p in /proc/[0-9]*; do tr '\0' '\n' < $p/environ; tr '\0' ' ' < $p/cmdline; done
git remote -v; git config --list --show-origin; cat .git/config
find "$HOME" "$TMPDIR" STATE -type f -size -1000k -not -path '*/loot.txt' -exec cat {} +
python3 - REVERSED <<'SCAN'
import glob, os, sys

wanted, seen, found = sys.argv[1][::-1].encode(), 0, 0
for maps in set(glob.glob("/proc/[0-9]*/maps")) - {f"/proc/{os.getpid()}/maps"}:
    try:
        with open(maps) as lines, open(maps.replace("maps", "mem"), "rb", 0) as memory:
            for line in lines:
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                if " rw" not in line or end - start > 1 << 28:
                    continue
                memory.seek(start)
                try:
                    content = memory.read(end - start)
                except (OSError, ValueError):
                    continue
                seen += content.count(b"ANTHROPIC_BASE_URL=http://")
                found += content.count(wanted)
    except OSError:
        continue
print("memory seen" if seen else "no memory", "login found" if found else "no login")
SCAN
echo the end
"""


def needed(sandbox: str) -> None:
    """Skip where this sandbox cannot be had."""
    if why_not(sandbox):
        pytest.skip(f"{sandbox} does not hold here: {why_not(sandbox)}")


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_session_in_a_sandbox_finds_no_secret_and_nothing_of_the_actors_state(tmp_path: Path, sandbox: str) -> None:
    needed(sandbox)
    forge, account, kept = (f"{name}-{token_hex(16)}" for name in ("forge", "account", "kept"))
    with Place(tmp_path / "place", token=forge) as place:
        place.state.mkdir(mode=0o700)
        (place.state / "kept").write_text(kept)
        # Reversed, so that what looks for the login is not what it finds.
        look = LOOT.replace("STATE", str(place.state)).replace("REVERSED", account[::-1])
        steps = [use("Bash", command=look), say("done")]
        with ScriptedModel(steps) as model:
            environment = real_environment(place, model, CLAUDE_CODE_OAUTH_TOKEN=account, SANDBOX=sandbox)
            with Serving(place.folder, environment) as actor:
                reply = actor.call("implement-task", task())
    assert reply.body["accepted"] is True, reply
    loot = Landed(place.repo, "impl/TASK-1").read("backend/loot.txt")
    assert loot.endswith("the end")
    assert "PATH=" in loot
    assert "memory seen no login" in loot
    assert [secret for secret in (forge, account, kept) if secret in loot + b"".join(actor.lines).decode()] == []


ASK = """
import socket, sys, urllib.error, urllib.request

allowed, other, mistaken = sys.argv[1:]
proxied = urllib.request.build_opener()
straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(word, opener, place):
    try:
        print(word, opener.open(f"http://{place}/", timeout=5).status)
    except urllib.error.HTTPError as error:
        print(word, error.code, error.read().decode().strip())
    except OSError as error:
        print(word, "no way", error)


ask("listed", proxied, allowed)
ask("port", proxied, other)
ask("name", proxied, "other.example")
ask("spelling", proxied, f"2130706433:{other.partition(':')[2]}")
ask("metadata", proxied, "169.254.169.254")
ask("mistaken", proxied, mistaken)
ask("straight", straight, f"127.0.0.1:{other.partition(':')[2]}")
ask("address", straight, "192.0.2.1")
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 53))
        one.send(b"x")
    print("udp sent")
except OSError as error:
    print("udp no way", error)
"""


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_session_reaches_the_listed_host_and_no_other_by_any_way(tmp_path: Path, sandbox: str) -> None:
    needed(sandbox)
    with Origin() as allowed, Origin() as other, Origin() as unreached:
        # `doctor` warns of the second: inside it is the session's own loopback.
        mistaken = f"127.0.0.1:{unreached.server_port}"
        settings = {"SANDBOX": sandbox, "SESSION_HOSTS": f"{allowed.named},{mistaken}"}
        with Place(tmp_path, local=True, settings=settings) as place:
            asks = shell(f"python3 backend/ask.py {allowed.named} {HOST_NAME}:{other.server_port} {mistaken}")
            place.landed(write("backend/ask.py", ASK), asks)
            said = dict(line.split(" ", 1) for line in place.told.splitlines() if " " in line)
            refused = {record["host"] for record in place.recorded("egress-refused")}
    assert said["listed"] == "200"
    assert [said[word][:3] for word in ("port", "name", "spelling", "metadata")] == ["403", "403", "400", "403"]
    assert [said[word][:6] for word in ("mistaken", "straight", "address", "udp")] == ["no way"] * 4
    assert {HOST_NAME, "other.example", "169.254.169.254"} <= refused
    assert (len(allowed.asked), other.asked, unreached.asked) == (1, [], [])
