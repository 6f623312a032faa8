"""The sidecar `actor-agentic-context.yaml`: read, checked, shown."""
