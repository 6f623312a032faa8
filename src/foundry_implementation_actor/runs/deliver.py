"""Commit and push: the task's branch on the forge, and what its commit says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from foundry_implementation_actor.delivery.commit import REQUEST_TRAILER, TASK_TRAILER, make_commit, message
from foundry_implementation_actor.delivery.push import Pushed, push
from foundry_implementation_actor.domain.gated import GateRecord
from foundry_implementation_actor.domain.run import Refused
from foundry_implementation_actor.runs.remediate import Past, Proved
from foundry_implementation_actor.runs.start import Run
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.trusted import Trusted

_MOST_NAMED = 20


def commit_change(run: Run, trusted: Trusted, proved: Proved, past: Past) -> str:
    """The commit of a proved tree on the recorded base, saying what its sessions came to; its object id."""
    shop, task, base, end = run.shop, run.task, trusted.base.commit, past.end
    trailers = [
        (TASK_TRAILER, task.task_id),
        (REQUEST_TRAILER, task.digest(shop.capability.capability)),
        ("Base", base),
        ("Actor", f"foundry-implementation-actor {shop.version}"),
        ("Session", f"{shop.engine.name}, {end.turns} turns"),
        ("Judged-By", "boundary" if run.pen is None else "boundary, gate"),
    ]
    if run.pen is not None:
        trailers += _gated(run.pen.record())
    trailers += [("Verified-By", f"{component.name}: {' '.join(component.verify)}") for component in proved.verified]
    trailers += [
        ("Remediated", f"{component.name}, {past.tried(component)} of {component.remediate}")
        for component in shop.capability.components
        if past.tried(component)
    ]
    trailers.append(("Cost", f"USD {end.cost_usd:.4f}{' (estimate)' if end.cost_estimated else ''}"))
    # Hidden before anything is cut to length: half of a secret is not recognised.
    hide = shop.journal.redact
    # These the actor itself reads back. A task's id may look like a token, and names the branch anyway.
    own = {TASK_TRAILER, REQUEST_TRAILER, "Base"}
    shown = [(name, value if name in own else hide(value)) for name, value in trailers]
    text = message(replace(task, title=hide(task.title)), hide(end.text), shown)
    return make_commit(trusted.git, proved.tree, base, text, shop.capability)


def _gated(record: GateRecord) -> Iterator[tuple[str, str]]:
    """What the session's only pen did, and what of its work nobody judged."""
    yield "Gate", record.said
    bodies = sorted(record.bodies.values(), key=lambda body: body.path)
    left = [f"{body.name} ({', '.join(body.unjudged)})" for body in bodies if body.unjudged]
    left += [f"{body.name} (a scaffold only)" for body in bodies if body.scaffold and body.differs]
    if left:
        more = f", and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
        yield "Unjudged", ", ".join(left[:_MOST_NAMED]) + more


def push_branch(run: Run, git: Git, commit: str) -> Refused | None:
    """Push the commit; a refusal says why the forge does not have it."""
    shop, branch = run.shop, run.task.branch
    end = push(git, shop.remote, branch, commit, run.plan.expected)
    if end.pushed is Pushed.MOVED:
        return Refused(
            f"the branch {branch} was moved by somebody else while this task was worked on; nothing was overwritten "
            "and nothing was pushed: look at the branch, then ask again"
        )
    if end.pushed is Pushed.OVERTAKEN:
        return Refused(
            f"the branch {branch} was pushed at {commit[:12]}, and somebody else has moved or deleted it since: "
            "look at the branch, then ask again"
        )
    if end.pushed is Pushed.DECLINED:
        return Refused(f"the forge declined the branch {branch} ({shop.journal.redact(end.said)}); nothing was pushed")
    shop.journal.event("branch-pushed", branch=branch, commit=commit)
    return None
