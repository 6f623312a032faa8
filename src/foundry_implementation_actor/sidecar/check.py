"""Every rule of a sidecar, run over one document, and the values of one that keeps them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foundry_implementation_actor.domain.capability import Component, Grounding
from foundry_implementation_actor.domain.document import Document, Fault, Wrong, quoted
from foundry_implementation_actor.sidecar import grammar
from foundry_implementation_actor.sidecar.walk import Found, Walk

_TOP = ("context", "engine", "capability", "source_repo", "registry_repo", "components", "ground_in")
_TOP_OURS = ("scratch", "protected", "gate")
_COMPONENT = ("name", "path", "dockerfile", "verify")
_VERIFY = ("run", "remediate")
_GROUNDING = ("name", "answers", "fetch", "into", "load")
_GATE = ("root", "writes")
_SHELL_WORDS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})


def check(document: Document) -> Walk:
    """Every error and warning of a document, in the order of the file.

    A document of another `context` has that one error and nothing else is looked at.
    """
    walk = Walk(document)
    if unmigrated(document):
        walk.errors.clear()
        walk.text(("context",), grammar.context)
        return walk
    if walk.mapping((), _TOP + _TOP_OURS):
        _check_names(walk)
        roots = _check_components(walk)
        _check_groundings(walk, roots)
        _check_scratch(walk, roots)
        _check_gate(walk, roots)
    walk.errors.sort(key=_by_place)
    walk.warns.sort(key=_by_place)
    return walk


def unmigrated(document: Document) -> bool:
    """Whether it is written for another contract than the one this release reads."""
    context = document.get(("context",))
    return isinstance(context, str) and bool(context.strip()) and context != grammar.CONTEXT


def build(document: Document) -> dict[str, Any]:
    """The fields of a `Capability`, from a document without errors."""
    raw = document.root
    assert isinstance(raw, Mapping), "only a checked document is built from"
    return {
        **{key: raw[key] for key in ("engine", "capability", "source_repo", "registry_repo")},
        "components": tuple(_component(item) for item in raw["components"]),
        "ground_in": tuple(_grounding(item) for item in raw["ground_in"]),
        "scratch": tuple(_with_slash(path) for path in raw.get("scratch", ())),
        "protected": tuple(raw.get("protected", ())),
        "gate": _gate(raw["gate"], raw["components"]) if "gate" in raw else None,
    }


def _component(raw: Mapping[str, Any]) -> Component:
    dockerfile, verify = raw["dockerfile"].removesuffix("/"), raw.get("verify", ())
    if not isinstance(verify, Mapping):
        return Component(raw["name"], raw["path"], dockerfile, tuple(verify))
    remediate = grammar.remediate(verify.get("remediate", 0))
    assert remediate is not None, "only a checked document is built from"
    return Component(raw["name"], raw["path"], dockerfile, tuple(verify["run"]), remediate)


def _grounding(raw: Mapping[str, Any]) -> Grounding:
    return Grounding(raw["name"], raw["answers"], tuple(raw["fetch"]), raw["into"], raw["load"])


def _gate(raw: Mapping[str, Any], components: Sequence[Mapping[str, Any]]) -> str:
    """The app's directory: the one component's, unless another is named."""
    root = _with_slash(raw.get("root", components[0]["path"]))
    return "" if root == "./" else root


def _with_slash(path: str) -> str:
    return path.removesuffix("/") + "/"


def _by_place(fault: Fault) -> tuple[int, int]:
    return fault.place or (0, 0)


def _check_names(walk: Walk) -> None:
    walk.text(("context",), grammar.context)
    walk.text(("engine",), grammar.engine)
    walk.text(("capability",), grammar.capability)
    walk.text(("source_repo",), grammar.repository)
    walk.text(("registry_repo",), grammar.repository)


def _check_components(walk: Walk) -> list[str]:
    """Check the components; their roots come back."""
    names: Found = []
    roots: Found = []
    for at in walk.items(("components",), at_least=1):
        if not walk.mapping(at, _COMPONENT):
            continue
        names += _kept(walk, (*at, "name"), grammar.component_name)
        roots += _kept(walk, (*at, "path"), grammar.component_path)
        _check_dockerfile(walk, (*at, "dockerfile"))
        _check_verify(walk, (*at, "verify"))
    walk.unique(names)
    walk.unique(roots)
    return [root for _, root in roots]


def _check_verify(walk: Walk, at: tuple[str | int, ...]) -> None:
    """A command alone, or with the number of remediations that it may ask for."""
    if not walk.has(at):
        return
    command = at
    if isinstance(walk.document.get(at), Mapping):
        command = (*at, "run")
        walk.mapping(at, _VERIFY)
        if walk.has((*at, "remediate")):
            walk.remediations((*at, "remediate"))
    walk.texts(command, grammar.free, at_least=1)


def _kept(walk: Walk, at: tuple[str | int, ...], rule: grammar.Rule) -> Found:
    value = walk.text(at, rule)
    return [] if value is None else [(at, value)]


def _check_dockerfile(walk: Walk, at: tuple[str | int, ...]) -> None:
    folder = walk.text(at, grammar.directory_or_root)
    if folder and folder.removesuffix("/").rpartition("/")[2].lower() in {"dockerfile", "containerfile"}:
        walk.doubt(at, f"{quoted(folder)} looks like a file", "write the directory that holds the Dockerfile")


def _check_groundings(walk: Walk, roots: list[str]) -> None:
    names: Found = []
    files: Found = []
    for at in walk.items(("ground_in",)):
        if not walk.mapping(at, _GROUNDING):
            continue
        names += _kept(walk, (*at, "name"), grammar.grounding_name)
        files += _kept(walk, (*at, "into"), grammar.into)
        walk.text((*at, "answers"), grammar.free)
        walk.text((*at, "load"), grammar.load)
        _check_fetch(walk, (*at, "fetch"))
    walk.unique(names)
    walk.unique(files)
    _check_files(walk, files, roots)
    if walk.document.get(("ground_in",)) in ([], ()):
        walk.doubt(("ground_in",), "is empty", "name the knowledge that a session needs beyond the repository, if any")


def _check_fetch(walk: Walk, at: tuple[str | int, ...]) -> None:
    words = walk.texts(at, grammar.fetch_word, at_least=1)
    in_shell = bool(words) and words[0][1].rpartition("/")[2] in _SHELLS
    for word_at, word in words:
        wrong = grammar.unfilled(word)
        if wrong and not (in_shell and "shell" in wrong.what):
            walk.doubt(word_at, *wrong)
        if word in _SHELL_WORDS:
            walk.doubt(
                word_at, f"{quoted(word)} is passed as a word: no shell runs the command", "call `sh -c` for one"
            )
    if words and words[0][0] == (*at, 0) and " " in words[0][1]:
        walk.doubt(words[0][0], f"no program is called {quoted(words[0][1])}", "write one word for each argument")


def _check_files(walk: Walk, files: Found, roots: list[str]) -> None:
    """A fetched file may neither be taken for a component's work, nor stand in another one's way."""
    for at, file in files:
        if root := next((root for root in roots if f"{file}/".startswith(root) or root.startswith(f"{file}/")), None):
            what = f"{quoted(file)} meets the component root {quoted(root)}"
            walk.wrong(at, Wrong(what, "choose a file outside every component, such as `.foundry/<name>.md`"))
        if below := next((other for _, other in files if other.startswith(f"{file}/")), None):
            walk.wrong(at, Wrong(f"{quoted(file)} is a directory in {quoted(below)}", "choose another file"))


def _check_scratch(walk: Walk, roots: list[str]) -> None:
    if walk.has(("scratch",)):
        found = [(at, _with_slash(path)) for at, path in walk.texts(("scratch",), grammar.directory)]
        walk.unique(found)
        for at, path in found:
            if any(root.startswith(path) for root in roots):
                what = f"{quoted(path)} holds a component, which then would never be committed"
                walk.wrong(at, Wrong(what, "name a directory inside or beside the component"))
    if walk.has(("protected",)):
        walk.unique(walk.texts(("protected",), grammar.pattern))


def _check_gate(walk: Walk, roots: list[str]) -> None:
    if not walk.has(("gate",)) or not walk.mapping(("gate",), _GATE):
        return
    walk.text(("gate", "writes"), grammar.writes)
    if walk.has(("gate", "root")):
        root = walk.text(("gate", "root"), grammar.directory_or_root)
        if root and roots and not _meets(root, roots):
            what = f"{quoted(root)} holds no component and lies in none, so that nothing could land there"
            walk.wrong(("gate", "root"), Wrong(what, "name the directory of a component, or one above it"))
    elif len(roots) > 1:
        what = f"has no `root`, and there are {len(roots)} components"
        walk.wrong(("gate",), Wrong(what, "add `root: <directory>`, the app whose gate sessions write through"))


def _meets(folder: str, roots: list[str]) -> bool:
    place = _with_slash(folder)
    return place == "./" or any(root.startswith(place) or place.startswith(root) for root in roots)
