"""Commit, push, publish: in this order, and honest about how far it came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from foundry_implementation_actor.delivery.commit import make_commit, message
from foundry_implementation_actor.delivery.export import export
from foundry_implementation_actor.delivery.images.port import Builder, ImageOrder
from foundry_implementation_actor.delivery.push import Pushed, push
from foundry_implementation_actor.delivery.version import image_version
from foundry_implementation_actor.domain.capability import Component
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.domain.gated import GateRecord
from foundry_implementation_actor.domain.run import Accepted, Refused, Reply, SessionEnd
from foundry_implementation_actor.runs.start import REQUEST_TRAILER, Run
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.trusted import Trusted

_LONGEST_CAUSE = 8_000
_MOST_NAMED = 20


def commit_change(run: Run, trusted: Trusted, tree: str, end: SessionEnd, verified: Sequence[Component]) -> str:
    """The commit of a judged tree on the recorded base; its object id. `verified` had a green `verify`."""
    shop, task, base = run.shop, run.task, trusted.base.commit
    trailers = [
        ("Task", task.task_id),
        (REQUEST_TRAILER, task.digest(shop.capability.capability)),
        ("Base", base),
        ("Actor", f"foundry-implementation-actor {shop.version}"),
        ("Session", f"{shop.engine.name}, {end.turns} turns"),
        ("Judged-By", "boundary" if run.pen is None else "boundary, gate"),
    ]
    if run.pen is not None:
        trailers += _gated(run.pen.record())
    trailers += [("Verified-By", f"{component.name}: {' '.join(component.verify)}") for component in verified]
    trailers.append(("Cost", f"USD {end.cost_usd:.4f}{' (estimate)' if end.cost_estimated else ''}"))
    # Hidden before anything is cut to length: half of a secret is not recognised.
    hide = shop.journal.redact
    shown = [(name, hide(value)) for name, value in trailers]
    text = message(replace(task, title=hide(task.title)), hide(end.text), shown)
    return make_commit(trusted.git, tree, base, text, shop.capability)


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


def publish(run: Run, git: Git, commit: str, touched: Sequence[str]) -> Reply:
    """One image for each touched component, all at once; the answer names what was and was not published.

    The branch is pushed, so whatever goes wrong from here on is an answer that says so.
    """
    shop, builder = run.shop, run.shop.builder
    if builder is None:
        shop.journal.event("images-off", components=list(touched))
        return Accepted(run.task.branch, commit)
    try:
        published, lost = _publish(run, builder, git, commit, touched)
    except (ActorError, OSError) as error:
        published, lost = (), [str(error)]
    if not lost:
        return Accepted(run.task.branch, commit, published)
    cause = clip(shop.journal.redact("; ".join(lost)), _LONGEST_CAUSE)
    return Refused(
        f"the branch {run.task.branch} is pushed at {commit[:12]}, but not every image is published. "
        f"Published: {', '.join(published) or 'none'}. Not published: {cause}. "
        "Ask the same again to go on at the images"
    )


def _publish(
    run: Run, builder: Builder, git: Git, commit: str, touched: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """The images that were published, and why others were not."""
    shop = run.shop
    source = export(git, commit, run.folder / "export")
    components = [component for component in shop.capability.components if component.name in touched]
    gone = [component.name for component in components if not (source / component.path).is_dir()]
    if gone:
        shop.journal.event("components-gone", components=gone)
        components = [component for component in components if component.name not in gone]
    with ThreadPoolExecutor(max_workers=max(1, len(components))) as pool:
        jobs = [pool.submit(_publish_one, run, builder, source, component) for component in components]
        ends = [job.result() for job in jobs]
    return tuple(end for end in ends if isinstance(end, str)), [str(end) for end in ends if isinstance(end, Exception)]


def _publish_one(run: Run, builder: Builder, source: Path, component: Component) -> str | Exception:
    shop = run.shop
    try:
        version = image_version(source, shop.capability, component, run.task.task_id, shop.path)
        ref = shop.capability.image_ref(builder.registry, component.name, version)
        with shop.journal.step("publish-image", component=component.name, image=ref):
            builder.publish(ImageOrder(source, component.path, component.dockerfile, ref), shop.stop)
    except (ActorError, OSError) as error:
        return error
    return ref
