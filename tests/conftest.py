"""What every test here stands on; see `support.guards`."""

pytest_plugins = ["support.guards"]
