"""Taking values out of a document by key path, and collecting what is wrong with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from foundry_implementation_actor.domain.capability import MOST_REMEDIATIONS
from foundry_implementation_actor.domain.document import (
    MISSING,
    Document,
    Fault,
    KeyPath,
    Other,
    Wrong,
    is_list,
    kind,
    quoted,
)
from foundry_implementation_actor.sidecar.grammar import CONTEXT, ENGINE, Rule, remediate, unprintable

_DEFAULT_FORM = "write some text"
_COMMAND = "the command as a list of words, such as `[make, test]`"
_FORMS = {
    "components": "write a list with one `{name, path, dockerfile}` for each image",
    "ground_in": "write `ground_in: []`, or a list of `{name, answers, fetch, into, load}`",
    "fetch": "write the command as a list of words, such as `[cat, notes.md]`, each with braces in quotes",
    "verify": f"write {_COMMAND}, `{{run: [make, test], remediate: 1}}`, or leave the key out",
    "run": f"write {_COMMAND}",
    "remediate": "write how many sessions may mend what is red, such as `remediate: 1`, or leave the key out",
    "scratch": "write a list of directories, such as `[build/]`, or leave the key out",
    "protected": "write a list of patterns, such as `['**/Makefile']`, or leave the key out",
    "gate": "write `{root: <directory>, writes: gate}`, or leave the key out",
    "capability": "write the capability's id",
    "source_repo": "write the `<owner>/<repo>` that is worked on",
    "registry_repo": "write the `<owner>/<repo>` that the knowledge comes from",
    "path": "write the component's directory, with `/` at its end",
    "dockerfile": "write the directory that holds its Dockerfile",
    "answers": "say in one line which questions it answers",
    "into": "write the file inside the clone that it goes into",
    "load": "write `eager` or `on-demand`",
    "context": f"write `context: {CONTEXT}`",
    "engine": f"write `engine: {ENGINE}`",
    "name": "write a short name",
    "root": "write the app's directory",
    "writes": "write `writes: gate`",
}
Found = list[tuple[KeyPath, str]]


class Walk:
    """One pass over one document. Values that are wrong come back as None, and are in `errors`."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.errors: list[Fault] = list(document.faults)
        self.warns: list[Fault] = []

    def wrong(self, at: KeyPath, wrong: Wrong) -> None:
        """Note an error at a key."""
        self.errors.append(self.document.fault(at, wrong))

    def doubt(self, at: KeyPath, what: str, write: str) -> None:
        """Note a warning at a key."""
        self.warns.append(self.document.fault(at, Wrong(what, write), key=True))

    def has(self, at: KeyPath) -> bool:
        """Whether the key is written at all."""
        return self.document.get(at) is not MISSING

    def text(self, at: KeyPath, rule: Rule) -> str | None:
        """A required, non-empty string that keeps a rule."""
        value = self.document.get(at)
        if not isinstance(value, str):
            self._not_a(at, "a string", value)
            return None
        wrong = unprintable(value) or (rule(value) if value.strip() else Wrong("is empty", _form(at)))
        if wrong:
            self.wrong(at, wrong)
            return None
        return value

    def items(self, at: KeyPath, *, at_least: int = 0) -> Iterator[KeyPath]:
        """The key paths of a required list's items."""
        value = self.document.get(at)
        if not is_list(value):
            self._not_a(at, "a list", value)
            return
        count = len(value)
        if count < at_least:
            self.wrong(at, Wrong("is empty", _form(at)))
        yield from ((*at, index) for index in range(count))

    def texts(self, at: KeyPath, rule: Rule, *, at_least: int = 0) -> Found:
        """The strings of a required list that keep a rule, with their key paths."""
        found = [(item, self.text(item, rule)) for item in self.items(at, at_least=at_least)]
        return [(item, text) for item, text in found if text is not None]

    def remediations(self, at: KeyPath) -> None:
        """See that a value says how many remediations there may be."""
        value = self.document.get(at)
        if remediate(value) is None:
            wanted = f"a whole number from 0 to {MOST_REMEDIATIONS}"
            number = _number(value)
            if number:
                self.wrong(at, Wrong(f"must be {wanted}, not {number}", _form(at)))
            else:
                self._not_a(at, wanted, value)

    def mapping(self, at: KeyPath, known: tuple[str, ...]) -> bool:
        """Whether there is a mapping; its keys that are not among the known ones are warned of."""
        value = self.document.get(at)
        if not isinstance(value, Mapping):
            self._not_a(at, "a mapping", value)
            return False
        for key in value:
            self._known(at, str(key), known)
        return True

    def unique(self, found: Found) -> None:
        """Note each value that stands a second time."""
        first: dict[str, KeyPath] = {}
        for at, value in found:
            if value in first:
                self.wrong(at, Wrong(f"{quoted(value)} is used twice", "give each its own"))
            first.setdefault(value, at)

    def _known(self, at: KeyPath, key: str, known: tuple[str, ...]) -> None:
        if key == "<<":
            wrong = Wrong("merge keys are not read", "write the keys out")
            self.errors.append(self.document.fault((*at, key), wrong, key=True))
        elif key not in known:
            near = get_close_matches(key, known, n=1)
            advice = f"did you mean `{near[0]}`?" if near else f"the keys here are {', '.join(known)}"
            self.doubt((*at, key), "is not a key of this release and is ignored", advice)

    def _not_a(self, at: KeyPath, wanted: str, value: object) -> None:
        what = "is missing" if value is MISSING else f"must be {wanted}, not {kind(value)}"
        self.wrong(at, Wrong(what, _form(at)))


def _number(value: object) -> str:
    """A number as it was written; empty for anything else."""
    if isinstance(value, Other):
        return quoted(value.text)[1:-1] if value.kind == "a number" else ""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _form(at: KeyPath) -> str:
    key = next((step for step in reversed(at) if isinstance(step, str)), None)
    return _FORMS.get(key or "", _DEFAULT_FORM) if key else "write the keys of a sidecar; README shows them"
