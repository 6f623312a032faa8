"""Drives the published package 0.7.0 for `implement.py`, inside that package's own environment.

    reference_driver.py ROOT SIDECAR TOKEN

Reads a task id a line on stdin, executes it, and prints whether it was accepted.
"""

from __future__ import annotations

import json
import logging
import sys

from foundry_implementation_actor import CapabilityConfig, ClaudeCodeEngine, make_implement_task


class Beside:
    """As much of an actor as the handler asks for."""

    def __init__(self, engine: ClaudeCodeEngine, name: str) -> None:
        self.engines = {name: engine}


def main() -> None:
    logging.disable(logging.CRITICAL)
    config = CapabilityConfig.from_dict(json.loads(sys.argv[2]))
    engine = ClaudeCodeEngine(config, github_token=sys.argv[3])
    handler = make_implement_task(config)
    for line in sys.stdin:
        payload = {"task_id": line.strip(), "title": "t", "definition_of_done": ["d"]}
        prompt = f"verb: request\ndoor: implement-task\n{json.dumps({'payload': payload})}"
        judged = engine.judge(system="", prompt=prompt)
        reply = handler(Beside(engine, config.engine), payload, "benchmark", judged=judged)
        print(reply["accepted"], flush=True)


if __name__ == "__main__":
    main()
