"""What each tool does: arguments of any shape in, an answer out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.gate import answer
from foundry_implementation_actor.gate.answer import Answer
from foundry_implementation_actor.gate.ask import TARGET_KEYS, edit_wish, only, target_of, wish
from foundry_implementation_actor.gate.gate import Gate

Arguments = Mapping[str, Any]
OpenGate = Callable[[], Gate]


def call(name: str, arguments: Arguments, open_gate: OpenGate) -> Answer:
    """Do what one tool does; an ask that cannot be answered is an answer too.

    Raises:
        KeyError: there is no such tool.
    """
    act = _ACTS[name]
    try:
        return act(open_gate(), arguments)
    except ActorError as error:
        return answer.error_answer(error)
    except Exception as error:  # noqa: BLE001 - the one boundary: a client gets an answer, never a traceback
        said = f"this is a bug ({type(error).__name__}: {error})"
        return answer.error_answer(ActorError(Code.BUG, said, hint="nothing landed; please report it"))


def in_words(given: Answer) -> str:
    """An answer as the text that a model reads."""
    if not given["ok"]:
        return str(given["error"])
    if "content" in given:
        return f"{given['content']}\n--- {given['file']}, digest {given['digest']}"
    if "made" in given:
        return f"{'made' if given['written'] else 'would make'}: {', '.join(given['made'])}"
    if "staged" in given:
        return "\n".join(f"{one['plugin']}.{one['class']}: {_size(one)}" for one in given["staged"]) or "nothing staged"
    if "sections" in given:
        return f"staged, not judged yet: {_size(given)}"
    landed = "landed" if "digest" in given or "bodies" in given else "green"
    return f"{landed}: {given.get('file', '')} judged: {given.get('verified', '')}"


def _size(staged: Answer) -> str:
    if "damage" in staged:
        return f"damaged: {staged['damage']}; send it again from mode=start"
    return f"{answer.size(staged)}, sha256 {staged['sha256']}"


def _make(gate: Gate, sent: Arguments) -> Answer:
    only(sent, ("kind", "plugin", "name", "dry_run"), "make")
    if not isinstance(sent.get("dry_run", False), bool):
        raise ActorError(Code.BAD_REQUEST, "must be true or false", where="dry_run")
    names = [sent.get("kind"), sent.get("plugin"), sent.get("name") or ""]
    if not all(isinstance(name, str) for name in names):
        raise ActorError(Code.BAD_REQUEST, "kind, plugin and name must be texts")
    kind, plugin, name = map(str, names)
    return answer.made(gate.make(kind, plugin, name, dry_run=sent.get("dry_run") is True))


def _implement(gate: Gate, sent: Arguments) -> Answer:
    return answer.answer(gate.implement(wish(sent)))


def _edit(gate: Gate, sent: Arguments) -> Answer:
    return answer.answer(gate.implement(edit_wish(sent)))


def _read(gate: Gate, sent: Arguments) -> Answer:
    only(sent, TARGET_KEYS, "read")
    return answer.read(gate.read(target_of(sent)))


def _test(gate: Gate, sent: Arguments) -> Answer:
    only(sent, TARGET_KEYS, "test")
    return answer.tested(gate.test(target_of(sent)))


def _status(gate: Gate, sent: Arguments) -> Answer:
    only(sent, (), "status")
    return {"ok": True, "staged": [answer.staged(body) for body in gate.status()]}


_ACTS: dict[str, Callable[[Gate, Arguments], Answer]] = {
    "make": _make,
    "implement": _implement,
    "edit": _edit,
    "read": _read,
    "test": _test,
    "status": _status,
}
