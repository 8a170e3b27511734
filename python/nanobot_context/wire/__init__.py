"""Requests to model servers as they stand on the wire: read, made to fit, sent, repaired."""
