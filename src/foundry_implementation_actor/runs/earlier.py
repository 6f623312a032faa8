"""What the repository holds of earlier requests: the answer to this very one, and what a task's commits touch."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from foundry_implementation_actor.delivery.commit import REQUEST_TRAILER, TASK_TRAILER, before_task, has, with_trailer
from foundry_implementation_actor.delivery.push import remote_commit
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.run import Accepted
from foundry_implementation_actor.domain.task import Task
from foundry_implementation_actor.runs.workshop import Workshop
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.capture import changed_paths
from foundry_implementation_actor.workspace.checkout import run_folder
from foundry_implementation_actor.workspace.mirror import Refs


class Delivered(NamedTuple):
    """The commit that is delivered for a request, and the one that was made for it: earlier, once remediated.

    `merged` says that the default branch has it.
    """

    commit: str
    asked_at: str
    merged: bool = False


def find_delivered(shop: Workshop, task: Task, git: Git, refs: Refs) -> Delivered | None:
    """Look on the task's branch, then on the default branch, for the commit of this very request.

    Whatever was added to it by the task since belongs to the answer. A squash merge counts when it kept the trailers.
    """
    request = task.digest(shop.capability.capability)
    if refs.task:
        on_branch = with_trailer(git, f"{refs.default}..{refs.task}", REQUEST_TRAILER, request)
        if on_branch:
            return Delivered(refs.task, on_branch[0])
    merged = with_trailer(git, refs.default, REQUEST_TRAILER, request)
    if not merged:
        return None
    of_task = with_trailer(git, refs.default, TASK_TRAILER, task.task_id) or merged
    return Delivered(of_task[0], merged[0], merged=True)


def left_behind(git: Git, refs: Refs, task_id: str) -> str:
    """The commit that a task's own commits go on from, when the default branch no longer has it; else empty."""
    before = before_task(git, refs.task, task_id, refs.default)
    return "" if before == refs.task or has(git, refs.default, before) else before


def components_touched(shop: Workshop, task: Task, git: Git, refs: Refs, commit: str) -> list[str]:
    """The names of the components that a task's commits, of which this is the last, touch."""
    before = before_task(git, commit, task.task_id, refs.default)
    return shop.capability.components_for(changed_paths(git, before, commit))


def still_holds(shop: Workshop, given: Accepted) -> bool:
    """Whether a branch that was delivered is still at its commit, and the registry still has its images.

    A registry that does not answer has none of them: the run that follows says so, or publishes them again.

    Raises:
        ActorError: UNFIT when the forge cannot be reached or the state directory cannot be written.
    """
    with run_folder(shop.state, shop.capability.clone_prefix("look"), shop.journal) as folder:
        # An empty directory, so that nothing that lies anywhere else configures this git.
        if remote_commit(replace(shop.git, git_dir=folder), shop.remote, given.branch) != given.commit:
            return False
    try:
        return shop.publisher is None or all(map(shop.publisher.registry.digest, given.images))
    except ActorError:
        return False
