"""The order of steps behind the `assess-task` door: the same tree and grounding, and nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.task import Task
from foundry_implementation_actor.runs.start import check_task_id, read_repository
from foundry_implementation_actor.runs.workshop import Asked, Workshop, run_session
from foundry_implementation_actor.session.answer import read_assessment
from foundry_implementation_actor.session.prompt import assess_prompt
from foundry_implementation_actor.workspace.checkout import Start, check_out, run_folder
from foundry_implementation_actor.workspace.configuration import tell
from foundry_implementation_actor.workspace.grounding import ground


def assess(shop: Workshop, task: Task, system: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Answer whether an acceptance surface can be delivered: the card's `task-assessed-result`.

    Args:
        shop: the actor's means.
        task: what is proposed, its fields already checked.
        system: the system prompt that the framework made from the card.
        schema: the JSON schema of the answer.

    Raises:
        ActorError: BAD_REQUEST for an id that no task can have; otherwise the host is not fit, the
            session was stopped, or its answer could not be read with certainty.
    """
    shop = replace(shop, journal=shop.journal.bound(task_id=task.task_id))
    refused = check_task_id(shop, task)
    if refused is not None:
        raise ActorError(Code.BAD_REQUEST, refused.because)
    with shop.journal.step("check"):
        shop.check_engine()
    with shop.journal.step("mirror", repository=shop.remote.url):
        mirror, refs = read_repository(shop, task)
    start = Start(refs, refs.default, task.branch)
    with run_folder(shop.state, shop.capability.clone_prefix(task.task_id), shop.journal) as folder:
        with shop.journal.step("checkout", base=start.base):
            checkout = check_out(folder, mirror, start, shop.capability)
        tell(shop.journal, checkout.base.configuration)
        with shop.journal.step("ground"):
            ground(checkout, shop.capability, shop.fetcher, shop.journal)
        with shop.journal.step("session", engine=shop.engine.name):
            asked = Asked(system, assess_prompt(task, schema), shop.budgets[task.door])
            end = run_session(shop, task, checkout, asked)
    with shop.journal.step("read-answer"):
        ids = [str(item["id"]) for item in task.acceptance_surface]
        answer: dict[str, Any] = shop.journal.hidden(read_assessment(shop.journal.redact(end.text), schema, ids))
        return answer  # hidden twice, because JSON can spell a secret in escapes
