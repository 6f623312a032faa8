"""Where a run starts: what is checked before anything is paid for, and the commit to build on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from foundry_implementation_actor.delivery.commit import is_own
from foundry_implementation_actor.delivery.push import branches_in_the_way, check_push
from foundry_implementation_actor.delivery.version import untagged
from foundry_implementation_actor.domain.capability import Component
from foundry_implementation_actor.domain.change import printable
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.domain.run import Refused
from foundry_implementation_actor.domain.task import TASK_ID_RULE, Task, is_task_id
from foundry_implementation_actor.runs.earlier import Delivered, components_touched, find_delivered, left_behind
from foundry_implementation_actor.runs.workshop import Workshop
from foundry_implementation_actor.session.pen import Pen
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.checkout import Checkout, Start, check_out
from foundry_implementation_actor.workspace.configuration import tell
from foundry_implementation_actor.workspace.grounding import ground
from foundry_implementation_actor.workspace.left import blocked
from foundry_implementation_actor.workspace.mirror import Mirror, Refs, cleaned, mirror_of, refresh
from foundry_implementation_actor.workspace.trusted import Prepared, prepare

_LONGEST_SHOWN = 256


@dataclass(frozen=True)
class Plan:
    """What a run will do: start from `start`, and push over a branch that is still at `expected`.

    `expected` is empty when the branch must not exist. `continues` says that the start is an
    earlier attempt at the same task; `delivered` is what already answers this very request.
    """

    start: Start
    expected: str
    continues: bool = False
    delivered: Delivered | None = None


@dataclass(frozen=True)
class Run:
    """One run under way: its means, its task, its plan, and the directory that is removed at its end.

    `pen` is the gate that its session writes through, None when that writes freely.
    """

    shop: Workshop
    task: Task
    mirror: Mirror
    plan: Plan
    folder: Path
    pen: Pen | None = None


def check_task_id(shop: Workshop, task: Task) -> Refused | None:
    """Refuse an id that cannot name a branch and an image tag (CONTRACT 2), or that would publish a secret."""
    shown = clip(shop.journal.redact(task.task_id), _LONGEST_SHOWN)
    if not is_task_id(task.task_id):
        return Refused(f"task_id {shown!r} cannot be used: it must be {TASK_ID_RULE}", settled=True)
    if shop.finds_secret(task.task_id.encode()):
        return Refused("task_id holds a secret of the actor, which would become the name of a branch", settled=True)
    return None


def read_repository(shop: Workshop, task: Task) -> tuple[Mirror, Refs]:
    """The mirror, brought up to date, and what the remote has."""
    mirror = mirror_of(shop.state, shop.remote, shop.git)
    return mirror, refresh(mirror, task.branch, shop.journal)


def plan(shop: Workshop, task: Task, mirror: Mirror, refs: Refs) -> Plan | Refused:
    """Decide what to build on, or refuse because the branch is somebody else's."""
    base, head = refs.default, refs.task
    if head and not is_own(mirror.git, base, head, shop.capability):
        return _not_ours(task, mirror, refs)
    delivered = find_delivered(shop, task, mirror.git, refs)
    if delivered is not None:
        return Plan(Start(refs, base, task.branch), head, delivered=delivered)
    continues = bool(head and task.remediation_context)
    return Plan(Start(refs, head if continues else base, task.branch), head, continues=continues)


def _not_ours(task: Task, mirror: Mirror, refs: Refs) -> Refused:
    """Why a branch is not worked on that has more than commits of this actor beyond the default branch."""
    before = left_behind(mirror.git, refs, task.task_id)
    if before:
        return Refused(
            f"the branch {task.branch} goes on from {before[:12]}, which the default branch no longer has; nothing was "
            "overwritten: rename or delete the branch, and ask again to have the work done on today's default branch"
        )
    return Refused(
        f"the branch {task.branch} exists at {refs.task[:12]} and holds commits that this actor did not make; "
        "nothing was overwritten: rename or delete the branch, or give the task another id"
    )


def check_images(shop: Workshop, task: Task, mirror: Mirror, work: Plan) -> Refused | None:
    """See, before a session is paid for, that every component's image could be published.

    Of what is delivered already, only those that it touches: what the default branch has become is no matter then.
    """
    if shop.publisher is None:
        return None
    commit, components, git = work.start.base, shop.capability.components, mirror.git
    with shop.journal.step("check-images"):
        shop.publisher.check()
        if work.delivered is not None:
            commit = work.delivered.commit
            names = components_touched(shop, task, git, work.start.refs, commit)
            components = tuple(component for component in components if component.name in names)
        return _untagged(shop, git, commit, components) or _without_dockerfile(git, commit, components)


def _untagged(shop: Workshop, git: Git, base: str, components: Sequence[Component]) -> Refused | None:
    commands = untagged(git, base, shop.capability, components)
    if not commands:
        return None
    tags = " ".join(command.split()[2] for command in commands)
    told = "; ".join([*(command.replace("<commit>", base[:12]) for command in commands), f"git push origin {tags}"])
    return Refused(f"no version tag is reachable from {base[:12]}; run: {told}")


def _without_dockerfile(git: Git, base: str, components: Sequence[Component]) -> Refused | None:
    missing = _missing_dockerfiles(git, base, components)
    if not missing:
        return None
    return Refused(
        f"these Dockerfiles are not in the repository at {base[:12]}: {missing}; commit one, or correct `dockerfile` "
        "in the sidecar (while images are on, a task cannot bring the first Dockerfile of a component that is there)"
    )


def check_dockerfiles(shop: Workshop, git: Git, commit: str, touched: Sequence[str]) -> Refused | None:
    """See, before it is pushed, that a commit leaves each touched component its Dockerfile."""
    components = [component for component in shop.capability.components if component.name in touched]
    missing = _missing_dockerfiles(git, commit, components) if shop.publisher else ""
    if not missing:
        return None
    return Refused(f"the change leaves no Dockerfile to build from, and nothing was pushed: {missing}", settled=True)


def set_up(run: Run) -> tuple[Checkout, Prepared] | Refused:
    """The private tree with its grounding; meanwhile the forge is asked whether it would take the branch."""
    shop, start = run.shop, run.plan.start
    with ThreadPoolExecutor(max_workers=1) as pool:
        allowed = pool.submit(_check_push, run)
        with shop.journal.step("checkout", base=start.base):
            checkout = check_out(run.folder, run.mirror, start, shop.capability)
        if stopped := _no_directories(shop, checkout):
            return stopped
        tell(shop.journal, checkout.base.configuration)
        with shop.journal.step("ground"):
            written = ground(checkout, shop.capability, shop.fetcher, shop.journal)
            prepared = prepare(checkout, written)
        with shop.journal.step("check-push", branch=start.branch):
            refused = allowed.result()
    return refused or (checkout, prepared)


def _no_directories(shop: Workshop, checkout: Checkout) -> Refused | None:
    """See, before a session is paid for, that no component is a link or a file: nothing below it could be delivered."""
    found = {path for root in shop.capability.writes_only_under if (path := blocked(checkout.tree, root))}
    if not found:
        return None
    paths = ", ".join(map(printable, sorted(found)))
    return Refused(
        f"the repository has a link or a file in place of a component's directory: {paths}; "
        "put a directory there or name another in the sidecar; no session was started"
    )


def with_pen(run: Run, checkout: Checkout) -> Run | Refused:
    """The same run with the gate of its tree, when that is to be its session's only pen."""
    shop = run.shop
    if shop.make_pen is None:
        return run
    try:
        with shop.journal.step("check-gate", root=shop.gate_root):
            return replace(run, pen=shop.make_pen(checkout.tree, checkout.folder, shop.journal))
    except ActorError as error:
        if error.code is not Code.BAD_REQUEST:
            raise
        return Refused(f"the gate is to be the session's only pen, and there is none: {error}; no session was started")


def _check_push(run: Run) -> Refused | None:
    shop, start, git = run.shop, run.plan.start, cleaned(run.mirror)
    if not shop.push_right.is_proven():
        check_push(git, shop.remote, start.branch, start.base)
        shop.push_right.prove()
    if run.plan.expected:
        return None
    in_the_way = branches_in_the_way(git, shop.remote, start.branch)
    if not in_the_way:
        return None
    return Refused(
        f"the forge cannot have the branch {start.branch} beside {', '.join(in_the_way)}: "
        "rename or delete what is in its way, or give the task another id"
    )


def _missing_dockerfiles(git: Git, commit: str, components: Sequence[Component]) -> str:
    """The components that a commit has without a Dockerfile; one that it has not at all needs none."""
    found = []
    for component in components:
        dockerfile = PurePosixPath(component.dockerfile, "Dockerfile")
        there = git.attempt("cat-file", "-e", f"{commit}:{component.path.rstrip('/')}").ok
        if there and not _is_text(git, f"{commit}:{dockerfile}"):
            found.append(f"{component.name}: {dockerfile}")
    return ", ".join(found)


def _is_text(git: Git, name: str) -> bool:
    """Whether there is a file with something in it, a link to one inside the commit among them."""
    words = git.text("cat-file", "--batch-check", "--follow-symlinks", stdin=f"{name}\n".encode()).split()
    return words[1:2] == ["blob"] and words[2:] != ["0"]
