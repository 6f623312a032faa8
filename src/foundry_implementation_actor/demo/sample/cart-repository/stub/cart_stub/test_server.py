"""The stub, asked over a real connection."""

from __future__ import annotations

import json
import threading
from http.client import HTTPConnection
from http.server import HTTPServer
from unittest import TestCase

from cart_stub.server import CART, Handler


class TestServer(TestCase):
    def test_any_path_answers_with_the_cart(self) -> None:
        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
            connection.request("GET", "/carts/1")
            answer = json.load(connection.getresponse())
            connection.close()
            thread.join()
        assert answer == CART
