"""A loopback relay that remembers every exchange that went through it."""

import contextlib
import http.client
import http.server
import threading
import urllib.parse

# Of one connection only, or written anew by whoever sends.
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "proxy-connection"}


class Recorder:
    def __init__(self):
        self.exchanges = []

    @contextlib.contextmanager
    def watching(self, target):
        """Relays to `target` and gives the address to use in its place."""
        exchanges, address = self.exchanges, urllib.parse.urlsplit(target).netloc

        class Handler(Relay):
            pass

        Handler.exchanges, Handler.target = exchanges, address
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield "http://{}:{}".format(*server.server_address)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def take(self):
        """What went through since the last time."""
        taken = list(self.exchanges)
        self.exchanges.clear()
        return taken


class Relay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def relay(self):
        body = self.read_body()
        exchange = {
            "method": self.command,
            "path": self.path,
            "headers": dict(self.headers.items()),
            "body": body,
            "status": None,
            "reply": b"",
        }
        self.exchanges.append(exchange)
        upstream = http.client.HTTPConnection(self.target)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            upstream.request(self.command, self.path, body or None, headers)
            self.answer(upstream.getresponse(), exchange)
        except (OSError, http.client.HTTPException):
            # Either side is gone; whoever is left shall see that.
            self.close_connection = True
        finally:
            upstream.close()

    do_GET = do_POST = do_DELETE = do_HEAD = relay

    def read_body(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, reply, exchange):
        exchange["status"] = reply.status
        self.send_response_only(reply.status, reply.reason)
        for name, value in reply.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while piece := reply.read1():
            exchange["reply"] += piece
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass
