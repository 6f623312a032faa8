"""Real parts that the tests stand on: repositories, servers on loopback, the pinned command line."""
