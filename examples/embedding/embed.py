"""The actor inside of a program of your own, without a server. usage: python embed.py FOLDER TASK.json."""

import json
import sys
from pathlib import Path

from papeete_actor_synchronous_messaging.actor import Actor
from papeete_actor_synchronous_messaging.mailbox import InProcessMailbox

from foundry_implementation_actor import CapabilityConfig, ClaudeCodeEngine, make_implement_task, render_cards

folder, payload = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
config, mailbox = CapabilityConfig.load(folder), InProcessMailbox()
render_cards(config, folder)
engines, actions = {config.engine: ClaudeCodeEngine(config)}, {"implement-task": make_implement_task(config)}
actor = Actor.from_card(folder, mailbox=mailbox, engines=engines, actions=actions)
print(json.dumps(actor.receive(verb="request", door="implement-task", payload=payload, from_="embedder")))
