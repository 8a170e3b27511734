"""Sessions that many processes share: in memory, in a SQLite file, on a Redis server.

Events, state of app, user and session, and summaries; nothing that was acknowledged is lost or
doubled, whoever writes at the same time.
"""

from __future__ import annotations

from nanobot_context.sessions.jobs import Job, JobCounts, JobError
from nanobot_context.sessions.records import (
    SessionEvent,
    SessionHead,
    SessionSummary,
    StoredSession,
)
from nanobot_context.sessions.service import AsyncSessionService, SessionService
from nanobot_context.sessions.tasks import AsyncJob

__all__ = [
    "AsyncJob",
    "AsyncSessionService",
    "Job",
    "JobCounts",
    "JobError",
    "SessionEvent",
    "SessionHead",
    "SessionService",
    "SessionSummary",
    "StoredSession",
]
