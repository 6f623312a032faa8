"""What people do all day goes on inside of both sandboxes: build, test, install, commit, run in the background."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from foundry_implementation_actor.domain.command import Completed
from foundry_implementation_actor.sandbox.bubblewrap import Bubblewrap
from foundry_implementation_actor.sandbox.caches import cache_environment
from foundry_implementation_actor.sandbox.landlock import Landlock
from foundry_implementation_actor.sandbox.port import Sandbox
from foundry_implementation_actor.system.process import run_contained
from support.plain import Scene

BOTH = pytest.mark.parametrize("sandbox", [Bubblewrap(), Landlock()], ids=lambda one: str(one.name))
_WHEEL = {
    "small.py": "WORD = 'installed'\n",
    "small-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n",
    "small-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "small-1.0.dist-info/RECORD": "small.py,,\nsmall-1.0.dist-info/METADATA,,\nsmall-1.0.dist-info/WHEEL,,\n",
}
_PTY = "import pty; print(pty.spawn(['/bin/sh', '-c', 'tty >/dev/null && echo on a terminal']))"
_POOL = """
import multiprocessing, os
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(sum(pool.map(abs, range(-4, 0))))
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path.resolve())


def works(scene: Scene, sandbox: Sandbox, line: str) -> str:
    """What a line of shell says; it must end well."""
    command = scene.command("/bin/sh", "-e", "-c", line, timeout_s=120)
    command = replace(command, env={**command.env, **cache_environment(scene.home)})
    with sandbox.confine(command, scene.view()) as confined:
        done: Completed = run_contained(confined)
    assert done.ok, f"{done.code} {done.ended}: {done.text}{done.errors}"
    return done.text


@BOTH
def test_a_shell_its_devices_and_its_background_jobs(scene: Scene, sandbox: Sandbox) -> None:
    said = works(
        scene, sandbox,
        "echo x >/dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; echo err >/dev/stderr; "
        "(echo later >$TMPDIR/job) & wait; cat $TMPDIR/job; mktemp >/dev/null; mkfifo $TMPDIR/p; "
        "(echo piped >$TMPDIR/p) & cat $TMPDIR/p; cat <<END\nhere\nEND\n chmod 755 backend/inside.txt; "
        "sed -i s/old/new/ backend/inside.txt; cat backend/inside.txt; ln -s inside.txt backend/l; rm backend/l",
    )  # fmt: skip
    assert said.split() == ["3", "3", "later", "piped", "here", "new"]


@BOTH
def test_python_its_terminals_and_its_pools(scene: Scene, sandbox: Sandbox) -> None:
    (scene.root / "pool.py").write_text(_POOL)
    (scene.root / "terminal.py").write_text(_PTY)
    said = works(scene, sandbox, "python backend/pool.py; python backend/terminal.py; python -c 'import backend'")
    assert said.split() == ["10", "on", "a", "terminal", "0"]
    assert not list(scene.root.rglob("__pycache__"))


@BOTH
def test_git_reads_the_tree_and_its_history(scene: Scene, sandbox: Sandbox) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "first")):
        subprocess.run(("git", *words), cwd=scene.tree, check=True)
    (scene.root / "inside.txt").write_text("newer\n")
    said = works(
        scene,
        sandbox,
        "git status --short; git diff --stat | tail -1; git log --format=%s; git show --stat HEAD >/dev/null",
    )
    assert said.splitlines() == [" M backend/inside.txt", " 1 file changed, 1 insertion(+), 1 deletion(-)", "first"]


@BOTH
def test_git_writes_where_its_folder_is_a_place_to_change(scene: Scene, sandbox: Sandbox) -> None:
    subprocess.run(("git", "init", "-q"), cwd=scene.tree, check=True)
    line = "git add backend && git -c user.name=x -c user.email=x@example.org commit -q -m mine && git log --format=%s"
    done = scene.shell(sandbox, line, writable=(scene.root, scene.tree / ".git"))
    assert (done.text, done.errors) == ("mine\n", "")


@BOTH
def test_pytest_runs_a_suite(scene: Scene, sandbox: Sandbox) -> None:
    (scene.root / "test_it.py").write_text("def test_it(tmp_path):\n    (tmp_path / 'x').write_text('x')\n")
    assert "1 passed" in works(scene, sandbox, "cd backend && python -m pytest -q -p no:cacheprovider test_it.py")


@BOTH
def test_a_wheel_is_installed_into_an_environment_of_its_own(scene: Scene, sandbox: Sandbox) -> None:
    with zipfile.ZipFile(scene.root / "small-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in _WHEEL.items():
            wheel.writestr(name, text)
    said = works(
        scene, sandbox,
        "python -m venv --without-pip $HOME/venv && python -m pip --python $HOME/venv/bin/python install -q --no-index "
        "--disable-pip-version-check backend/small-1.0-py3-none-any.whl && "
        "$HOME/venv/bin/python -c 'import small; print(small.WORD)'",
    )  # fmt: skip
    assert said == "installed\n"


@BOTH
def test_node_and_npm(scene: Scene, sandbox: Sandbox) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm here")
    (scene.root / "package.json").write_text('{"name": "x", "version": "1.0.0", "scripts": {"test": "node -e 1"}}')
    text = "const os = require('os'); os.userInfo(); os.networkInterfaces(); require('fs').writeFileSync('made', 'x')"
    works(scene, sandbox, f'cd backend && node -e "{text}" && npm test --silent && npm pack --silent --offline')
    assert {"made", "x-1.0.0.tgz"} <= {path.name for path in scene.root.iterdir()}


@BOTH
def test_php_runs(scene: Scene, sandbox: Sandbox) -> None:
    if shutil.which("php") is None:
        pytest.skip("no php here")
    text = "file_put_contents(sys_get_temp_dir() . '/x', 'x'); echo PHP_OS, getmypid() > 0;"
    assert works(scene, sandbox, f'php -r "{text}"') == "Linux1"


@BOTH
def test_a_compiler_writes_its_files_and_the_program_runs(scene: Scene, sandbox: Sandbox) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no compiler here")
    (scene.root / "x.c").write_text("int main(void) { return 7; }\n")
    assert works(scene, sandbox, "cc -o backend/x backend/x.c; backend/x || echo $?") == "7\n"


def test_a_server_of_ones_own_is_reached_in_a_network_of_ones_own(scene: Scene) -> None:
    (scene.root / "index.html").write_text("hello\n")
    text = (
        "import http.server, threading, urllib.request; "
        "one = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler); "
        "threading.Thread(target=one.serve_forever, daemon=True).start(); "
        "print(urllib.request.urlopen(f'http://127.0.0.1:{one.server_port}/').read().decode(), end='')"
    )
    (scene.root / "serve.py").write_text(text)
    assert works(scene, Bubblewrap(), "cd backend && python serve.py 2>/dev/null") == "hello\n"


@BOTH
def test_what_is_made_inside_can_be_removed_outside(scene: Scene, sandbox: Sandbox) -> None:
    works(scene, sandbox, "umask 077; mkdir -p backend/a/b; echo x >backend/a/b/c; chmod 0 backend/a/b/c")
    assert (scene.root / "a/b/c").lstat().st_mode & 0o777 == 0
    shutil.rmtree(scene.root / "a")
    assert not os.path.lexists(scene.root / "a")
