"""The order of steps behind the `implement-task` door."""

from __future__ import annotations

from dataclasses import replace

from foundry_implementation_actor.domain.run import Refused, Reply, SessionEnd
from foundry_implementation_actor.domain.task import Task
from foundry_implementation_actor.runs.deliver import commit_change, publish, push_branch
from foundry_implementation_actor.runs.judge import judge
from foundry_implementation_actor.runs.start import (
    Run,
    check_dockerfiles,
    check_images,
    check_task_id,
    plan,
    read_repository,
    set_up,
)
from foundry_implementation_actor.runs.workshop import Workshop, run_session
from foundry_implementation_actor.session.prompt import implement_prompt
from foundry_implementation_actor.workspace.capture import changed_paths
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
    if run.plan.continues:
        journal.event("continues", branch=task.branch, commit=prepared.base.commit)
    with journal.step("session", branch=task.branch, engine=shop.engine.name):
        prompt = implement_prompt(task, shop.capability, continues=run.plan.continues)
        end = run_session(shop, task, checkout, system=system, prompt=prompt)
    # Whatever lay on disk while the session ran may be its own work: from here on, another directory.
    with run_folder(shop.state, shop.capability.clone_prefix(task.task_id), shop.journal) as folder:
        return _deliver(replace(run, folder=folder), prepared, end)


def _deliver(run: Run, prepared: Prepared, end: SessionEnd) -> Reply:
    shop, task, journal = run.shop, run.task, run.shop.journal
    with journal.step("judge"):
        judged = judge(shop, prepared, run.folder)
    if isinstance(judged, Refused):
        return judged
    git = judged.trusted.git
    with journal.step("commit"):
        commit = commit_change(run, judged.trusted, end)
    touched = shop.capability.components_for(change.path for change in judged.changes)
    journal.event("components-touched", components=touched)
    refused = check_dockerfiles(shop, git, commit, touched)
    if refused is not None:
        return refused
    with journal.step("push", branch=task.branch):
        refused = push_branch(run, git, commit)
    if refused is not None:
        return refused
    return publish(run, git, commit, touched)


def _deliver_again(run: Run) -> Reply:
    """Answer a request whose commit is already on the branch: no second session, only the images."""
    commit = run.plan.delivered
    run.shop.journal.event("already-delivered", branch=run.task.branch, commit=commit)
    git = bare_view(run.folder, run.mirror, run.plan.start.refs, commit)
    touched = run.shop.capability.components_for(changed_paths(git, commit))
    return publish(run, git, commit, touched)
