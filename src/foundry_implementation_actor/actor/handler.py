"""The handler of the `implement-task` door.

The engine has already executed the whole run when the framework calls this; the handler sees that
what it was given is the answer of a finished run, and passes it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.error import HandlerError

Handler = Callable[..., dict[str, Any]]

_SHAPES = ({"accepted", "branch", "images"}, {"accepted", "because"})


def make_implement_task(config: Capability) -> Handler:
    """The handler to register for `implement-task`: `(actor, payload, from_, judged=None) -> dict`.

    Raises (when called):
        HandlerError: `judged` is not the answer of a run of `ClaudeCodeEngine`.
    """

    def implement_task(
        actor: object,  # noqa: ARG001 - the framework's signature
        payload: Mapping[str, Any],  # noqa: ARG001 - the framework's signature
        from_: str,  # noqa: ARG001 - the framework's signature
        judged: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        if judged is None or set(judged) not in _SHAPES:
            raise HandlerError(
                f"implement-task of {config.capability} was judged by an engine that executes no runs",
                hint=f"register ClaudeCodeEngine(config) as engine {config.engine!r}",
            )
        return dict(judged)

    return implement_task
