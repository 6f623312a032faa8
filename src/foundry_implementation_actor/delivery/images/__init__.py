"""Images of components: built by one of several builders (`port.Builder`), published so that it can be repeated."""
