"""Serves a folder by https, ranges too, and prints what is asked for. Usage: served.py FOLDER PORT_FILE; cert.pem and
key.pem lie in this folder."""
import http.server
import os
import re
import shutil
import ssl
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        asked = self.headers.get("Range", "")
        print(path, asked, flush=True)
        try:
            file = open(os.path.join(sys.argv[1], os.path.basename(path)), "rb")
        except OSError:
            self.send_error(404)
            return
        with file:
            try:
                self.answer(file, asked)
            except OSError:
                pass  # enough was read of it

    def answer(self, file, asked):
        size = os.fstat(file.fileno()).st_size
        begin = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked else 0
        if begin >= size:
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
        self.send_header("Content-Length", str(size - begin))
        self.end_headers()
        file.seek(begin)
        shutil.copyfileobj(file, self.wfile)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
with open(sys.argv[2], "w", encoding="ascii") as file:
    file.write(str(server.server_port))
server.serve_forever()
