"""What a session knows before its first turn: fetched knowledge and the `CLAUDE.md` that names it.

The `claude` CLI reads `CLAUDE.md` in the working directory, and the files that it imports with
`@path`, before the first turn; so the envelopes are written into the tree. They belong to the run,
not to the change: the boundary is judged against a tree that already holds them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from foundry_implementation_actor.domain.capability import Capability, Grounding
from foundry_implementation_actor.domain.command import Command, Completed, Ended
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.files import LinkInTheWayError, read_below, remove_tree, writable, write_below
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.process import Stop, run_contained
from foundry_implementation_actor.system.secrets import Redact
from foundry_implementation_actor.workspace.checkout import Checkout

CLAUDE_MD = "CLAUDE.md"
FETCH_LIMIT = 8 * 1024 * 1024
_CLAUDE_MD_LIMIT = 1024 * 1024


@dataclass(frozen=True)
class Fetcher:
    """How grounding tools run: their whole environment and the time that each of them has."""

    environment: Mapping[str, str]
    timeout_s: float
    stop: Stop | None = None


def ground(checkout: Checkout, capability: Capability, fetcher: Fetcher, journal: Journal) -> dict[str, bytes]:
    """Run every fetch at once, write the envelopes and `CLAUDE.md`.

    Returns:
        The SHA-256 of each file that was written, by its repository path.

    Raises:
        ActorError: UNFIT when a tool is missing, fails, hangs or prints too much; BAD_REQUEST when
            the repository has a link where an envelope belongs.
    """
    entries = capability.ground_in
    envelopes = _fetched(checkout.folder / "fetch", capability, fetcher, journal) if entries else []
    texts = {e.into: _envelope(e, capability, content) for e, content in zip(entries, envelopes, strict=True)}
    own = read_below(checkout.tree, CLAUDE_MD, _CLAUDE_MD_LIMIT)
    if own is None and (checkout.tree / CLAUDE_MD).is_symlink():
        journal.event("claude-md-link-not-followed", level="warn", path=CLAUDE_MD)
    texts[CLAUDE_MD] = _claude_md(capability, own or b"")
    return {relative: _write(checkout.tree, relative, text) for relative, text in texts.items()}


def _fetched(folder: Path, capability: Capability, fetcher: Fetcher, journal: Journal) -> list[str]:
    """The output of every fetch, run at once in a directory that no session ever sees."""
    with writable(folder):
        folder.mkdir()
    try:
        with ThreadPoolExecutor(max_workers=len(capability.ground_in)) as pool:
            jobs = [pool.submit(_fetch, entry, capability, fetcher, folder, journal) for entry in capability.ground_in]
            return [job.result() for job in jobs]
    finally:
        with writable(folder):
            remove_tree(folder)


def _fetch(entry: Grounding, capability: Capability, fetcher: Fetcher, folder: Path, journal: Journal) -> str:
    argv = tuple(capability.expand(entry.fetch))
    where = f"ground_in {entry.name!r}"
    with journal.step("fetch", source=entry.name):
        command = Command(
            argv, cwd=folder, env=fetcher.environment,
            timeout_s=fetcher.timeout_s, output_limit=FETCH_LIMIT,
        )  # fmt: skip
        try:
            done = run_contained(command, fetcher.stop)
        except ActorError as error:
            hint = f"install {argv[0]!r} where the actor runs, or correct the fetch in the sidecar"
            raise ActorError(Code.UNFIT, error.message, hint=hint, where=where) from error
        if not done.ok:
            raise _failure(done, where, fetcher.timeout_s, journal.redact)
    return _decoded(done.stdout, entry, journal)


def _failure(done: Completed, where: str, timeout_s: float, hide: Redact) -> ActorError:
    program = done.argv[0]
    if done.ended is Ended.STOPPED:
        return ActorError(Code.INTERRUPTED, "the fetch was stopped", where=where)
    if done.ended is Ended.TIMEOUT:
        return ActorError(
            Code.UNFIT, f"{program} did not end within {timeout_s:g} s", hint="raise FETCH_TIMEOUT_S", where=where
        )
    if done.ended is Ended.OUTPUT:
        return ActorError(
            Code.UNFIT, f"{program} printed more than {FETCH_LIMIT:,} bytes",
            hint="fetch less, or split it into several entries", where=where,
        )  # fmt: skip
    said = hide(done.errors)[-2000:] or "it said nothing"
    return ActorError(Code.UNFIT, f"{program} ended with exit code {done.code}: {said}", where=where)


def _decoded(raw: bytes, entry: Grounding, journal: Journal) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        journal.event("fetch-not-utf-8", level="warn", source=entry.name, read_as="latin-1")
        return raw.decode("latin-1")


def _write(tree: Path, relative: str, text: str) -> bytes:
    content = text.encode("utf-8", "replace")
    try:
        write_below(tree, relative, content)
    except LinkInTheWayError as error:
        raise ActorError(
            Code.BAD_REQUEST, f"the repository has a link or a file at {error.filename!r}, where a directory is needed",
            hint="choose another `into:` or remove the link", where=relative,
        ) from error  # fmt: skip
    except OSError as error:
        raise ActorError(Code.UNFIT, f"cannot be written: {error.strerror}", where=relative) from error
    return hashlib.sha256(content).digest()


def _envelope(entry: Grounding, capability: Capability, content: str) -> str:
    """A fetched text under a title that says which question it settles, fenced so that it stays data."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", content)), default=0))
    command = " ".join(capability.expand(entry.fetch))
    return (
        f"# {entry.name}\n\n{entry.answers}\n\n"
        f"Fetched for this session with `{command}`.\n\n{fence}\n{content.rstrip()}\n{fence}\n"
    )


def _claude_md(capability: Capability, own: bytes) -> str:
    """The repository's own `CLAUDE.md`, if any, followed by this run's block."""
    before = own.decode("utf-8", "replace").rstrip()
    return (f"{before}\n\n---\n\n" if before else "") + _block(capability)


def _block(capability: Capability) -> str:
    eager = [entry for entry in capability.ground_in if entry.eager]
    on_demand = [entry for entry in capability.ground_in if not entry.eager]
    lines = [f"# {capability.capability}: what this session works from", ""]
    for entry in eager:
        lines += [f"{entry.answers}:", "", f"@{entry.into}", ""]
    if on_demand:
        lines += ["Open these when the task needs what they answer:", ""]
        lines += [f"- `{entry.into}`: {entry.answers}" for entry in on_demand]
        lines.append("")
    lines += ["## Where this session may write", "", *_boundary(capability), ""]
    return "\n".join(lines)


def _boundary(capability: Capability) -> Sequence[str]:
    lines = [f"- `{path}`" for path in capability.writes_only_under]
    lines += [f"- `{path}` (scratch: never committed)" for path in capability.scratch]
    if capability.protected:
        lines += ["", "Not to be changed there: " + ", ".join(f"`{pattern}`" for pattern in capability.protected) + "."]
    return [
        *lines, "", "A change anywhere else refuses the whole task.",
        "Do not commit or push: that happens after the session.",
    ]  # fmt: skip
