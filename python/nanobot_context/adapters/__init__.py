"""Adapters that make the requests of frameworks fit; each module needs its own framework."""
