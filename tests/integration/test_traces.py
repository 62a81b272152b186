# SPDX-License-Identifier: Apache-2.0
"""Traces of calls: which spans they leave, who sees them, and the file that they are written to."""

import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import harness
import service
import stranger

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"

COMPONENTS = [
    {"name": "shop.order", "operations": {"place": {}, "fail": {"errors": ["SOLD_OUT"]}, "break_it": {}, "die": {}}},
    {"name": "shop.stock", "operations": {"take": {}}},
]


class Worker:
    """Serves components over a connection of its own, one call at a time. `on` answers a call, given this, operation, input and context; an
    error by raising Refusal."""

    def __init__(self, path, component, on, **options):
        self.client = harness.Client(path)
        self.on = on
        self.instance = self.client.request("serve", component, options)["instance"]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            frame = self.client.notifications.popleft() if self.client.notifications else self.client.receive()
            if frame is None:
                return
            if frame[0] != 0:
                continue
            _, msgid, _, (operation, value, context) = frame
            error, result = None, None
            try:
                result = self.on(self, operation, value, context)
            except Refusal as refusal:
                error = refusal.args[0]
            if self.client.socket.fileno() < 0:
                return
            self.client.send(harness.msgpack.packb([1, msgid, error, result]))

    def close(self):
        # whoever waits in another thread for what comes is woken by this, and not by a close
        try:
            self.client.socket.shutdown(2)
        except OSError:
            pass
        self.thread.join(harness.TIMEOUT_SECONDS)
        self.client.close()


class Refusal(Exception):
    pass


def order(worker, operation, value, context):
    if operation == "fail":
        raise Refusal("SOLD_OUT")
    if operation == "break_it":
        raise Refusal(["it broke", {"why": 1}])
    if operation == "die" and context["attempt"] == 1:
        worker.client.socket.shutdown(2)
        worker.client.socket.close()
        return None
    if operation == "place":
        return [context["trace"], worker.client.request("call", "shop.stock", "take", value, {"trace": context["trace"]})]
    return context["attempt"]


def stock(worker, operation, value, context):
    return context["trace"]


class Traces(unittest.TestCase):
    config = {}

    def setUp(self):
        self.daemon = harness.Daemon(config={"components": COMPONENTS, **self.config})
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.request = self.client.request
        self.serve("shop.stock", stock, instance="left")
        self.serve("shop.order", order, instance="desk")

    def serve(self, component, on, **options):
        worker = Worker(self.daemon.socket, component, on, **options)
        self.addCleanup(worker.close)
        return worker

    def failure(self, *call):
        with self.assertRaises(harness.Error) as failed:
            self.request("call", *call)
        return failed.exception


class Spans(Traces):
    def test_a_chain_is_one_trace(self):
        before = datetime.datetime.now(datetime.timezone.utc)
        own, inner = self.request("call", "shop.order", "place", 1, {"trace": TRACEPARENT})
        after = datetime.datetime.now(datetime.timezone.utc)
        # It passes to the operation, and to what that calls: the same trace, each call a span of its own.
        self.assertRegex(own, f"^00-{TRACE}-[0-9a-f]{{16}}-01$")
        self.assertRegex(inner, f"^00-{TRACE}-[0-9a-f]{{16}}-01$")
        self.assertEqual(len({TRACEPARENT, own, inner}), 3)

        spans = self.request("trace", {"id": TRACE})
        self.assertEqual([span["span"] for span in spans], [own.split("-")[2], inner.split("-")[2]])
        self.assertEqual([span["parent"] for span in spans], [CALLER, own.split("-")[2]])
        self.assertEqual([(span["component"], span["operation"], span["instance"]) for span in spans],
                         [("shop.order", "place", "desk"), ("shop.stock", "take", "left")])
        for span in spans:
            self.assertEqual((span["trace"], span["outcome"], span["attempt"]), (TRACE, "ok", 1))
            self.assertEqual(span["caller"], {"uid": os.getuid(), "pid": os.getpid()})
            began = datetime.datetime.fromisoformat(span["began"].replace("Z", "+00:00"))
            self.assertLess(before - datetime.timedelta(milliseconds=5), began)
            self.assertLess(began, after + datetime.timedelta(milliseconds=5))
            self.assertLessEqual(0, span["queued"])
            self.assertLess(0, span["run"])
            self.assertNotIn("message", span)
        self.assertLessEqual(spans[0]["began"], spans[1]["began"])
        # who calls waits for the other
        self.assertLess(spans[1]["run"], spans[0]["run"])
        self.assertEqual(self.request("trace", {"id": inner}), spans)

    def test_a_call_without_a_trace_begins_one(self):
        traces = {self.request("call", "shop.stock", "take", 1).split("-")[1] for _ in range(3)}
        self.assertEqual(len(traces), 3)
        spans = self.request("trace")
        self.assertEqual({span["trace"] for span in spans}, traces)
        for span in spans:
            self.assertNotIn("parent", span)
            self.assertNotEqual(span["trace"], "0" * 32)
        self.assertEqual(self.request("trace", {"limit": 2}), spans[1:])

    def test_how_it_ended(self):
        self.assertEqual(self.failure("shop.order", "fail", None).code, "refused")
        self.assertEqual(self.failure("shop.order", "break_it", None).code, "fault")
        self.assertEqual(self.failure("shop.order", "die", None, {"timeout": 1}).code, "timeout")
        self.assertEqual([(span["operation"], span["outcome"]) for span in self.request("trace")],
                         [("fail", "refused"), ("break_it", "fault"), ("die", "timeout")])
        self.assertIn("it broke", self.request("trace")[1]["message"])

    def test_another_attempt_is_the_same_span(self):
        self.serve("shop.order", order, instance="other")
        # whichever of the two has it first dies
        self.assertEqual(self.request("call", "shop.order", "die", None), 2)
        (span,) = self.request("trace")
        self.assertEqual((span["operation"], span["outcome"], span["attempt"]), ("die", "ok", 2))
        self.assertIn(span["instance"], ("desk", "other"))

    def test_who_subscribed_is_told(self):
        watcher = harness.Client(self.daemon.socket)
        self.addCleanup(watcher.close)
        watcher.request("subscribe", "trace")
        self.request("call", "shop.order", "place", 1, {"trace": TRACEPARENT})
        events = {}
        while len(events) < 2:
            kind, method, (topic, event) = watcher.receive()
            self.assertEqual((kind, method, topic), (2, "event", "trace"))
            self.assertRegex(event.pop("time"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
            events[event["component"]] = event
        self.assertEqual([events["shop.order"], events["shop.stock"]], self.request("trace"))

    def test_the_command_draws_a_tree(self):
        self.request("call", "shop.order", "place", 1, {"trace": TRACEPARENT})
        command = [str(harness.BUILD / "troupe"), "-S", self.daemon.socket, "trace", TRACE]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_SECONDS).stdout
        one, other = printed.splitlines()
        caller = re.escape(f"(uid {os.getuid()}, pid {os.getpid()})")
        self.assertRegex(one, rf"^[\d:.]{{12}} shop\.order\.place\[desk\]: ok, [\d.]+ ms queued, [\d.]+ ms run {caller}$")
        self.assertRegex(other, rf"^[\d:.]{{12}}   shop\.stock\.take\[left\]: ok, [\d.]+ ms queued, [\d.]+ ms run {caller}$")
        printed = subprocess.run([*command, "-j"], check=True, stdout=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_SECONDS).stdout
        self.assertEqual(json.loads(printed), self.request("trace", {"id": TRACE}))


MODULES = {
    "desk.lua": """
        local troupe = require "troupe"
        local ops = {}
        function ops.place(input, context) return { context.trace, troupe.await(context.call("shop.stock", "take", input)) } end
        return { operations = ops }
    """,
    "shelf.lua": "return { operations = { take = function(input, context) return context.trace end } }",
}


class InLua(unittest.TestCase):
    def test_a_chain_is_one_trace(self):
        components = [{"name": "shop.order", "module": "desk", "operations": {"place": {}}},
                      {"name": "shop.stock", "module": "shelf", "operations": {"take": {}}}]
        with harness.Daemon(files=MODULES, config={"components": components}) as daemon, harness.Client(daemon.socket) as client:
            own, inner = client.request("call", "shop.order", "place", 1, {"trace": TRACEPARENT})
            first, second = client.request("trace")
            self.assertEqual([f"00-{TRACE}-{span['span']}-01" for span in (first, second)], [own, inner])
            self.assertEqual([first["parent"], second["parent"]], [CALLER, first["span"]])
            self.assertEqual((first["caller"]["pid"], second["outcome"]), (os.getpid(), "ok"))


@unittest.skipUnless(stranger.is_possible, "only root can be somebody else")
class OfOthers(Traces):
    def test_with_the_role_call_one_sees_ones_own(self):
        stranger.admit(self.daemon)
        self.request("call", "shop.stock", "take", 1, {"trace": TRACEPARENT})
        you, answers = stranger.ask(self.daemon, [("call", "shop.stock", "take", 2), ("trace",), ("trace", {"id": TRACE})], user=12345)
        self.assertEqual([(span["component"], span["caller"]["uid"]) for span in answers[1]], [("shop.stock", 12345)])
        self.assertEqual(answers[2], [])
        self.assertEqual([span["caller"]["uid"] for span in self.request("trace")], [os.getuid(), 12345])


def attributes(of):
    """Attributes as OTLP's JSON has them, each once, its value of one type; 64-bit numbers are text."""
    result = {}
    for attribute in of["attributes"]:
        assert set(attribute) == {"key", "value"} and attribute["key"] not in result, attribute
        ((kind, value),) = attribute["value"].items()
        assert isinstance(value, str) and kind in ("stringValue", "intValue"), attribute
        result[attribute["key"]] = int(value) if kind == "intValue" else value
    return result


class File(Traces):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "spans.jsonl"
        self.config = {"trace": {"file": str(self.file)}}
        super().setUp()

    def spans(self):
        """What is in the file, whose every line is an export request with one span."""
        for line in self.file.read_text().splitlines():
            ((key, (of_resource,)),) = json.loads(line).items()
            self.assertEqual((key, set(of_resource)), ("resourceSpans", {"resource", "scopeSpans"}))
            self.assertEqual(attributes(of_resource["resource"])["service.name"], "trouped")
            self.assertEqual(attributes(of_resource["resource"])["process.pid"], self.daemon.pid)
            (of_scope,) = of_resource["scopeSpans"]
            self.assertEqual((set(of_scope), of_scope["scope"]["name"]), ({"scope", "spans"}, "trouped"))
            (span,) = of_scope["spans"]
            yield span

    def test_each_call_is_a_line_of_otlp(self):
        self.request("call", "shop.order", "place", 1, {"trace": TRACEPARENT})
        self.failure("shop.order", "break_it", None, {"trace": TRACEPARENT})
        known = {span["span"]: span for span in self.request("trace")}
        self.client.request("shutdown")
        self.assertEqual(self.daemon.wait(), 0)
        written = list(self.spans())
        self.assertEqual({span["spanId"] for span in written}, set(known))
        self.assertEqual(len(written), 3)
        for span in written:
            same = known[span["spanId"]]
            self.assertEqual((span["traceId"], span["parentSpanId"], span["kind"], span["flags"]), (TRACE, same["parent"], 2, 1))
            self.assertEqual(span["name"], same["component"] + "/" + same["operation"])
            self.assertRegex(span["startTimeUnixNano"], r"^\d{19}$")
            self.assertRegex(span["endTimeUnixNano"], r"^\d{19}$")
            told = attributes(span)
            began, ended = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
            self.assertEqual(ended - began, told["troupe.queued_ns"] + told["troupe.run_ns"])
            self.assertEqual(told["troupe.run_ns"] // 1000, round(same["run"] * 1000))
            when = datetime.datetime.fromtimestamp(began // 10**9, datetime.timezone.utc)
            self.assertEqual(when.strftime("%Y-%m-%dT%H:%M:%S"), same["began"][:19])
            self.assertEqual({key: value for key, value in told.items() if not key.endswith("_ns")},
                             {"rpc.system": "troupe", "rpc.service": same["component"], "rpc.method": same["operation"],
                              "troupe.instance": same["instance"], "troupe.caller.uid": os.getuid(), "troupe.caller.pid": os.getpid(),
                              "troupe.attempt": 1, "troupe.outcome": same["outcome"]})
            if same["outcome"] == "ok":
                self.assertEqual(span["status"], {"code": 1})
            else:
                self.assertEqual(span["status"], {"code": 2, "message": same["message"]})


class NoFile(unittest.TestCase):
    def test_a_file_that_cannot_be_written_keeps_the_daemon_from_starting(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, folder)
        config = folder / "trouped.json"
        for name, why in (("none/spans.jsonl", "No such file or directory"), (".", "Is a directory"), ("/dev/null", "is no regular file")):
            config.write_text(json.dumps({"components": [], "store": {"path": "troupe.db"}, "trace": {"file": name}}))
            code, out, errors = service.run("-c", config, "-S", folder / "troupe.sock")
            self.assertEqual((code, out), (78, ""))
            self.assertIn(f"{config}:1: trace.file: {os.path.join(folder, name)} cannot be written: {why}", errors)


if __name__ == "__main__":
    unittest.main()
