"""The one way out of a session whose network is closed: a forward proxy that knows a list of hosts."""
