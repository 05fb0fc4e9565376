"""A proxy between mam and the server that cuts the connection at a chosen answer, or delays it."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from pathlib import Path

SOCKET_NAME = ".s.PGSQL.5432"


class Proxy:
    """Listens in `folder` as the server does in its own, or on a TCP port, and passes everything on until told to cut.

    `cut_at(answer)` cuts the connection that is about to get that answer of the server, counted from now, instead of
    passing it on, once. `trips` counts the answers to what a client said. `trip_seconds` is what a round trip takes at
    least.
    """

    def __init__(self, folder: Path | None, server_folder: Path, trip_seconds: float = 0.0) -> None:
        self._server = str(server_folder / SOCKET_NAME)
        self._until = 0
        self._way_seconds = trip_seconds / 2
        self.cuts = self.trips = 0
        self._listener = socket.socket(socket.AF_INET if folder is None else socket.AF_UNIX)
        self._listener.bind(("127.0.0.1", 0) if folder is None else str(folder / SOCKET_NAME))
        self._listener.listen()
        self._clients: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def tcp_url(self) -> str:
        return f"postgresql://mam@127.0.0.1:{self._listener.getsockname()[1]}/postgres?sslmode=disable"

    def cut_at(self, answer: int) -> None:
        self._until = answer

    def cut(self) -> None:
        """All wires at once; those that come later are whole."""
        for client in self._clients:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it went by itself

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return  # closed
            self._clients.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, selectors.DefaultSelector() as ready:
            server.connect(self._server)
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            is_question = False
            while True:
                for key, _events in ready.select():
                    source, target = key.fileobj, key.data
                    assert isinstance(source, socket.socket)
                    if not self._passed_on(source, target, from_server=source is server, is_question=is_question):
                        return
                    is_question = source is client

    def _passed_on(self, source: socket.socket, target: socket.socket, *, from_server: bool, is_question: bool) -> bool:
        try:
            said = source.recv(1 << 16)
            # The end of a connection is no answer: either side may be the first to close.
            self.trips += from_server and is_question and bool(said)
            if self._way_seconds:
                time.sleep(self._way_seconds)  # the distance
            if from_server and self._until > 0:
                self._until -= 1
                if self._until == 0:
                    self.cuts += 1
                    return False
            target.sendall(said)
        except OSError:
            return False
        return bool(said)
