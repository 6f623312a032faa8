"""The loopback forge: real git over HTTP, answering as a forge does."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import os
import select
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foundry_implementation_actor.demo.git_http import GitServer
from support.repos import SOURCE_REPO, Repo, capability_repo, git

TOKEN = "token-that-writes"
READ_ONLY = "token-that-reads"


@pytest.fixture
def bare(tmp_path: Path) -> Repo:
    return capability_repo(tmp_path / "forge")


@pytest.fixture
def forge(tmp_path: Path, bare: Repo) -> Iterator[GitServer]:
    with GitServer(tmp_path / "forge", TOKEN, read_only_token=READ_ONLY) as server:
        yield server
    assert server.errors == []


def as_user(token: str) -> str:
    """The git setting that sends a token, as a header so that it is in no URL."""
    credentials = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return f"http.extraHeader=Authorization: Basic {credentials}"


def clone(forge: GitServer, target: Path, token: str = TOKEN, repository: str = SOURCE_REPO) -> Repo:
    git(target.parent, "-c", as_user(token), "clone", "--quiet", f"{forge.url}/{repository}.git", str(target))
    return Repo(target)


def statuses(forge: GitServer) -> list[int]:
    return [served.status for served in forge.served]


def post(forge: GitServer, target: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    credentials = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    connection = http.client.HTTPConnection("127.0.0.1", forge.server_port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", target, body, {"Authorization": f"Basic {credentials}", **named})
    answer = connection.getresponse()
    with contextlib.closing(connection):
        return answer.status, answer.read()


def test_a_clone_has_every_file_branch_and_tag(forge: GitServer, bare: Repo, tmp_path: Path) -> None:
    tree = clone(forge, tmp_path / "tree")
    assert tree.sha() == bare.sha("main")
    assert tree.tags() == bare.tags()
    assert (tree.path / "backend/price.py").is_file()


def test_a_push_arrives(forge: GitServer, bare: Repo, tmp_path: Path) -> None:
    tree = clone(forge, tmp_path / "tree")
    made = tree.commit({"backend/price.py": "PRICE = 4\n"})
    tree.git("-c", as_user(TOKEN), "push", "--quiet", "origin", "HEAD:refs/heads/impl/t1")
    assert bare.branches()["impl/t1"] == made


def test_a_push_too_large_for_one_buffer_arrives_in_chunks(forge: GitServer, bare: Repo, tmp_path: Path) -> None:
    tree = clone(forge, tmp_path / "tree")
    noise = os.urandom(1_500_000)
    tree.commit({"backend/noise.bin": noise})
    tree.git("-c", as_user(TOKEN), "push", "--quiet", "origin", "HEAD:refs/heads/large")
    size = bare.git("cat-file", "-s", "large:backend/noise.bin")
    assert size == str(len(noise))


def test_a_wrong_token_is_answered_401(forge: GitServer, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="could not read Username"):
        clone(forge, tmp_path / "tree", "guess")
    assert set(statuses(forge)) == {401}


def test_no_credentials_are_answered_401_and_a_challenge(forge: GitServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", forge.server_port, timeout=10)
    connection.request("GET", f"/{SOURCE_REPO}.git/info/refs?service=git-upload-pack")
    answer = connection.getresponse()
    connection.close()
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Basic realm="git"')


def test_a_read_only_token_clones_and_is_answered_403_on_a_push(forge: GitServer, bare: Repo, tmp_path: Path) -> None:
    before = bare.branches()
    tree = clone(forge, tmp_path / "tree", READ_ONLY)
    tree.commit({"backend/price.py": "PRICE = 4\n"})
    with pytest.raises(AssertionError, match="403"):
        tree.git("-c", as_user(READ_ONLY), "push", "--quiet", "origin", "HEAD:refs/heads/impl/t1")
    assert bare.branches() == before


@pytest.mark.parametrize("repository", ["acme-lab/none", "acme-lab/../../etc", "acme-lab/.trees", "none/none"])
def test_a_repository_that_is_not_there_is_answered_404(forge: GitServer, repository: str) -> None:
    assert post(forge, f"/{repository}.git/git-upload-pack", b"")[0] == 404


def test_a_remote_that_moves_during_a_push_refuses_it(tmp_path: Path, bare: Repo) -> None:
    def move(repository: Path) -> None:
        Repo(repository).add_commit("main", {"backend/other.py": "OTHER = 1\n"})

    with GitServer(tmp_path / "forge", TOKEN, on_push=move) as forge:
        tree = clone(forge, tmp_path / "tree")
        base = tree.sha()
        tree.commit({"backend/price.py": "PRICE = 4\n"})
        with pytest.raises(AssertionError, match="rejected"):
            tree.git("-c", as_user(TOKEN), "push", f"--force-with-lease=main:{base}", "origin", "HEAD:main")
    assert "backend/other.py" in bare.files("main")


def test_eight_clones_at_once_all_succeed(forge: GitServer, bare: Repo, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda n: clone(forge, tmp_path / f"tree{n}"), range(8)))
    assert {tree.sha() for tree in trees} == {bare.sha("main")}


def test_a_gzipped_request_is_understood(forge: GitServer, bare: Repo) -> None:
    wants = f"0032want {bare.sha('main')}\n0000" + "0009done\n"
    target = f"/{SOURCE_REPO}.git/git-upload-pack"
    kind = "application/x-git-upload-pack-request"
    status, pack = post(forge, target, gzip.compress(wants.encode()), Content_Type=kind, Content_Encoding="gzip")
    assert status == 200
    assert b"PACK" in pack


@pytest.mark.parametrize("headers", [{"Content_Length": "many"}, {"Transfer_Encoding": "chunked"}])
def test_a_body_that_cannot_be_read_is_answered_400(forge: GitServer, headers: dict[str, str]) -> None:
    assert post(forge, f"/{SOURCE_REPO}.git/git-upload-pack", b"no length\r\n", **headers)[0] == 400


def test_a_path_that_git_does_not_serve_gets_gits_own_answer(forge: GitServer) -> None:
    assert post(forge, f"/{SOURCE_REPO}.git/hooks/update", b"")[0] == 404


def test_the_servers_git_reads_nobodys_configuration(forge: GitServer, tmp_path: Path, home: Path) -> None:
    marker = tmp_path / "marker"
    (home / ".gitconfig").write_text(
        f"[core]\n\tfsmonitor = touch {marker}\n[uploadpack]\n\tpackObjectsHook = touch {marker}\n"
    )
    clone(forge, tmp_path / "tree")
    assert not marker.exists()


def test_closing_ends_a_push_that_is_under_way(tmp_path: Path, bare: Repo) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    listening = os.open(started, os.O_RDONLY | os.O_NONBLOCK)
    hook = bare.path / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho started >{started}\nexec sleep 600\n")
    hook.chmod(0o755)
    with GitServer(tmp_path / "forge", TOKEN) as forge:
        tree = clone(forge, tmp_path / "tree")
        tree.commit({"backend/price.py": "PRICE = 4\n"})
        push = subprocess.Popen(
            ["git", "-c", as_user(TOKEN), "push", "--quiet", "origin", "HEAD:refs/heads/t"],
            cwd=tree.path,
            stderr=subprocess.DEVNULL,
        )
        assert select.select([listening], [], [], 10)[0], "the push never reached the hook"
    os.close(listening)
    assert push.wait(10) != 0
    assert not [thread.name for thread in threading.enumerate() if "process_request" in thread.name]
