"""Commit, push, publish: in this order, and honest about how far it came."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from foundry_implementation_actor.delivery.commit import Message, make_commit, message
from foundry_implementation_actor.delivery.export import export
from foundry_implementation_actor.delivery.images.port import Builder, ImageOrder
from foundry_implementation_actor.delivery.push import Pushed, push
from foundry_implementation_actor.delivery.version import image_version
from foundry_implementation_actor.domain.capability import Component
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.domain.run import Accepted, Refused, Reply, SessionEnd
from foundry_implementation_actor.runs.start import REQUEST_TRAILER, Run
from foundry_implementation_actor.system.git import Git
from foundry_implementation_actor.workspace.capture import staged_tree
from foundry_implementation_actor.workspace.checkout import Checkout


def commit_change(run: Run, checkout: Checkout, base: str, end: SessionEnd) -> str:
    """The commit of a judged change on the recorded base; its object id."""
    shop, task = run.shop, run.task
    trailers = [
        ("Task", task.task_id),
        (REQUEST_TRAILER, task.digest(shop.capability.capability)),
        ("Base", base),
        ("Actor", f"foundry-implementation-actor {shop.version}"),
        ("Session", f"{shop.engine.name}, {end.turns} turns"),
        ("Judged-By", "boundary"),
    ]
    unjudged = [component.name for component in shop.capability.components if component.verify]
    if unjudged:
        trailers.append(("Unjudged", f"verify of {', '.join(unjudged)}"))
    text = message(task, end.text, trailers)
    hide = shop.journal.redact
    redacted = Message(hide(text.subject), hide(text.summary), [(name, hide(value)) for name, value in trailers])
    return make_commit(checkout.git, staged_tree(checkout), base, redacted, shop.capability)


def push_branch(run: Run, git: Git, commit: str) -> Refused | None:
    """Push the commit; a refusal says why the forge does not have it."""
    shop, branch = run.shop, run.task.branch
    end = push(git, shop.remote, branch, commit, run.plan.expected)
    if end.pushed is Pushed.MOVED:
        return Refused(
            f"the branch {branch} was moved by somebody else while this task was worked on; nothing was overwritten "
            "and nothing was pushed: look at the branch, then ask again"
        )
    if end.pushed is Pushed.DECLINED:
        return Refused(f"the forge declined the branch {branch} ({shop.journal.redact(end.said)}); nothing was pushed")
    shop.journal.event("branch-pushed", branch=branch, commit=commit)
    return None


def publish(run: Run, git: Git, commit: str, touched: Sequence[str]) -> Reply:
    """One image for each touched component, all at once; the answer names what was and was not published."""
    shop, task, builder = run.shop, run.task, run.shop.builder
    if builder is None:
        shop.journal.event("images-off", components=list(touched))
        return Accepted(task.branch, commit)
    source = export(git, commit, run.folder / "export")
    components = [component for component in shop.capability.components if component.name in touched]
    gone = [component.name for component in components if not (source / component.path).is_dir()]
    if gone:
        shop.journal.event("components-gone", components=gone)
        components = [component for component in components if component.name not in gone]
    with ThreadPoolExecutor(max_workers=max(1, len(components))) as pool:
        jobs = [pool.submit(_publish_one, run, builder, source, component) for component in components]
        ends = [job.result() for job in jobs]
    published = tuple(end for end in ends if isinstance(end, str))
    lost = [str(end) for end in ends if isinstance(end, ActorError)]
    if not lost:
        return Accepted(task.branch, commit, published)
    return Refused(
        f"the branch {task.branch} is pushed at {commit[:12]}, but not every image is published. "
        f"Published: {', '.join(published) or 'none'}. Not published: {shop.journal.redact('; '.join(lost))}. "
        "Ask the same again to go on at the images"
    )


def _publish_one(run: Run, builder: Builder, source: Path, component: Component) -> str | ActorError:
    shop = run.shop
    try:
        version = image_version(source, shop.capability, component, run.task.task_id, shop.path)
        ref = shop.capability.image_ref(builder.registry, component.name, version)
        with shop.journal.step("publish-image", component=component.name, image=ref):
            builder.publish(ImageOrder(source, component.path, component.dockerfile, ref), shop.stop)
    except ActorError as error:
        return error
    return ref
