"""Programs that speak the protocols of the real agents, line by line as those do, and ask for one command."""

from __future__ import annotations

CLAUDE = """
import json, sys
def say(**message):
    print(json.dumps(message), flush=True)
brief = json.loads(sys.stdin.readline())["message"]["content"][0]["text"]
open("brief", "w").write(brief)
say(type="system", subtype="init", session_id="abc", claude_code_version="2.1.325")
call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "npm test"}}
say(type="assistant", message={"content": [call]})
say(type="control_request", request_id="r0", request={"subtype": "interrupt_everything"})
refused = json.loads(sys.stdin.readline())
assert refused["response"]["subtype"] == "error", refused
ask = {"subtype": "can_use_tool", "tool_name": "Bash", "input": call["input"], "tool_use_id": "toolu_1"}
say(type="control_request", request_id="r1", request=ask)
said = json.loads(sys.stdin.readline())["response"]
open("said", "w").write(json.dumps(said))
if said["response"]["behavior"] == "deny":
    say(type="system", subtype="permission_denied", tool_name="Bash", tool_use_id="toolu_1")
say(type="result", subtype="success", is_error=False, result="All done.", session_id="abc", num_turns=1)
assert sys.stdin.read() == ""  # it stays until its stdin is closed
"""

CODEX = """
import json, sys
def say(**message):
    print(json.dumps(message), flush=True)
def heard():
    return json.loads(sys.stdin.readline())
def note(method, **params):
    say(method=method, params={"threadId": "t1", **params})
print("not JSON", flush=True)
say(id=heard()["id"], result={})
assert heard()["method"] == "initialized"
opened = heard()
open("opened", "w").write(json.dumps(opened))
say(id=opened["id"], result={"thread": {"id": "t1"}})
begun = heard()
say(id=begun["id"], result={"turn": {"id": "u1"}})
note("turn/started", turn={"id": "u1"})
say(method="item/commandExecution/requestApproval", id=7, params={
    "threadId": "t1", "turnId": "u1", "itemId": "call_1", "command": "/bin/bash -lc 'npm test'", "cwd": "/x"})
answers = [heard()]
if answers[0].get("method") == "turn/steer":
    say(id=answers[0]["id"], result={"turnId": "u1"})
    answers.append(heard())
open("said", "w").write(json.dumps(answers))
item = {"type": "agentMessage", "id": "m", "text": "All done."}
note("item/completed", item=item)
note("turn/completed", turn={"id": "u1", "status": "completed"})
assert sys.stdin.read() == ""
"""

OPENCODE = """
import base64, json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
password = os.environ["OPENCODE_SERVER_PASSWORD"]
replied, events = threading.Event(), []
class Visit(BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass
    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def allowed(self):
        wanted = "Basic " + base64.b64encode(f"opencode:{password}".encode()).decode()
        if self.headers.get("authorization") != wanted:
            self.answer({}, 401)
            return False
        return True
    def say(self, kind, **properties):
        self.wfile.write(f"data: {json.dumps({'type': kind, 'properties': properties})}\\n\\n".encode())
        self.wfile.flush()
    def do_GET(self):
        if not self.allowed():
            return
        if self.path != "/event":
            return self.answer({"data": {"message": "no such session"}}, 404)
        self.send_response(200)
        self.end_headers()
        started.wait()
        self.say("session.status", sessionID="ses_1", status={"type": "busy"})
        self.say("permission.asked", id="per_1", sessionID="ses_1", permission="bash", patterns=["npm test"],
                 metadata={"command": "npm test"}, tool={"callID": "call_1"})
        if os.path.exists("cheats"):
            self.say("permission.replied", sessionID="ses_1", requestID="per_1", reply="once")
        replied.wait()
        self.say("permission.replied", sessionID="ses_1", requestID="per_1", reply="once")
        finish = {"id": "p1", "type": "step-finish", "sessionID": "ses_1", "reason": "stop",
                  "tokens": {"input": 1, "output": 2, "cache": {"read": 0}}, "cost": 0.5}
        self.say("message.part.updated", part=finish)
        self.say("session.idle", sessionID="ses_1")
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.allowed():
            return
        if self.path.endswith("/reply"):
            open("said", "w").write(json.dumps([self.path, json.loads(body)]))
            replied.set()
        if self.path.endswith("/prompt_async"):
            open("prompt", "wb").write(body)
            started.set()
        if self.path.endswith("/abort"):
            open("aborted", "w").close()
        self.answer({"id": "ses_1"})
started = threading.Event()
server = ThreadingHTTPServer(("127.0.0.1", 0), Visit)
server.daemon_threads = True
print(f"opencode server listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
"""

PROGRAMS = {"claude-code": ("claude", CLAUDE), "codex": ("codex", CODEX), "opencode": ("opencode", OPENCODE)}
