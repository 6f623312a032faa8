"""What a session may spend, and what a caller is told about one that did not come to its own end (CONTRACT 6)."""

from __future__ import annotations

from dataclasses import replace

from foundry_implementation_actor.domain.run import Budget, Cause, Door, SessionEnd

_LEAST_USD = 0.01

_KEPT = {
    Door.IMPLEMENT: "the work was cut off and nothing of it was pushed",
    Door.ASSESS: "the work was cut off and nothing was written or pushed",
}

_RECORDS = "the run's records: on stdout of serve, on stderr of implement and assess (all of them with --json 2>FILE)"

# For each way to end: what happened, and what to do about it.
_WORDS: dict[Cause, tuple[str, str]] = {
    Cause.TURNS: (
        "used up its budget of {budget.turns} turns",
        "raise {budget.turns_variable} (now {budget.turns}), or make the task smaller",
    ),
    Cause.CLOCK: (
        "used up its budget of {budget.clock_s} seconds",
        "raise {budget.clock_variable} (now {budget.clock_s}), or make the task smaller",
    ),
    Cause.SILENT: (
        "said nothing for {budget.silence_s} seconds, which is taken for a hang",
        "ask again, let slow commands print progress, or raise {budget.silence_variable} (now {budget.silence_s})",
    ),
    Cause.MONEY: (
        "used up its budget of {budget.cost_usd:g} US dollars",
        "raise MAX_COST_USD (now {budget.cost_usd:g}), or make the task smaller",
    ),
    Cause.OUTPUT: (
        "printed more than {budget.output_bytes} bytes",
        "keep its commands from printing so much, or raise MAX_OUTPUT_BYTES (now {budget.output_bytes})",
    ),
    Cause.DISK: (
        "wrote more than {budget.disk_bytes} bytes to disk ({detail})",
        "make the task smaller, or raise MAX_DISK_BYTES (now {budget.disk_bytes})",
    ),
    Cause.FILES: (
        "made more than {budget.disk_files} files ({detail})",
        "make the task smaller, or raise MAX_DISK_FILES (now {budget.disk_files})",
    ),
    Cause.PROCESSES: (
        "had more than {budget.processes} processes at once",
        "let its commands start fewer of them, or raise MAX_PROCESSES (now {budget.processes})",
    ),
    Cause.MEMORY: (
        "held more than {budget.memory_bytes} bytes of memory",
        "let its commands need less of it, or raise MAX_MEMORY_BYTES (now {budget.memory_bytes})",
    ),
    Cause.PROVIDER: (
        "was given up by the model's service: {detail}",
        "check the credentials and the service's limits, then ask again",
    ),
    Cause.CRASHED: (
        "broke: {detail}",
        f"ask again; if it breaks again, read {_RECORDS}",
    ),
    Cause.ESCAPED: (
        "cannot be trusted to be over: {detail}",
        "look for what is left on the host and end it, then ask again",
    ),
    Cause.NO_GATE: (
        "was started without its only pen, the gate ({detail})",
        "ask again; if it happens again, see that the session's engine reaches loopback",
    ),
    Cause.STOPPED: ("was stopped because the actor is stopping", "ask again"),
}


def explain(door: Door, budget: Budget, end: SessionEnd) -> tuple[str, str]:
    """What happened and what to do: which door, what ran out or broke and its value, what became of the work.

    `end` is one that is not finished. Nothing is redacted here.
    """
    what, advice = _WORDS[end.cause]
    detail = " ".join(end.detail.split()) or "it did not say why"
    said = f"{door}: the session {what}; {_KEPT[door]}"
    return said.format(budget=budget, detail=detail), advice.format(budget=budget)


def used_up(budget: Budget, spent: SessionEnd) -> str:
    """Of which limit nothing is left for one more session, and the variable that raises it; empty when of none.

    Args:
        budget: what all sessions of a run may spend together.
        spent: what the earlier ones have spent.
    """
    if spent.turns >= budget.turns:
        return f"{budget.turns} turns ({budget.turns_variable})"
    if budget.clock_s - spent.seconds < 1:
        return f"{budget.clock_s} seconds ({budget.clock_variable})"
    if budget.cost_usd and budget.cost_usd - spent.cost_usd < _LEAST_USD:
        return f"{budget.cost_usd:g} US dollars (MAX_COST_USD)"
    return ""


def remaining(budget: Budget, spent: SessionEnd) -> Budget:
    """What one more session may spend, where none of it is `used_up`."""
    return replace(
        budget,
        turns=budget.turns - spent.turns,
        clock_s=int(budget.clock_s - spent.seconds),
        cost_usd=budget.cost_usd and budget.cost_usd - spent.cost_usd,
    )
