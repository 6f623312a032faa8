"""The sidecar's `verify` of each touched component, held like a session, on files of what would be pushed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from foundry_implementation_actor.delivery.export import write_files
from foundry_implementation_actor.domain.capability import Component
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.run import Door, Refused
from foundry_implementation_actor.runs.start import Run
from foundry_implementation_actor.sandbox.caches import cache_environment
from foundry_implementation_actor.sandbox.port import View
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.system.process import find, run_contained

# More is read than is shown, so that a secret is recognised before anything is cut.
_READ = 64 * 1024
_SHOWN = 3_000
_CAUSES = {
    Ended.TIMEOUT: "did not end within {seconds} s",
    Ended.OUTPUT: "wrote more output than it may",
    Ended.PROCESSES: "ran more processes than it may",
    Ended.MEMORY: "took more memory than it may",
    Ended.TAMPERED: "ended what watched over it",
    Ended.NOT_FOUND: "could not be started",
}


def verify(run: Run, git: Git, tree: str, touched: Sequence[str]) -> tuple[Component, ...] | Refused:
    """Run the `verify` of every touched component that has one and is still there; those that were green.

    Args:
        run: the run; each component gets a fresh folder below the run's.
        git: the trusted git directory.
        tree: the tree of the commit that would be pushed.
        touched: the names of the components that the change touches.

    Raises:
        ActorError: INTERRUPTED when the actor is stopping.
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
            red = _red(run, component, place, files)
        if red is not None:
            run.shop.journal.event("verify-red", level="warn", component=component.name, because=red.because)
            return red
        green.append(component)
    return tuple(green)


def _red(run: Run, component: Component, place: Path, files: Path) -> Refused | None:
    shop = run.shop
    asked = f"the verify of {component.name} ({' '.join(component.verify)})"
    try:
        done = _run(run, component, place, files)
    except ActorError as error:
        return Refused(shop.journal.redact(f"{asked} could not be run: {error.message}; nothing was pushed"))
    if done.ended is Ended.STOPPED:
        raise ActorError(Code.INTERRUPTED, f"the actor is stopping; {asked} was ended")
    if done.ok:
        return None
    what = _CAUSES.get(done.ended, "ended with code {code}").format(seconds=shop.verify_timeout_s, code=done.code)
    # Where the files lay is nothing to the caller.
    said = _tail(shop.journal.redact(_text(done).replace(f"{files}/", "")))
    because = shop.journal.redact(f"{asked} {what}")
    shown = f", its output ending `{said}`" if said else ""
    return Refused(f"{because}{shown}; nothing was pushed", settled=done.ended is Ended.EXIT)


def _run(run: Run, component: Component, place: Path, files: Path) -> Completed:
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
    with enclosure.sandbox.confine(command, view) as confined:
        return run_contained(confined, shop.stop)


def _text(done: Completed) -> str:
    return "\n".join(stream[-_READ:].decode("utf-8", "replace").strip() for stream in (done.stdout, done.stderr))


def _tail(text: str) -> str:
    return text.strip()[-_SHOWN:]
