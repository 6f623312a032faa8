"""What a session changed, decided by a git directory that it could not touch.

The trusted index holds the base as it was checked out. After the session the tree is compared with
it (`survey`), which reads no file that did not change. What changed inside the roots is then hashed
into a copy of the base's index (`stage`), so that the commit's tree is the base's own tree with
those changes and nothing else (`staged_tree`). Renames are off: both sides count.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foundry_implementation_actor.domain.change import ABSENT, EXECUTABLE, GITLINK, LINK, REGULAR, Change, Kind
from foundry_implementation_actor.system.files import writable
from foundry_implementation_actor.system.git import Git, refusal_of
from foundry_implementation_actor.workspace.checkout import joined
from foundry_implementation_actor.workspace.left import Unholdable, are_same, blocked, filled, looked_at, unread
from foundry_implementation_actor.workspace.trusted import Trusted, is_as_written, settle

_NO_BLOB = "0" * 40
_KINDS = {"A": Kind.ADDED, "D": Kind.DELETED, "M": Kind.CHANGED, "T": Kind.CHANGED}


@dataclass(frozen=True)
class Survey:
    """What the session left, by path: changes inside and outside of the roots, sizes known, unread.

    `as_before` are files that git lists although they hold what was checked out.
    """

    inside: tuple[Change, ...]
    outside: tuple[Change, ...]
    unholdable: tuple[Unholdable, ...]
    as_before: tuple[str, ...] = ()


def survey(trusted: Trusted, roots: Sequence[str], scratch: Sequence[str]) -> Survey:
    """Compare the tree with what was prepared, by path. Nothing of the session's own git is read.

    Args:
        trusted: the tree and the git directory that judges it.
        roots: the component roots, each ending in `/`.
        scratch: directories (ending in `/`) whose untracked files count for nothing.
    """
    tracked, passed_over = _tracked(trusted)
    if tracked:
        # A file that was only touched, or given to another user, is listed too until git has looked into it.
        # It reads only those that are as large as they were.
        trusted.git.attempt("update-index", "-q", "--refresh")
        tracked, passed_over = _tracked(trusted)
    others, also_passed_over = _listed(trusted, "ls-files", "--others", "--exclude-standard", "-z")
    new = [path for path in others if not under(path, scratch) and not _is_grounding(trusted, path)]
    unholdable = [(path, "is a git repository of its own") for path in new if path.endswith("/")]
    unholdable += [lost for lost in (*passed_over, *also_passed_over) if not under(lost[0], scratch)]
    unholdable += [
        (path, "is a submodule, which a session may not fill") for path in filled(trusted.tree, trusted.base.submodules)
    ]
    stopped = (blocked(trusted.tree, root) for root in roots)
    unholdable += [(path, "is a link or a file in place of a directory") for path in stopped if path]
    as_before = _as_before(trusted, tracked, new)
    found = [change for change in tracked if change.path not in as_before]
    found += [Change(path, Kind.ADDED, ABSENT, "") for path in new if not path.endswith("/")]
    changes = []
    for change in found:
        seen, why = looked_at(trusted.tree, change)
        changes.append(seen)
        unholdable += [(change.path, why)] if why else []
    return Survey(
        inside=tuple(change for change in changes if under(change.path, roots)),
        outside=tuple(change for change in changes if not under(change.path, roots)),
        unholdable=tuple(dict.fromkeys(unholdable)),
        as_before=tuple(as_before),
    )


def stage(trusted: Trusted, inside: Sequence[Change]) -> tuple[tuple[Change, ...], list[Unholdable]]:
    """Hash what changed inside the roots: the changes with modes and blobs, and what git refused."""
    git, apart = trusted.git, {"GIT_INDEX_FILE": str(trusted.base_index)}
    paths = [change.path for change in inside if change.kind is not Kind.DELETED]
    _start_over(git, inside, apart)
    options = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
    done = git.attempt(*options, stdin=joined(paths), extra=apart)
    if not done.ok:
        return (), [("", f"git cannot take it in: {done.errors}")]
    settle(trusted.base_index)
    raw = git.records("diff-index", "--cached", "--no-renames", "-r", "--raw", "-z", trusted.base.commit, extra=apart)
    staged = _compared(raw)
    sizes = {change.path: change.size for change in inside}
    missed = set(paths) - {change.path for change in staged}
    refused = [(change.path, "has a name that git refuses") for change in inside if _added(change, missed)]
    refused += unread(done.errors)
    return tuple(replace(change, size=sizes.get(change.path, 0)) for change in staged), refused


def inspected(git: Git, changes: Sequence[Change], is_secret: Callable[[bytes], bool]) -> tuple[Change, ...]:
    """The same changes with link targets and whether a known secret stands in them.

    Reads every changed blob, so the size of the change is judged before.
    """
    blobs = {change.blob for change in changes if change.blob and change.mode != GITLINK}
    contents = dict(_contents(git, blobs))
    return tuple(_inspected(change, contents.get(change.blob, b""), is_secret) for change in changes)


def digests(trusted: Trusted, changes: Sequence[Change]) -> dict[str, str]:
    """The SHA-256, in hex, of what lies at each changed path that is not deleted.

    It is taken of what would be committed; where attributes of the repository make other bytes of a file, such
    as other ends of lines, of the file that was staged.
    """
    if trusted.base.has_attributes:
        files = [change for change in changes if change.blob and change.mode in {REGULAR, EXECUTABLE}]
        return {change.path: hashlib.sha256((trusted.tree / change.path).read_bytes()).hexdigest() for change in files}
    blobs = {change.blob for change in changes if change.blob and change.mode != GITLINK}
    contents = dict(_contents(trusted.git, blobs))
    return {
        change.path: hashlib.sha256(contents[change.blob]).hexdigest() for change in changes if change.blob in contents
    }


def staged_tree(trusted: Trusted) -> str:
    """The tree of the commit, the base's with what was staged; its object id."""
    return trusted.git.text("write-tree", extra={"GIT_INDEX_FILE": str(trusted.base_index)})


def packed_tree(trusted: Trusted, tree: str) -> bytes:
    """Every object of a tree that the base has not, as one of git's packs: what is kept of it in memory."""
    raw = trusted.git.records("diff-tree", "-r", "-t", "--no-renames", "--raw", "-z", trusted.base.commit, tree)
    changes = (meta.split()[1:4:2] for meta in raw[::2])
    wanted = {tree, *(blob for mode, blob in changes if mode not in {ABSENT, GITLINK})}
    listed = "".join(f"{one}\n" for one in sorted(wanted)).encode()
    # Without a search for likenesses: it would take long for large files, and the push makes its own.
    return trusted.git.output("pack-objects", "-q", "--window=0", "--stdout", stdin=listed)


def take_in(trusted: Trusted, pack: bytes) -> None:
    """Put the objects of a pack into another git directory on the same base; git reads and hashes each of them."""
    trusted.git.output("index-pack", "--stdin", stdin=pack)


def ignored(trusted: Trusted, roots: Sequence[str]) -> list[str]:
    """What lies under the roots and is ignored by the repository's own rules, directories in one."""
    paths = trusted.git.records("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    return [path for path in paths if under(path, roots)]


def changed_paths(git: Git, base: str, commit: str) -> list[str]:
    """The paths in which two commits differ."""
    return git.records("diff-tree", "-r", "--name-only", "--no-renames", "-z", base, commit)


def under(path: str, roots: Iterable[str]) -> bool:
    """Whether a path lies below one of the roots."""
    return any(path.startswith(root) for root in roots)


def _listed(trusted: Trusted, *words: str) -> tuple[list[str], list[Unholdable]]:
    """The records of a git that looks through the tree, and what it could not look into."""
    done = trusted.git.attempt(*words)
    if not done.ok:
        raise refusal_of(done, f"git {words[0]} failed")
    return [os.fsdecode(part) for part in done.stdout.split(b"\0")[:-1]], list(unread(done.errors))


def _tracked(trusted: Trusted) -> tuple[list[Change], list[Unholdable]]:
    raw, lost = _listed(trusted, "diff-files", "--no-renames", "--ignore-submodules=all", "--raw", "-z")
    return [change for change in _compared(raw) if not _is_grounding(trusted, change.path)], lost


def _is_grounding(trusted: Trusted, path: str) -> bool:
    """Whether a path is a grounding file that is still as the actor wrote it."""
    written = trusted.prepared.grounding.get(path)
    return written is not None and is_as_written(trusted.tree / path, written)


def _as_before(trusted: Trusted, tracked: Sequence[Change], new: Sequence[str]) -> set[str]:
    """Those of the changed files that still hold what was checked out, byte for byte.

    Where attributes rule line ends or the like, a committed file may differ from what git would make
    of it, from the start; git shows that as a change as soon as it looks. So what git lists is checked
    out once more, elsewhere and by the base's attributes, and compared.
    """
    ruled = trusted.base.has_attributes or any(
        path.rpartition("/")[2] == ".gitattributes" for path in (*new, *(change.path for change in tracked))
    )
    listed = [change.path for change in tracked if change.mode == change.mode_before != LINK] if ruled else []
    if not listed:
        return set()
    with writable(trusted.git.git_dir):
        again = Path(tempfile.mkdtemp(prefix="again-", dir=trusted.git.git_dir))
    git, apart = replace(trusted.git, work_tree=again), {"GIT_INDEX_FILE": str(trusted.base_index)}
    git.output("checkout-index", "-z", "--stdin", stdin=joined(listed), extra=apart)
    return {path for path in listed if are_same(trusted.tree / path, again / path)}


def _start_over(git: Git, inside: Sequence[Change], apart: Mapping[str, str]) -> None:
    """Take what was deleted out of the index, and make git read the other files again.

    A changed file's size and time may be those of the base. A deleted path may lie beyond what is a
    link now, where git would not go to see that it is gone.
    """
    gone = [f"0 {_NO_BLOB}\t{change.path}" for change in inside if change.kind is Kind.DELETED]
    changed = [change for change in inside if change.kind is Kind.CHANGED]
    records = [*gone, *(f"{change.mode_before} {change.blob_before}\t{change.path}" for change in changed)]
    if records:
        git.output("update-index", "-z", "--index-info", stdin=joined(records), extra=apart)


def _compared(records: list[str]) -> list[Change]:
    """The changes of git's raw output: alternating `:modes blobs status` and path."""
    changes = []
    for meta, path in zip(records[::2], records[1::2], strict=True):
        mode_before, mode, blob_before, blob, status = meta.removeprefix(":").split()
        before = (mode_before, blob_before) if status != "A" else ("", "")
        changes.append(Change(path, _KINDS[status[0]], mode, "" if mode == ABSENT else blob, *before))
    return changes


def _added(change: Change, missed: set[str]) -> bool:
    return change.path in missed and change.kind is Kind.ADDED


def _contents(git: Git, blobs: set[str]) -> Iterable[tuple[str, bytes]]:
    wanted = "".join(f"{blob}\n" for blob in sorted(blobs)).encode()
    raw = git.output("cat-file", "--batch", stdin=wanted) if blobs else b""
    at = 0
    while at < len(raw):
        end = raw.index(b"\n", at)
        name, _, size = raw[at:end].decode().split()
        yield name, raw[end + 1 : end + 1 + int(size)]
        at = end + int(size) + 2


def _inspected(change: Change, content: bytes, is_secret: Callable[[bytes], bool]) -> Change:
    target = os.fsdecode(content) if change.mode == LINK else ""
    return replace(change, target=target, holds_secret=is_secret(content) or is_secret(os.fsencode(change.path)))
