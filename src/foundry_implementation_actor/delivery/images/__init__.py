"""Builders of component images, behind one port (`port.Builder`)."""
