"""The engine: every model call that is handed to it fits its window, and is repaired if refused."""
