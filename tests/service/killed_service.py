"""A service that dies at a moment of the test's choosing: after a call was made and recorded, before it is answered.

Arguments: the journal, the address, the token's file, and the method after which it dies ("": it lives).
"""

from __future__ import annotations

import os
import sys
from threading import Event

from duly import Scheduler
from duly.service import Server
from duly.service.api.rpc import Dispatcher


def main(journal: str, address: str, token_file: str, fatal: str) -> None:
    reply = Dispatcher.reply

    def deadly(self: Dispatcher, body: bytes) -> bytes | None:
        answer = reply(self, body)
        if fatal and f'"method":"{fatal}"'.encode() in body:
            os._exit(9)  # no close, no reply, no mark in the journal
        return answer

    Dispatcher.reply = deadly  # type: ignore[method-assign]  # this is how it dies
    with Scheduler.open(journal) as scheduler, Server.open(scheduler, address, token_file=token_file) as server:
        sys.stdout.write(f"{server.address}\n")
        sys.stdout.flush()
        Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
