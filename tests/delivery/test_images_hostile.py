"""Dockerfiles of a repository that means harm: what they reach of this host, and what is left of them."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from foundry_implementation_actor.delivery.images.port import NotBuiltError
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import Stop
from support.publishing import REPOSITORY, SHELL, Bench
from support.registry import LoopbackRegistry, write_login

PROGRAMS = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr"}
ROOT = PROGRAMS | {"etc", "run", "tmp", "var", "proc", "dev", "sys", "desk", "commit"}
SECRET = "the-one-secret-of-this-test"


@pytest.fixture
def running(tmp_path: Path) -> str:
    """A line that does not end, and that can be told from every other."""
    return f"sleep 98765{os.getpid()}"


def through_a_link(line: str, how: str = "rw") -> str:
    """A Dockerfile whose line has at /m what the link `up` of its first stage leads to, if a builder lets it.

    buildah 1.28 follows the link on its own side (CVE-2024-1753).
    """
    return f"{SHELL}FROM base\nRUN --mount=type=bind,from=base,source=/up,target=/m,{how} {line}\n"


def linked(base: Path, host: str, to: str, line: str, **how: Any) -> Bench:
    """A component with that Dockerfile, and with a link `up` to a place of the host."""
    bench = Bench(base, host, through_a_link(line), **how)
    (bench.context / "rootfs/up").symlink_to(to)
    return bench


def made(registry: LoopbackRegistry, bench: Bench, path: str) -> str:
    """Publish, and read a file of the image."""
    return registry.pull(bench.publish().ref).files[path][1].decode()


def test_a_line_that_gets_hold_of_the_builders_own_root_sees_programs_and_the_commit_only(
    tmp_path: Path, registry: LoopbackRegistry, home: Path, running: str
) -> None:
    (home / "secret").write_text(SECRET)
    (tmp_path / "secret").write_text(SECRET)
    look = "ls -A /m > /root; ls -A /m/tmp /m/var/tmp > /empty; ls -A /m/commit > /commit; "
    look += f"cat /m{home}/secret /m{tmp_path}/secret /m/proc/*/environ /m/proc/*/cmdline > /got 2>/dev/null; true"
    environment = {"PATH": os.defpath, "HTTPS_PROXY": f"http://u:{SECRET}@proxy.invalid", "NO_PROXY": "127.0.0.1"}
    bench = linked(tmp_path / "bench", registry.host, "/", look, environment=environment)
    with subprocess.Popen(running.split()) as other:
        try:
            files = registry.pull(bench.publish().ref).files
        finally:
            other.kill()
    seen = {name: set(files[name][1].decode().split()) for name in ("root", "empty", "commit")}
    assert {"usr", "proc"} <= seen["root"] <= ROOT
    assert seen["empty"] == {"/m/tmp:", "/m/var/tmp:"}
    assert seen["commit"] == {"backend"}
    got = files["got"][1]
    assert b"buildah" in got
    assert SECRET.encode() not in got
    assert running.split()[1].encode() not in got


PLACES = {"a program's folder": "PATH", "a certificate's folder": "SSL_CERT_DIR", "the commit": ""}


@pytest.mark.parametrize("what", PLACES)
def test_a_line_that_gets_hold_of_a_place_of_the_host_cannot_write_there(
    tmp_path: Path, registry: LoopbackRegistry, what: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    environment = {"PATH": os.environ["PATH"]}
    if name := PLACES[what]:
        environment[name] = f"{place}:{environment['PATH']}" if name == "PATH" else str(place)
    line = "cd /m; (echo x > new; chmod 0 .) 2> /said; true"
    to = str(place) if name else "/commit"
    bench = linked(tmp_path / "bench", registry.host, to, line, environment=environment)
    place = place if name else bench.commit
    place.chmod(0o777)
    before = sorted(place.iterdir())
    assert made(registry, bench, "said").count("Read-only file system") == 2
    # What makes buildah mount it once more, with other options: without the read-only one.
    (bench.context / "Dockerfile").write_text(through_a_link(line, "rw,nosuid"))
    with pytest.raises(ActorError, match="operation not permitted"):
        bench.publish("2")
    assert sorted(place.iterdir()) == before
    assert stat.S_IMODE(place.stat().st_mode) == 0o777


def test_a_line_moves_no_other_process_of_the_host_and_sets_no_limit(
    tmp_path: Path, registry: LoopbackRegistry
) -> None:
    line = "for p in /sys/fs/cgroup /m /m/*; do mkdir $p/of-a-test && echo made $p; done > /said 2>&1; "
    line += "for f in /m/*/cgroup.procs; do echo 1 > $f && echo moved; done >> /said 2>&1; true"
    bench = linked(tmp_path / "bench", registry.host, "/sys/fs/cgroup", line)
    said = made(registry, bench, "said")
    assert "Read-only file system" in said
    assert "made" not in said
    assert "moved" not in said


def test_no_setting_that_a_line_writes_is_ever_read(tmp_path: Path, registry: LoopbackRegistry) -> None:
    """A credential helper of the commit would run beside the login, with the host's network."""
    helper = json.dumps({"credHelpers": {registry.host: "x/run"}})
    line = "for d in /m/desk /m/root /m/nonexistent /m/run /m/tmp /m/etc; do "
    line += (
        "for f in $d/.config/containers $d/containers/0 $d/containers-user-0/containers/containers; do mkdir -p $f; "
    )
    line += """printf 'credential-helpers = ["x/run"]' > $f/registries.conf; """
    line += f"printf '{helper}' > $f/auth.json; done; done 2>/dev/null; true"
    login = write_login(tmp_path / "login", registry.host)
    bench = linked(tmp_path / "bench", registry.host, "/", line, docker_config=login)
    program = bench.commit / "docker-credential-x" / "run"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho it ran >&2\nexit 1\n")
    program.chmod(0o755)
    assert bench.publish().digest == registry.pull(bench.ref()).digest
    fetches = f"FROM {registry.host}/none\nCOPY --from=1 /up /\n"
    (bench.context / "Dockerfile").write_text(through_a_link(line) + fetches)
    with pytest.raises(ActorError, match=r"manifest unknown|not found") as raised:  # and not what a helper says
        bench.publish("2")
    assert "it ran" not in raised.value.message


def test_a_line_reaches_no_network_unless_that_is_allowed(tmp_path: Path, registry: LoopbackRegistry) -> None:
    line = f"cat /proc/net/dev > /devices; wget -q -O /got http://{registry.host}/v2/ 2> /said; true"
    shut = Bench(tmp_path / "shut", registry.host, f"{SHELL}RUN {line}\n")
    files = registry.pull(shut.publish("shut").ref).files
    assert [row.split(":")[0].strip() for row in files["devices"][1].decode().splitlines()[2:]] == ["lo"]
    assert "wget" in files["said"][1].decode()
    assert not files.get("got", ("", b""))[1]
    opened = Bench(tmp_path / "opened", registry.host, f"{SHELL}RUN {line}\n", network=True)
    assert registry.pull(opened.publish("opened").ref).files["got"][1] == b"{}"


def test_a_line_that_needs_the_network_is_told_what_opens_it(tmp_path: Path, registry: LoopbackRegistry) -> None:
    wants = f"{SHELL}RUN wget -q -O /got http://{registry.host}/v2/\n"
    with pytest.raises(NotBuiltError, match="wget") as raised:
        Bench(tmp_path / "bench", registry.host, wants).publish()
    assert raised.value.hint == "what a Dockerfile runs reaches no network unless BUILD_NETWORK=on"
    assert "STEP 1" not in raised.value.message


def test_links_of_the_commit_lead_nowhere_outside_it(tmp_path: Path, registry: LoopbackRegistry) -> None:
    bench = Bench(tmp_path / "bench", registry.host, "FROM scratch\nCOPY . /all/\n")
    (bench.context / "absolute").symlink_to("/etc/passwd")
    (bench.context / "above").symlink_to("../../../../../etc/passwd")
    files = registry.pull(bench.publish().ref).files
    assert files["all/absolute"] == ("120000", b"/etc/passwd")
    assert files["all/above"] == ("120000", b"../../../../../etc/passwd")
    for link in ("absolute", "above"):
        (bench.context / "Dockerfile").write_text(f"FROM scratch\nCOPY {link} /got\n")
        with pytest.raises(ActorError, match=rf"the image could not be built: .*COPY {link} /got"):
            bench.publish(link)


def runs(line: str) -> bool:
    """Whether a process with these words is there."""
    words = line.replace(" ", "\0").encode() + b"\0"
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if file.read_bytes() == words:
                return True
    return False


def test_a_build_that_does_not_end_is_ended_and_nothing_of_it_is_left(
    tmp_path: Path, registry: LoopbackRegistry, running: str
) -> None:
    bench = Bench(tmp_path / "bench", registry.host, f"{SHELL}RUN {running} & {running}\n", timeout_s=3.0)
    with pytest.raises(ActorError, match="the image could not be built: buildah did not end within 3 s") as raised:
        bench.publish()
    assert raised.value.code is Code.UNFIT
    assert "BUILD_TIMEOUT_S" in raised.value.hint
    assert not runs(running)
    assert registry.tags(REPOSITORY) == []


def test_what_a_line_leaves_running_is_ended_with_it(tmp_path: Path, registry: LoopbackRegistry, running: str) -> None:
    leaves = f"({running} &) ; setsid {running} & echo made > /made"
    bench = Bench(tmp_path / "bench", registry.host, f"{SHELL}RUN {leaves}\n")
    assert made(registry, bench, "made") == "made\n"
    assert not runs(running)


def test_a_stop_ends_a_build_and_nothing_of_it_is_left(
    tmp_path: Path, registry: LoopbackRegistry, running: str
) -> None:
    bench = Bench(tmp_path / "bench", registry.host, f"{SHELL}RUN {running}\n")
    stop, gone = Stop(), threading.Event()

    def stop_when_it_runs() -> None:
        while not runs(running) and not gone.wait(0.01):
            pass
        stop.set()

    watcher = threading.Thread(target=stop_when_it_runs)
    watcher.start()
    try:
        with pytest.raises(ActorError, match="the image could not be built: the actor is stopping") as raised:
            bench.publish(stop=stop)
    finally:
        gone.set()
        watcher.join()
    assert raised.value.code is Code.INTERRUPTED
    assert not runs(running)
    assert registry.tags(REPOSITORY) == []


def test_a_build_that_floods_is_ended(tmp_path: Path, registry: LoopbackRegistry) -> None:
    bench = Bench(tmp_path / "bench", registry.host, f"{SHELL}RUN yes | head -c 100000000\n")
    with pytest.raises(ActorError, match="the image could not be built: buildah printed more than 16,777,216 bytes"):
        bench.publish()
    assert registry.tags(REPOSITORY) == []
