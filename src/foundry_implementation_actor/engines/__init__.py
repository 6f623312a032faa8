"""Coding agents behind one port: how to start one, and what a line of its output means. No I/O."""
