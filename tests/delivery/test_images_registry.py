"""Images in a real registry: what they hold, that they can be repeated, and what is never overwritten."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from foundry_implementation_actor.delivery.images.port import NotBuiltError
from foundry_implementation_actor.domain.error import ActorError, Code
from support.place import BRANCH, Place, shell, write
from support.plain import NOBODY, SOURCES, plain_python
from support.publishing import REPOSITORY, SHELL, Bench
from support.registry import Files, LoopbackRegistry, unpacked
from support.repos import CAPABILITY_FILES, Repo

ODD: dict[str, str | bytes] = {
    "backend/Dockerfile": "FROM scratch\nCOPY . /\n",
    "stub/Dockerfile": "FROM scratch\nCOPY . /\n",
    "backend/café.py": "x = 1\n",
    "backend/a b.py": "",
    'backend/a"b': "quoted\n",
    "backend/.hidden/deep/er/bytes": bytes(range(256)),
    ".gitignore": "*.log\n",
}


def publishing(base: Path, registry: LoopbackRegistry, **settings: str) -> Place:
    images = {"IMAGES": "on", "IMAGE_BUILDER": "buildah", "IMAGE_REGISTRY": f"{registry.host}/foundry"}
    files = {**CAPABILITY_FILES, **ODD}
    return Place(base / "place", files=files, local=True, settings={**images, "REGISTRY_TLS": "off", **settings})


def committed(repo: Repo, ref: str, folder: str, archive: Path) -> Files:
    """What a commit has below a folder, as `Pulled.files` says it."""
    repo.git("-c", "tar.umask=0022", "archive", "--output", str(archive), f"{ref}:{folder}")
    return unpacked(archive.read_bytes())


def test_the_images_of_a_run_hold_what_its_commit_has_and_say_where_they_are_from(
    tmp_path: Path, registry: LoopbackRegistry
) -> None:
    with publishing(tmp_path, registry) as place:
        reply = place.run(
            write("backend/ignored.log"),
            write("backend/run.sh"),
            shell("chmod +x backend/run.sh; ln -s run.sh backend/link"),
            write("stub/x"),
            task_id="TASK-014",
        )
        commit = place.repo.sha("impl/TASK-014")
        version = f"0.1.0-task-014-{commit[:7]}"
        made = place.repo.git("show", "-s", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", commit)
        names = ("backend", "stub")
        refs = [f"{registry.host}/foundry/acme.parts/sup.007.wid/{name}:{version}" for name in names]
        assert reply == {"accepted": True, "branch": "impl/TASK-014", "images": refs}
        told = {record["image"]: record for record in place.recorded("image-published")}
        for name, ref in zip(names, refs, strict=True):
            image = registry.pull(ref)
            assert image.files == committed(place.repo, commit, f"{name}/", tmp_path / "archive.tar")
            assert told[ref]["digest"] == image.digest
            assert told[ref]["was_there"] is False
            assert image.labels == {
                "org.opencontainers.image.created": made,
                "org.opencontainers.image.revision": commit,
                "org.opencontainers.image.source": f"file://{place.repo.path}",
                "org.opencontainers.image.title": f"acme.parts.cap.sup.007.wid-{name}",
                "org.opencontainers.image.version": version,
            }
        backend = registry.pull(refs[0]).files
        assert backend["run.sh"][0] == "100755"
        assert backend["link"] == ("120000", b"run.sh")
        assert "ignored.log" not in backend
        assert not list((place.state / "runs").glob("*wid*"))


def test_a_run_with_another_state_umask_and_clock_publishes_the_same_and_sends_nothing(
    tmp_path: Path, registry: LoopbackRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with publishing(tmp_path, registry) as place:
        first = place.run(write("backend/x"))
        asked = len(registry.asked())
        monkeypatch.setenv("TZ", "Pacific/Auckland")
        before = os.umask(0o077)
        try:
            again = place.run(write("backend/never"), settings={"ACTOR_STATE": str(tmp_path / "other")})
        finally:
            os.umask(before)
        assert again == first
        assert len(place.recorded("session", "start")) == 1
        one, two = place.recorded("image-published")
        assert (one["digest"], one["was_there"], two["was_there"]) == (two["digest"], False, True)
        later = registry.asked()[asked:]
        assert later
        assert {line.split()[0] for line in later} <= {"GET", "HEAD"}


def test_a_ref_that_names_another_image_is_refused_and_stays_as_it_is(
    tmp_path: Path, registry: LoopbackRegistry
) -> None:
    bench = Bench(tmp_path / "bench", registry.host)
    first = bench.publish()
    bench.add({"more": "x\n"})
    with pytest.raises(ActorError, match=r"names another image.*nothing was overwritten") as raised:
        bench.publish()
    assert raised.value.code is Code.UNFIT
    assert raised.value.where == bench.ref()
    assert first.digest in raised.value.message
    assert registry.pull(bench.ref()).digest == first.digest
    assert registry.tags(REPOSITORY) == ["1"]


def test_a_run_whose_ref_is_taken_says_what_was_delivered(tmp_path: Path, registry: LoopbackRegistry) -> None:
    with publishing(tmp_path, registry) as place:
        [ref] = place.run(write("backend/x"))["images"]
        bench = Bench(tmp_path / "bench", registry.host)
        repository, _, tag = ref.removeprefix(f"{registry.host}/").rpartition(":")
        registry.delete(repository, registry.pull(ref).digest)
        assert repository == REPOSITORY
        other = bench.publish(tag)
        reply = place.run(write("backend/never"))
        assert reply["accepted"] is False
        assert f"the branch {BRANCH} is pushed" in reply["because"]
        assert "Published: none. Not published: " in reply["because"]
        assert other.digest in reply["because"]
        assert registry.pull(ref).digest == other.digest
        registry.delete(repository, other.digest)
        assert place.run(write("backend/never"))["images"] == [ref]
        assert len(place.recorded("session", "start")) == 1


def test_a_component_of_20_mb_is_published_whole(tmp_path: Path, registry: LoopbackRegistry) -> None:
    bench = Bench(tmp_path / "bench", registry.host)
    content = os.urandom(20_000_000)
    bench.add({"large": content})
    bench.publish()
    assert registry.pull(bench.ref()).files["large"] == ("100644", content)


@contextlib.contextmanager
def refusing_proxy() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that lets nothing through: its address, and the first line of whatever it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def refuse() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with proxy.accept()[0] as client:
                        asked.append(client.recv(4096).partition(b"\r\n")[0])
                        client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=refuse)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.getsockname()[1]}", asked
        finally:
            proxy.shutdown(socket.SHUT_RDWR)
            thread.join(30)


def test_a_short_name_is_one_of_dockers_hub(tmp_path: Path, registry: LoopbackRegistry) -> None:
    with refusing_proxy() as (address, asked):
        site = {"HTTPS_PROXY": address, "NO_PROXY": "127.0.0.1"}
        bench = Bench(tmp_path / "bench", registry.host, "FROM not-listed-anywhere\n", environment=site)
        with pytest.raises(NotBuiltError, match=r"docker[.]io/library/not-listed-anywhere|registry-1[.]docker[.]io"):
            bench.publish()
    assert set(asked) == {b"CONNECT registry-1.docker.io:443 HTTP/1.1"}


@pytest.mark.parametrize(
    ("dockerfile", "said"),
    [
        ("# a\n# syntax=evil.example/frontend:1\nFROM scratch\n", "a frontend of its own, evil.example/frontend:1"),
        ("FROM scratch\nRUN \\\n  --network=host true\n", "chooses a network"),
    ],
)
def test_a_dockerfile_that_chooses_its_own_network_is_refused(
    tmp_path: Path, registry: LoopbackRegistry, dockerfile: str, said: str
) -> None:
    with pytest.raises(ActorError, match="the Dockerfile cannot be kept from the network") as raised:
        Bench(tmp_path / "bench", registry.host, dockerfile).publish()
    assert said in raised.value.message


def test_a_dockerfile_that_says_nothing_sensible_is_told_in_its_own_words(
    tmp_path: Path, registry: LoopbackRegistry
) -> None:
    bench = Bench(tmp_path / "bench", registry.host, "FROM scratch\nCOPYY . /\n")
    with pytest.raises(ActorError, match=r"the image could not be built: .*COPYY") as raised:
        bench.publish()
    assert raised.value.code is Code.UNFIT
    assert registry.tags(REPOSITORY) == []


_PLAIN = """
import sys
from pathlib import Path
from foundry_implementation_actor.delivery.images.buildah import Buildah
from foundry_implementation_actor.delivery.images.port import ImageOrder
from foundry_implementation_actor.delivery.images.registry import Registry

base, ref, created, labels = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), dict([sys.argv[4].split("=")])
builder = Buildah(Registry(ref.partition("/")[0], "", {}, tls=False), {"PATH": "/usr/bin:/bin"}, 60.0, network=False)
assert not list(builder.lacks()), list(builder.lacks())
order = ImageOrder(base / "commit", "backend/", "backend/", ref, created, labels)
with builder.building(order, base / "desk") as built:
    built.push()
    print(built.digest)
assert not (base / "desk" / "inside").exists()
"""
_WITH_USERS = 'mount --bind "$1" /etc/subuid && mount --bind "$1" /etc/subgid && shift && exec "$@"'


def test_a_user_who_is_not_root_builds_the_same_image(tmp_path: Path, registry: LoopbackRegistry) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can have this done as somebody else; run the tests as root")
    bench = Bench(tmp_path / "bench", registry.host, f"{SHELL}RUN chown 7:8 /bin/sh; id > /made\nCOPY . /\n")
    order = bench.order("by-root")
    with tempfile.TemporaryDirectory() as folder:  # every folder above pytest's own is root's
        base, numbers = Path(folder), tmp_path / "numbers"
        shutil.copytree(bench.commit, base / "commit", symlinks=True)
        (base / "desk").mkdir()
        numbers.write_text(f"{NOBODY}:1000000000:65536\n")
        for place in (base, base / "desk"):
            os.chown(place, NOBODY, NOBODY)
        [labels] = [f"{name}={text}" for name, text in order.labels.items()]
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", _WITH_USERS, "sh", str(numbers),
             "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
             plain_python(), "-B", "-c", _PLAIN, folder, bench.ref("by-nobody"), str(order.created), labels],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{SOURCES}:{Path(requests.__file__).parents[1]}"},
            cwd="/", capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert bench.publish("by-root").digest == done.stdout.strip()
    assert registry.pull(bench.ref("by-nobody")).files == registry.pull(bench.ref("by-root")).files
