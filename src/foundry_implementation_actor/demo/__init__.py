"""A small capability of its own, real git over HTTP, both doors: the whole path on one machine."""
