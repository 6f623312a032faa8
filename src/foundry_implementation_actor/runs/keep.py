"""Keeps paid work that was not pushed: the change under the roots as a patch, beside a record of it.

Pure data, made by a git directory that did not exist while the session ran: `git apply` puts it on
its base. It is never pushed, and only the actor's user can read it. Keeping never changes what a run comes to, and
has an end of its own whatever the session has left.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from foundry_implementation_actor.domain.change import Change, printable
from foundry_implementation_actor.domain.error import ActorError
from foundry_implementation_actor.runs.judge import unfit
from foundry_implementation_actor.runs.start import Run
from foundry_implementation_actor.system.process import Stop
from foundry_implementation_actor.workspace.artifacts import Artifact, store
from foundry_implementation_actor.workspace.capture import Survey, inspected, stage, survey, under
from foundry_implementation_actor.workspace.checkout import run_folder
from foundry_implementation_actor.workspace.left import pipes
from foundry_implementation_actor.workspace.trusted import Prepared, Trusted, open_trusted

LIMIT_S = 30.0
"""How long keeping may take, in seconds."""

# An actor that is stopping has a few seconds until it is killed.
_LIMIT_STOPPING_S = 4.0
_MOST_FILES = 20_000
_SHOWN = 200

LeftOut = dict[str, str]
"""What is not in a patch: path to why."""


class Kept(NamedTuple):
    """A patch, how many files it changes, and what is not in it."""

    patch: bytes
    files: int
    left_out: LeftOut


def keep(run: Run, prepared: Prepared, cause: str, *, limit_s: float = LIMIT_S) -> str:
    """Keep what a session changed under the roots, after every process of it has ended.

    Args:
        run: the run that did not push it.
        prepared: the tree, and what it was before the session.
        cause: why it was not pushed, one word.
        limit_s: how long it may take, in seconds.

    Returns:
        `; the change is kept as <file> in RUN_ARTIFACTS`, to be put behind what the caller is told; empty when there
        was no change, or when it could not be kept, which is recorded as `not-kept`.
    """
    journal = run.shop.journal
    try:
        kept = _taken(run, prepared, min(limit_s, _LIMIT_STOPPING_S) if run.shop.stop.is_set() else limit_s)
        if kept is None:
            return ""
        path = _stored(run, prepared, kept, cause)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the run's answer stays what it is
        journal.event("not-kept", level="warn", cause=cause, error=str(error))
        return ""
    size, less = len(kept.patch), len(kept.left_out)
    journal.event("kept", cause=cause, path=str(path), files=kept.files, bytes=size, left_out=less)
    return f"; the change is kept as {path.name} in RUN_ARTIFACTS" + (f", without {less} of its files" if less else "")


def _taken(run: Run, prepared: Prepared, limit_s: float) -> Kept | None:
    """The change as a patch; None when there is none."""
    shop = run.shop
    why = unfit(prepared.tree)
    if why:
        raise ValueError(why)
    over, until = Stop(), time.monotonic() + limit_s
    # The actor's own stop does not count: what a stopped session has done is paid for too.
    git = replace(shop.git, stop=over)
    clock = threading.Timer(limit_s, over.set)
    clock.daemon = True
    clock.start()
    try:
        left_out = _without_pipes(prepared.tree, until)
        with run_folder(shop.state, shop.capability.clone_prefix(run.task.task_id), shop.journal) as folder:
            trusted = [open_trusted(git, prepared, folder / name) for name in ("first.git", "second.git")]
            return _patch(run, trusted, left_out)
    except ActorError as error:
        if over.is_set():
            raise ValueError(f"it took longer than {limit_s:g} s") from error
        raise
    finally:
        clock.cancel()


def _without_pipes(tree: Path, until: float) -> LeftOut:
    """Delete the pipes and devices in place of files of rules, on which git would wait for ever."""
    found = list(pipes(tree, until))
    for path in found:
        (tree / path).unlink()
    return dict.fromkeys(found, "is a pipe, a socket or a device")


def _patch(run: Run, trusted: Sequence[Trusted], left_out: LeftOut) -> Kept | None:
    """Stage what may be kept, leave out what holds a secret, and compare with the base.

    A git directory is good for one staging, so that there are two.
    """
    shop, roots = run.shop, run.shop.capability.writes_only_under
    found = survey(trusted[0], roots, shop.capability.scratch)
    left_out |= {path: why for path, why in found.unholdable if under(path, roots)}
    if not found.inside and not left_out:
        return None
    left_out |= {change.path: "is outside of the component roots" for change in found.outside}
    chosen = list(_chosen(trusted[0], found, shop.change_limits.patch_bytes, left_out))
    staged = _staged(trusted[0], chosen, left_out)
    secret = {change.path for change in inspected(trusted[0].git, staged, shop.finds_secret) if change.holds_secret}
    left_out |= dict.fromkeys(secret, "holds a secret of the actor")
    last = trusted[0]
    if secret:
        last = trusted[1]
        staged = _staged(last, [change for change in chosen if change.path not in secret], left_out)
    if not staged:
        if left_out:
            raise ValueError(f"nothing of the change can be kept: {_listed(left_out)}")
        return None
    patch = _compared(last, roots)
    if shop.finds_secret(patch):
        raise ValueError("the change holds a secret of the actor across its lines")
    return Kept(patch, len(staged), left_out)


def _chosen(trusted: Trusted, found: Survey, room: int, left_out: LeftOut) -> Iterator[Change]:
    """The smallest first, until there is no room: a change takes what was there before and what is there now."""
    holdable = [change for change in found.inside if change.path not in left_out]
    before = _sizes(trusted, {change.blob_before for change in holdable if change.blob_before})
    for number, (size, change) in enumerate(
        sorted(
            ((change.size + before.get(change.blob_before, 0), change) for change in holdable), key=lambda one: one[0]
        )
    ):
        room -= size
        if room < 0 or number >= _MOST_FILES:
            left_out[change.path] = f"is too large to be kept: {size:,} bytes"
        else:
            yield change


def _sizes(trusted: Trusted, blobs: set[str]) -> dict[str, int]:
    """The size of each blob of the base, in bytes."""
    wanted = "".join(f"{blob}\n" for blob in sorted(blobs)).encode()
    lines = trusted.git.text("cat-file", "--batch-check", stdin=wanted).splitlines() if blobs else []
    words = [line.split() for line in lines]
    return {name: int(size) for name, kind, size in (line for line in words if len(line) == 3) if kind == "blob"}


def _staged(trusted: Trusted, chosen: Sequence[Change], left_out: LeftOut) -> list[Change]:
    """What git took in of these changes, under the roots."""
    staged, refused = stage(trusted, chosen) if chosen else ((), [])
    left_out |= dict(refused)
    if chosen and not staged and refused:
        raise ValueError(f"nothing of the change can be kept: {_listed(left_out)}")
    return list(staged)


def _compared(trusted: Trusted, roots: Sequence[str]) -> bytes:
    """The whole difference under the roots between the base and what was staged."""
    words = ("diff-index", "--cached", "--patch", "--binary", "--full-index", "--no-renames", "--no-ext-diff")
    apart = {"GIT_INDEX_FILE": str(trusted.base_index)}
    return trusted.git.output(*words, "--no-textconv", trusted.base.commit, "--", *roots, extra=apart)


def _stored(run: Run, prepared: Prepared, kept: Kept, cause: str) -> Path:
    shop, task, hide = run.shop, run.task, run.shop.journal.redact
    shown = dict(list(kept.left_out.items())[:_SHOWN])
    record = {
        "task_id": task.task_id,
        "branch": task.branch,
        "base": prepared.base.commit,
        "cause": cause,
        "request": task.digest(shop.capability.capability),
        "repository": shop.remote.url,
        "files": kept.files,
        "left_out": {hide(printable(path)): hide(why) for path, why in shown.items()},
        "left_out_in_all": len(kept.left_out),
    }
    told = json.dumps(record, ensure_ascii=True, indent=2).encode() + b"\n"
    return store(shop.artifacts, task.task_id, datetime.now(UTC), Artifact(kept.patch, told))


def _listed(left_out: LeftOut) -> str:
    shown = [f"{printable(path)}: {why}" if path else why for path, why in list(left_out.items())[:_SHOWN]]
    return "; ".join(shown)
