"""The report as a web page, on the loopback interface only."""

import http.server
import json
import pathlib

from .client import Unreachable
from .tasks import Dump

PAGE = pathlib.Path(__file__).with_name('page.html')
MOST_TASKS = 500


class Handler(http.server.BaseHTTPRequestHandler):
    reader = None  # of the server

    def do_GET(self):
        # A page of another site that resolves its name to this address is refused.
        host = self.headers.get('Host', '').rsplit(':', 1)[0]
        if host not in ('localhost', '127.0.0.1'):
            self._reply(403, 'text/plain', 'open this page as http://localhost\n')
        elif self.path == '/':
            self._reply(200, 'text/html; charset=utf-8', PAGE.read_text(encoding='utf-8'))
        elif self.path in ('/reading.json', '/tasks.json'):
            try:
                self._reply(200, 'application/json', json.dumps(self._document()))
            except Unreachable as error:
                self._reply(502, 'application/json', json.dumps({'error': str(error)}))
        else:
            self._reply(404, 'text/plain', 'not found\n')

    def _document(self):
        if self.path == '/reading.json':
            return self.server.reader.read().document()
        tasks = Dump(self.server.reader.client.tasks(MOST_TASKS)).tasks
        return [task.line() for task in tasks[:MOST_TASKS]]

    def _reply(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Cache-Control', 'no-store')
        self.send_header('Content-Security-Policy', "default-src 'self' 'unsafe-inline'; img-src data:")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


def serve(reader, port):
    # One request at a time: the readings of several pages would disturb each other's rates.
    with http.server.HTTPServer(('127.0.0.1', port), Handler) as server:
        server.reader = reader
        print(f'http://localhost:{server.server_port}', flush=True)
        server.serve_forever()
