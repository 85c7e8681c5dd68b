"""duly.service.api: a scheduler, administered from another process. JSON-RPC 2.0 over HTTP, and its clients.

Rules kept here:
- the Scheduler's own signatures are the only description of its methods: the server's checks, the clients' types and
  the OpenRPC document are all derived from them;
- a call is made on the Scheduler itself, and so ordered with polls; what it returned is durable before it is told;
- nothing takes effect without the token, and the token is in no log, error or answer.
"""

from __future__ import annotations

if __name__ != "duly.service.api":
    raise ImportError(f"this is the package duly.service.api, not {__name__}: import duly.service.api")
