"""The order of steps behind the `implement-task` door."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import NamedTuple

from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.run import Cause, Refused, Reply
from foundry_implementation_actor.domain.task import Task
from foundry_implementation_actor.runs.deliver import commit_change, push_branch
from foundry_implementation_actor.runs.earlier import Delivered
from foundry_implementation_actor.runs.keep import keep
from foundry_implementation_actor.runs.publish import publish
from foundry_implementation_actor.runs.remediate import Work, fresh_folder, until_green
from foundry_implementation_actor.runs.start import (
    Run,
    check_images,
    check_task_id,
    plan,
    read_repository,
    set_up,
    with_pen,
)
from foundry_implementation_actor.runs.workshop import SessionStoppedError, Workshop
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.capture import take_in
from foundry_implementation_actor.workspace.checkout import bare_view, run_folder
from foundry_implementation_actor.workspace.trusted import open_trusted


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
    refused = check_images(shop, task, mirror, work)
    if refused is not None:
        return refused
    with run_folder(shop.state, shop.capability.clone_prefix(task.task_id), shop.journal) as folder:
        run = Run(shop, task, mirror, work, folder)
        return _work(run, system) if work.delivered is None else _deliver_again(run, work.delivered)


def _work(run: Run, system: str) -> Reply:
    ready = set_up(run)
    if isinstance(ready, Refused):
        return ready
    checkout, prepared = ready
    run_or_refused = with_pen(run, checkout)
    if isinstance(run_or_refused, Refused):
        return run_or_refused
    if run.plan.expected:
        name = "continues" if run.plan.continues else "replaces"
        run.shop.journal.event(name, branch=run.task.branch, commit=run.plan.expected)
    return _delivered(Work(run_or_refused, checkout, prepared, system))


def _delivered(work: Work) -> Reply:
    with contextlib.ExitStack() as folders:
        try:
            landed = _land(work, folders)
        except ActorError as error:
            raise _saying(error, _kept(work, error)) from error
        if isinstance(landed, Refused):
            return replace(landed, because=f"{landed.because}{keep(work.run, work.prepared, 'refused')}")
        return publish(landed.run, landed.git, landed.commit)


def _kept(work: Work, error: ActorError) -> str:
    """Keep what the stopped run has; while a process of its session may live, nothing is started that it could meet."""
    cause = error.end.cause if isinstance(error, SessionStoppedError) else error.code
    return "" if cause is Cause.ESCAPED else keep(work.run, work.prepared, cause.value)


def _saying(error: ActorError, kept: str) -> ActorError:
    """The same error, saying also what was kept."""
    return ActorError(error.code, f"{error.message}{kept}", hint=error.hint, where=error.where)


class _Landed(NamedTuple):
    """A commit that the forge has on the task's branch, and the git directory that knows it."""

    run: Run
    git: Git
    commit: str


def _land(work: Work, folders: contextlib.ExitStack) -> _Landed | Refused:
    green = until_green(work)
    if isinstance(green, Refused):
        return green
    proved, past = green
    # With SANDBOX=none what lay on disk while `verify` ran may be the repository's work: another directory again.
    run = replace(work.run, folder=folders.enter_context(fresh_folder(work.run)))
    journal = run.shop.journal
    with journal.step("commit"):
        trusted = open_trusted(run.shop.git, work.prepared, run.folder / "trusted.git")
        take_in(trusted, proved.pack)
        commit = commit_change(run, trusted, proved, past)
    with journal.step("push", branch=run.task.branch):
        refused = push_branch(run, trusted.git, commit)
    return refused or _Landed(run, trusted.git, commit)


def _deliver_again(run: Run, delivered: Delivered) -> Reply:
    """Answer a request whose commit the repository already has: no second session, only the images."""
    commit, asked_at, merged = delivered
    run.shop.journal.event("already-delivered", branch=run.task.branch, commit=commit, asked_at=asked_at, merged=merged)
    git = bare_view(run.folder, run.mirror, run.plan.start.refs, commit)
    return publish(run, git, commit)
