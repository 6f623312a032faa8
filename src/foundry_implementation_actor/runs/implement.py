"""The order of steps behind the `implement-task` door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.run import Cause, Refused, Reply, SessionEnd
from foundry_implementation_actor.domain.task import Task
from foundry_implementation_actor.runs.deliver import commit_change, publish, push_branch
from foundry_implementation_actor.runs.judge import Judged, judge, judge_pen
from foundry_implementation_actor.runs.keep import keep
from foundry_implementation_actor.runs.start import (
    Run,
    check_dockerfiles,
    check_images,
    check_task_id,
    plan,
    read_repository,
    set_up,
    with_pen,
)
from foundry_implementation_actor.runs.verify import verify
from foundry_implementation_actor.runs.workshop import SessionStoppedError, Workshop, run_session
from foundry_implementation_actor.session.prompt import implement_prompt
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.capture import changed_paths, staged_tree
from foundry_implementation_actor.workspace.checkout import bare_view, run_folder
from foundry_implementation_actor.workspace.trusted import Prepared


def implement(shop: Workshop, task: Task, system: str) -> Reply:
    """Turn one task into one pushed branch and its images, or say why not.

    Args:
        shop: the actor's means.
        task: what is asked, its fields already checked.
        system: the system prompt that the framework made from the card.

    Raises:
        ActorError: the host is not fit, or the session or the actor was stopped; nothing is pushed.
    """
    shop = replace(shop, journal=shop.journal.bound(task_id=task.task_id))
    reply = check_task_id(shop, task) or _implement(shop, task, system)
    if isinstance(reply, Refused):
        shop.journal.event("implement-task-refused", because=reply.because)
    return reply


def _implement(shop: Workshop, task: Task, system: str) -> Reply:
    with shop.journal.step("check"):
        shop.check_engine()
    with shop.journal.step("mirror", repository=shop.remote.url):
        mirror, refs = read_repository(shop, task)
    work = plan(shop, task, mirror, refs)
    if isinstance(work, Refused):
        return work
    with shop.journal.step("check-images", on=shop.builder is not None):
        refused = check_images(shop, mirror, work.start.base)
    if refused is not None:
        return refused
    with run_folder(shop.state, shop.capability.clone_prefix(task.task_id), shop.journal) as folder:
        run = Run(shop, task, mirror, work, folder)
        return _deliver_again(run) if work.delivered else _work(run, system)


def _work(run: Run, system: str) -> Reply:
    shop, task, journal = run.shop, run.task, run.shop.journal
    ready = set_up(run)
    if isinstance(ready, Refused):
        return ready
    checkout, prepared = ready
    penned = with_pen(run, checkout)
    if isinstance(penned, Refused):
        return penned
    run = penned
    if run.plan.continues:
        journal.event("continues", branch=task.branch, commit=prepared.base.commit)
    gate = shop.gate_root if run.pen else None
    prompt = implement_prompt(task, shop.capability, continues=run.plan.continues, gate=gate)
    try:
        with journal.step("session", branch=task.branch, engine=shop.engine.name):
            end = run_session(shop, task, checkout, system=system, prompt=prompt, pen=run.pen)
    except SessionStoppedError as stopped:
        # While a process of the session may live, nothing that it could meddle with is started.
        escaped = stopped.end.cause is Cause.ESCAPED
        kept = "" if escaped else keep(run, prepared, stopped.end.cause.value)
        raise _saying(stopped, kept) from stopped
    # Whatever lay on disk while the session ran may be its own work: from here on, another directory.
    with run_folder(shop.state, shop.capability.clone_prefix(task.task_id), shop.journal) as folder:
        return _deliver(replace(run, folder=folder), prepared, end)


def _deliver(run: Run, prepared: Prepared, end: SessionEnd) -> Reply:
    try:
        landed = _land(run, prepared, end)
    except ActorError as error:
        raise _saying(error, keep(run, prepared, error.code.value)) from error
    if isinstance(landed, Refused):
        return replace(landed, because=f"{landed.because}{keep(run, prepared, 'refused')}")
    return publish(run, landed.git, landed.commit, landed.touched)


def _saying(error: ActorError, kept: str) -> ActorError:
    """The same error, saying also what was kept."""
    return ActorError(error.code, f"{error.message}{kept}", hint=error.hint, where=error.where)


class _Landed(NamedTuple):
    """A commit that the forge has on the task's branch, and the components that it touched."""

    git: Git
    commit: str
    touched: Sequence[str]


def _land(run: Run, prepared: Prepared, end: SessionEnd) -> _Landed | Refused:
    shop, task, journal = run.shop, run.task, run.shop.journal
    with journal.step("judge"):
        judged = _judged(run, prepared)
    if isinstance(judged, Refused):
        return judged
    git = judged.trusted.git
    touched = shop.capability.components_for(change.path for change in judged.changes)
    journal.event("components-touched", components=touched)
    # What is committed is named by its content before any of the repository's code runs.
    tree = staged_tree(judged.trusted)
    verified = check_dockerfiles(shop, git, tree, touched) or verify(run, git, tree, touched)
    if isinstance(verified, Refused):
        return verified
    with journal.step("commit"):
        commit = commit_change(run, judged.trusted, tree, end, verified)
    with journal.step("push", branch=task.branch):
        refused = push_branch(run, git, commit)
    return refused or _Landed(git, commit, touched)


def _judged(run: Run, prepared: Prepared) -> Judged | Refused:
    judged = judge(run.shop, prepared, run.folder)
    if run.pen is None:
        return judged
    record = run.pen.record()
    if isinstance(judged, Refused):
        return replace(judged, because=f"{judged.because} (through the gate: {record.said})")
    return judge_pen(run.shop, judged, record)


def _deliver_again(run: Run) -> Reply:
    """Answer a request whose commit is already on the branch: no second session, only the images."""
    commit = run.plan.delivered
    run.shop.journal.event("already-delivered", branch=run.task.branch, commit=commit)
    git = bare_view(run.folder, run.mirror, run.plan.start.refs, commit)
    touched = run.shop.capability.components_for(changed_paths(git, commit))
    return publish(run, git, commit, touched)
