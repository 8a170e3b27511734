"""Reads, fits, sends and repairs requests to model servers, as they stand on the wire."""
