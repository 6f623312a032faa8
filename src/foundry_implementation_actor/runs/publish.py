"""The images of a pushed branch, and an answer that is honest about how far it came."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from foundry_implementation_actor.delivery.commit import last_change
from foundry_implementation_actor.delivery.export import export
from foundry_implementation_actor.delivery.images.port import ImageOrder, NotBuiltError
from foundry_implementation_actor.delivery.images.publish import Publisher
from foundry_implementation_actor.delivery.version import image_version
from foundry_implementation_actor.domain.capability import Component
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.domain.event import clip
from foundry_implementation_actor.domain.run import Accepted, Refused, Reply
from foundry_implementation_actor.runs.earlier import components_touched
from foundry_implementation_actor.runs.start import Run
from foundry_implementation_actor.system.git import Git

_LONGEST_CAUSE = 8_000
_AGAIN = "ask the same again to go on at the images"
_HOPELESS = (
    "the same asked again builds the same commit: where that is at fault, say so in remediation_context, "
    "and where it is not (a base that could not be fetched), ask again"
)


def publish(run: Run, git: Git, commit: str) -> Reply:
    """One image for each component that the task's commits touch, all at once; the answer names what was published.

    A task that was remediated has several commits, and its branch is deployed as a whole. The branch is pushed, so
    whatever goes wrong from here on is an answer that says so.
    """
    shop, task = run.shop, run.task
    published: tuple[str, ...] = ()
    lost: list[Exception] = []
    try:
        touched = components_touched(shop, task, git, run.plan.start.refs, commit)
        if shop.publisher is None:
            shop.journal.event("images-off", components=touched)
        else:
            images = _Images(run, shop.publisher, git, export(git, commit, run.folder / "export"), commit)
            ends = images.publish(images.still_there(touched))
            published = tuple(end for end in ends if isinstance(end, str))
            lost = [end for end in ends if isinstance(end, Exception)]
    except Exception as error:  # noqa: BLE001 - the branch is pushed, and whatever goes wrong now has to say so
        lost = [error]
    if not lost:
        return Accepted(task.branch, commit, published)
    causes = clip(shop.journal.redact("; ".join(map(str, lost))), _LONGEST_CAUSE)
    said = (
        f"the branch {task.branch} is pushed at {commit[:12]}, but not every image is published. "
        f"Published: {', '.join(published) or 'none'}. Not published: {causes}"
    )
    if shop.stop.is_set():
        raise ActorError(Code.INTERRUPTED, f"the actor is stopping; {said}", hint=_AGAIN)
    hopeless = all(isinstance(error, NotBuiltError) for error in lost)
    return Refused(f"{said}. {(_HOPELESS if hopeless else _AGAIN).capitalize()}")


@dataclass(frozen=True)
class _Images:
    """The images of one commit, whose files are in `source`."""

    run: Run
    publisher: Publisher
    git: Git
    source: Path
    commit: str

    def still_there(self, touched: list[str]) -> list[Component]:
        """The touched components that the commit has."""
        components = [one for one in self.run.shop.capability.components if one.name in touched]
        if not components:
            raise ActorError(Code.BUG, "no component was found that the task's commits touch")
        gone = [one.name for one in components if not (self.source / one.path).is_dir()]
        if gone:
            self.run.shop.journal.event("components-gone", components=gone)
        return [one for one in components if one.name not in gone]

    def publish(self, components: list[Component]) -> list[str | Exception]:
        """The ref of each image, or why it was not published."""
        with ThreadPoolExecutor(max_workers=max(1, len(components))) as pool:
            return list(pool.map(self._publish, components))

    def _publish(self, component: Component) -> str | Exception:
        shop, desk = self.run.shop, self.run.folder / f"image-{component.name}"
        ref = ""
        try:
            desk.mkdir()
            order = self._order(component)
            ref = order.ref
            with shop.journal.step("publish-image", component=component.name, image=order.ref):
                done = self.publisher.publish(order, desk, shop.stop)
        except ActorError as error:
            return error if error.where == ref else _about(ref or component.name, error)
        except Exception as error:  # noqa: BLE001 - as above, and the other images go on
            return error
        shop.journal.event("image-published", image=done.ref, digest=done.digest, was_there=done.was_there)
        return done.ref

    def _order(self, component: Component) -> ImageOrder:
        """An order whose labels are named by the OCI image specification.

        The version of a component names the last commit that changed it, so that this is its revision too.
        """
        shop, capability = self.run.shop, self.run.shop.capability
        last = last_change(self.git, self.commit, component.path)
        version = image_version(self.source, capability, component, self.run.task.task_id, shop.path)
        labels = {
            "created": datetime.fromtimestamp(last.made, UTC).isoformat().replace("+00:00", "Z"),
            "revision": last.commit,
            "source": shop.remote.url,
            "title": capability.image_name(component.name),
            "version": version,
        }
        return ImageOrder(
            self.source, component.path, component.dockerfile,
            ref=capability.image_ref(self.publisher.registry.address, component.name, version), created=last.made,
            labels={f"org.opencontainers.image.{name}": text for name, text in labels.items()},
        )  # fmt: skip


def _about(ref: str, error: ActorError) -> ActorError:
    """The same error, saying first which image it is about."""
    return ActorError(error.code, error.seen, hint=error.hint, where=ref)
