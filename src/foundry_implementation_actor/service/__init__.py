"""The actor behind HTTP: the framework's mailbox port on an ASGI server, and its orderly start and end."""
