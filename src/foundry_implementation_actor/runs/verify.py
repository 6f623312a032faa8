"""The sidecar's `verify` of each touched component, held like a session, on files of what would be pushed."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.delivery.export import write_files
from foundry_implementation_actor.domain.capability import Component
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Cause, Door, Refused, SessionEnd
from foundry_implementation_actor.runs.start import Run
from foundry_implementation_actor.runs.workshop import SessionStoppedError
from foundry_implementation_actor.sandbox.caches import cache_environment
from foundry_implementation_actor.sandbox.port import View
from foundry_implementation_actor.session.lookout import Lookout
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.system.process import Child, find
from foundry_implementation_actor.system.running import gather
from foundry_implementation_actor.system.secrets import Redact

# More is read than is shown, so that a secret is recognised before anything is cut.
_READ = 64 * 1024
_SHOWN = 3_000
_CAUSES = {
    Ended.EXIT: "ended with code {code}",
    Ended.TIMEOUT: "did not end within {seconds} s",
    Ended.OUTPUT: "wrote more output than it may",
    Ended.PROCESSES: "ran more processes than it may",
    Ended.MEMORY: "took more memory than it may",
    Ended.DISK: "wrote more to disk than it may",
    Ended.FILES: "made more files than it may",
    Ended.TAMPERED: "ended what watched over it",
    Ended.NOT_FOUND: "could not be started",
}
_NOT_ITS_OWN = (Ended.TAMPERED, Ended.NOT_FOUND)
_ON_DISK = {Cause.DISK: Ended.DISK, Cause.FILES: Ended.FILES}

# What a terminal takes for orders: colours, moves of the cursor, titles.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_UNSEEN = ("Cc", "Cf", "Cs", "Co")


@dataclass(frozen=True, kw_only=True)
class Red(Refused):
    """A `verify` that ran and was red: the component, how it ended, and the end of its output, fit to be shown."""

    component: Component
    ended: str
    output: str


def verify(run: Run, git: Git, tree: str, touched: Sequence[str]) -> tuple[Component, ...] | Refused:
    """Run the `verify` of every touched component that has one and is still there; those that were green.

    A refusal is a `Red` when the command itself came to a red end, and a plain one when it could not be run.

    Args:
        run: the run; each component gets a fresh folder below the run's.
        git: the trusted git directory.
        tree: the tree of the commit that would be pushed.
        touched: the names of the components that the change touches.

    Raises:
        ActorError: INTERRUPTED when the actor is stopping.
        SessionStoppedError: STOPPED when a process that a command started could not be ended.
    """
    green = []
    for component in run.shop.capability.components:
        if component.name not in touched or not component.verify:
            continue
        place = run.folder / f"verify-{component.name}"
        place.mkdir()
        files = write_files(git, tree, place / "files", index=f"index.{place.name}")
        if not (files / component.path).is_dir():
            run.shop.journal.event("components-gone", components=[component.name])
            continue
        with run.shop.journal.step("verify", component=component.name):
            refused = _refused(run, component, place, files)
        if refused is not None:
            run.shop.journal.event("verify-red", level="warn", component=component.name, because=refused.because)
            return refused
        green.append(component)
    return tuple(green)


def _refused(run: Run, component: Component, place: Path, files: Path) -> Refused | None:
    shop = run.shop
    asked = f"the verify of {component.name} ({' '.join(component.verify)})"

    def shown(text: str) -> str:
        # Where the files lay is nothing to the caller.
        return _readable(text.replace(f"{files}/", ""), shop.journal.redact)

    try:
        done, left = _run(run, component, place, files)
    except ActorError as error:
        return Refused(shown(f"{asked} could not be run: {error.message}; nothing was pushed"))
    if left:
        shop.journal.event("verify-escaped", level="error", component=component.name, processes=left)
        raise _escaped(shown(asked))
    if done.ended is Ended.STOPPED:
        raise ActorError(Code.INTERRUPTED, f"the actor is stopping; {asked} was ended")
    if done.ok:
        return None
    ended = _CAUSES[done.ended].format(seconds=shop.verify_timeout_s, code=done.code)
    output = shown(_text(done)).strip()[-_SHOWN:]
    ending = f", its output ending `{output}`" if output else ""
    because = f"{shown(f'{asked} {ended}')}{ending}; nothing was pushed"
    if done.ended in _NOT_ITS_OWN:
        return Refused(because)
    return Red(because, settled=done.ended is Ended.EXIT, component=component, ended=ended, output=output)


def _escaped(asked: str) -> SessionStoppedError:
    said = f"{asked} cannot be trusted to be over: a process that it started could not be ended; nothing was pushed"
    hint = "look for what is left on the host and end it, then ask again"
    return SessionStoppedError(Code.STOPPED, said, SessionEnd(Cause.ESCAPED), hint=hint)


def _run(run: Run, component: Component, place: Path, files: Path) -> tuple[Completed, int]:
    """What came of the command, and how many processes of it could not be ended."""
    shop, budget = run.shop, run.shop.budgets[Door.IMPLEMENT]
    home, temporary = place / "home", place / "tmp"
    home.mkdir()
    temporary.mkdir()
    program, *words = component.verify
    # A path counts from the files, not from where the actor was started.
    argv = (str(files / program) if "/" in program else program, *words)
    told = {"PATH": shop.path, "HOME": str(home), "TMPDIR": str(temporary), "LANG": "C.UTF-8"}
    command = Command(
        argv, files, told | cache_environment(home), shop.verify_timeout_s,
        most_processes=budget.processes, most_memory=budget.memory_bytes,
    )  # fmt: skip
    find(command)
    enclosure = shop.enclosure()
    view = View((files,), home, temporary, hidden=enclosure.hidden)
    disk = Lookout(replace(budget, processes=0, memory_bytes=0), (files, home, temporary))
    with enclosure.sandbox.confine(command, view) as confined:
        started = time.monotonic()
        with Child(confined, shop.stop) as child, disk.over(child.top):
            done = gather(child, confined, started, lambda: _ON_DISK[disk.found.cause] if disk.found else None)
    ended = Ended.NOT_FOUND if not child.started else Ended.TAMPERED if child.lost else done.ended
    return replace(done, ended=ended), child.left


def _text(done: Completed) -> str:
    return "\n".join(stream[-_READ:].decode("utf-8", "replace").strip() for stream in (done.stdout, done.stderr))


def _readable(text: str, hide: Redact) -> str:
    """A text without secrets and without what no reader sees, which may also stand inside a secret."""
    plain = _ESCAPES.sub("", hide(text)).replace("\r\n", "\n").replace("\r", "\n")
    return hide("".join(char for char in plain if char in "\n\t" or unicodedata.category(char) not in _UNSEEN))
