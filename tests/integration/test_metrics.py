# SPDX-License-Identifier: Apache-2.0
"""Metrics: that their text is OpenMetrics, by a second tool's reading too, and that it adds up with what was done."""

import json
import os
import re
import stat
import subprocess
import sys
import threading
import unittest

import harness

try:
    from prometheus_client.openmetrics import parser
except ImportError:
    parser = None

WORKER = """
local troupe = require "troupe"
local Worker = troupe.actor "Worker"
function Worker.on:add(n)
  return n + 1
end
function Worker.on:fault()
  error("it broke")
end
function Worker.async:nap()
  troupe.await(troupe.sleep(20))
end
return Worker
"""

BROKEN = """
local troupe = require "troupe"
local Broken = troupe.actor "Broken"
function Broken:init()
  error("no start")
end
return Broken
"""

FILES = {"worker.lua": WORKER, "broken.lua": BROKEN}

META = re.compile(r"# (TYPE|UNIT|HELP) (troupe_[a-z_]+) (.+)")
SAMPLE = re.compile(r'(troupe_[a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"')
SUFFIXES = {"gauge": [""], "counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"], "info": ["_info"]}


def read(text):
    """The samples of a text, {(name, labels): number}, after a look at all that the format asks for."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-2:]
    samples, seen, family, metas = {}, set(), None, {}
    for line in lines[:-2]:
        meta = META.fullmatch(line)
        if meta:
            if meta[2] != family:
                assert meta[1] == "TYPE" and meta[2] not in seen, line
                family, metas = meta[2], {}
                seen.add(family)
            assert meta[1] not in metas, line
            metas[meta[1]] = meta[3]
            if meta[1] == "UNIT":
                assert family.endswith("_" + meta[3]), line
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        assert "HELP" in metas and sample[1] in [family + suffix for suffix in SUFFIXES[metas["TYPE"]]], line
        key = sample[1], tuple(LABEL.findall(sample[2] or ""))
        assert key not in samples, line
        samples[key] = float(sample[3])
    return samples


class Metrics(unittest.TestCase):
    config = {}

    def setUp(self):
        self.daemon = harness.Daemon(files=FILES, config=self.config)
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def text(self):
        return self.client.request("metrics")

    def samples(self):
        return read(self.text())

    def pool(self, name="adders", actor="worker", **options):
        return self.client.request("pool", name, actor, [], {"backoff": {"min": "1ms", "max": "2ms"}, **options})

    def running(self, name="adders"):
        return self.client.request("info", name)["running"]

    def test_the_names(self):
        self.pool(workers=2)
        names = {name for name, _ in self.samples()}
        pools = {"size", "running", "messages_total", "faults_total", "restarts_total", "mailbox_depth",
                 *(f"{what}_seconds_{part}" for what in ("wait", "run") for part in ("bucket", "count", "sum"))}
        self.assertLessEqual({f"troupe_pool_{name}" for name in pools}, names)
        self.assertLessEqual({"troupe_actors", "troupe_connections", "troupe_messages_total", "troupe_heap_bytes",
                              "troupe_events_dropped_total", "troupe_spans_total", "troupe_spans_dropped_total", "troupe_build_info"}, names)

    @unittest.skipUnless(parser, "prometheus_client (python3-prometheus-client) is not installed")
    def test_a_second_tool_reads_the_same(self):
        self.pool(workers=2)
        for n in range(10):
            self.client.request("ask", "adders", "add", [n])
        text = self.text()
        theirs = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                  for family in parser.text_string_to_metric_families(text) for sample in family.samples}
        ours = {(name, tuple(sorted(labels))): value for (name, labels), value in read(text).items()}
        self.assertEqual(theirs, ours)
        self.assertGreater(len(theirs), 40)

    def test_they_add_up_with_what_was_sent(self):
        self.pool(workers=4)
        while self.running() < 4:
            pass
        asked = [self.client.start("ask", "adders", "add", [n]) for n in range(200)]
        self.assertEqual(list(range(1, 201)), [self.client.finish(sent) for sent in asked])
        for _ in range(3):
            with self.assertRaises(harness.Error):
                self.client.request("ask", "adders", "fault", [])
        self.client.request("ask", "adders", "nap", [])
        for _ in range(5):
            self.client.request("send", "adders", "add", [1])
        while self.running() < 4 or self.samples()["troupe_pool_run_seconds_count", (("pool", "adders"),)] < 209:
            pass
        samples, pool = self.samples(), (("pool", "adders"),)
        self.assertEqual({"size": 4, "running": 4, "messages_total": 209, "faults_total": 3, "restarts_total": 3, "given_up": 0,
                          "queue_depth": 0, "wait_seconds_count": 209, "run_seconds_count": 209},
                         {name: samples[f"troupe_pool_{name}", pool] for name in
                          ("size", "running", "messages_total", "faults_total", "restarts_total", "given_up", "queue_depth",
                           "wait_seconds_count", "run_seconds_count")})
        self.assertEqual([f"w-{n}" for n in range(1, 5)],
                         sorted(dict(labels)["worker"] for name, labels in samples if name == "troupe_pool_mailbox_depth"))
        self.assertGreaterEqual(samples["troupe_pool_run_seconds_sum", pool], 0.02)
        for what in ("wait", "run"):
            buckets = [samples[key] for key in samples if key[0] == f"troupe_pool_{what}_seconds_bucket"]
            self.assertEqual(sorted(buckets), buckets)
            self.assertEqual(209, buckets[-1])

    def test_a_slot_that_is_given_up(self):
        with harness.Daemon(files=FILES, config={"pools": [{"name": "broken", "actor": "broken", "workers": 1,
                                                            "backoff": {"min": "1ms", "max": "1ms"}}]}) as daemon, \
                harness.Client(daemon.socket) as client:
            while read(client.request("metrics"))["troupe_pool_given_up", (("pool", "broken"),)] != 1:
                pass
            self.assertEqual(1, client.request("info", "broken")["given_up"])

    def test_the_daemons_own(self):
        before = self.samples()
        self.assertEqual(1, before["troupe_connections", ()])
        self.assertEqual(0, before["troupe_actors", ()])
        self.assertEqual(0, before["troupe_events_dropped_total", ()])
        version = subprocess.run([str(harness.BUILD / "trouped"), "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
        self.assertEqual(1, before["troupe_build_info", (("version", version),)])
        handle = self.client.request("spawn", "worker", [])
        for n in range(50):
            self.client.request("ask", handle, "add", [n])
        with harness.Client(self.daemon.socket):
            during = self.samples()
        self.assertEqual(2, during["troupe_connections", ()])
        self.assertEqual(1, during["troupe_actors", ()])
        self.assertGreater(during["troupe_heap_bytes", ()], 1000)
        self.assertEqual(51, during["troupe_messages_total", ()] - before["troupe_messages_total", ()])
        self.client.request("stop", handle)
        self.client.request("done", handle)
        after = self.samples()
        self.assertEqual(0, after["troupe_actors", ()])
        self.assertGreaterEqual(after["troupe_messages_total", ()], during["troupe_messages_total", ()])

    def test_refused(self):
        handle = self.client.request("spawn", "worker", [])
        for _ in range(3):
            with self.assertRaises(harness.Error):
                self.client.request("ask", handle, "none", [])
        self.assertEqual({("code", "no-such-handler"): 3},
                         {labels[0]: value for (name, labels), value in self.samples().items() if name == "troupe_refused_total"})


class Components(unittest.TestCase):
    """Those of components: two operations, whoever serves them."""
    config = {}
    setUp = Metrics.setUp
    samples, text = Metrics.samples, Metrics.text

    manifest = {"name": "shop", "queue": 4, "module": "shop", "replicas": 2, "operations": {
        "sell": {"errors": ["SOLD_OUT"]},
        "count": {"input": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "watch": {"stateful": True}}}
    module = """
local ops = {}
function ops.sell(input, context)
  if input.soldout then return context.error "SOLD_OUT" end
  if input.broken then error "it broke" end
  return input
end
function ops.count(input) return input.n end
function ops.watch(input)
  local heap = {}
  while true do heap[#heap + 1] = string.rep("x", 2^20) .. #heap end
end
return { operations = ops }
"""

    def declare(self, **changes):
        (self.daemon.directory / "lua" / "shop.lua").write_text(self.module)
        self.client.request("component", {**self.manifest, **changes})

    def refuse(self, code, operation, value, **options):
        with self.assertRaises(harness.Error) as caught:
            self.client.request("call", "shop", operation, value, options)
        self.assertEqual(code, caught.exception.code)

    def one(self, what, operation, component="shop", samples=None):
        return (samples or self.samples())[f"troupe_component_{what}", (("component", component), ("operation", operation))]

    def refused(self):
        return {(dict(labels).get("operation"), dict(labels)["code"]): value
                for (name, labels), value in self.samples().items() if name == "troupe_component_refused_total"}

    def test_they_add_up_with_what_was_called(self):
        self.declare()
        for n in range(20):
            self.assertEqual(n, self.client.request("call", "shop", "count", {"n": n}))
        self.client.request("call", "shop", "sell", {})
        for _ in range(3):
            self.refuse("fault", "sell", {"broken": True})
        self.refuse("refused", "sell", {"soldout": True})
        samples = self.samples()
        for operation, expected in {"count": {"messages_total": 20, "faults_total": 0, "run_seconds_count": 20},
                                    "sell": {"messages_total": 5, "faults_total": 3, "run_seconds_count": 5},
                                    "watch": {"messages_total": 0, "faults_total": 0, "run_seconds_count": 0}}.items():
            expected = {"size": 2, "mailbox_depth": 0, "restarts_total": 0, "redelivered_total": 0, "late_total": 0,
                        "wait_seconds_count": expected["run_seconds_count"], **expected}
            self.assertEqual(expected, {what: self.one(what, operation, samples=samples) for what in expected}, operation)
            for what in ("wait", "run"):
                buckets = [value for (name, labels), value in samples.items()
                           if name == f"troupe_component_{what}_seconds_bucket" and ("operation", operation) in labels]
                self.assertEqual(sorted(buckets), buckets)
                self.assertEqual(expected["run_seconds_count"], buckets[-1])

    def test_what_was_refused_and_why(self):
        self.declare(module=None)
        self.refuse("contract", "count", {"n": "one"})
        self.refuse("contract", "watch", {})
        self.refuse("addressee", "watch", {}, instance="nobody")
        for name in ("one", "other"):
            self.refuse("not-found", name, {})
        self.refuse("timeout", "sell", {}, timeout=1)
        asked = [self.client.start("call", "shop", "sell", {}) for _ in range(4)]
        self.refuse("mailbox-full", "sell", {})
        self.assertEqual((4, 0), (self.one("mailbox_depth", "sell"), self.one("mailbox_depth", "count")))
        self.assertTrue(self.client.request("cancel", asked[0]))
        self.assertEqual(3, self.one("mailbox_depth", "sell"))
        self.assertEqual({("count", "contract"): 1, ("watch", "contract"): 1, ("watch", "addressee"): 1, (None, "not-found"): 2,
                          ("sell", "timeout"): 1, ("sell", "mailbox-full"): 1, ("sell", "cancelled"): 1}, self.refused())
        self.assertEqual((5, 0), (self.one("messages_total", "sell"), self.one("run_seconds_count", "sell")))

    def test_no_label_is_made_up_by_callers(self):
        self.declare(module=None)
        before = {labels for _, labels in self.samples()}
        for n in range(50):
            self.refuse("not-found", f"made-up-{n}", {})
        self.assertEqual({(("component", "shop"), ("code", "not-found"))}, {labels for _, labels in self.samples()} - before)

    def test_replicas_that_are_started_again(self):
        self.declare(replicas=[{"instance": "left"}, {"instance": "right"}], heap="8M")
        while self.one("running", "watch") < 2:
            pass
        self.refuse("abandoned", "watch", {}, instance="left", timeout="60s")
        while self.one("restarts_total", "sell") < 1 or self.one("running", "watch") < 2:
            pass
        self.assertEqual(1, self.one("restarts_total", "watch"))

    def test_processes_that_are_started_again(self):
        worker = """
import msgpack, os, socket
connection = socket.socket(fileno=int(os.environ["TROUPE_FD"]))
connection.sendall(msgpack.packb([0, 1, "serve", ["shop"]]))
unpacker = msgpack.Unpacker(raw=False)
while True:
    unpacker.feed(connection.recv(4096))
    for frame in unpacker:
        if frame[0] == 0:
            os._exit(0)
"""
        (self.daemon.directory / "worker.py").write_text(worker)
        self.declare(module=None, replicas=None, deliveries=1, process={
            "command": [sys.executable, str(self.daemon.directory / "worker.py")], "replicas": 1})
        self.assertEqual(1, self.one("size", "sell"))
        self.refuse("undeliverable", "sell", {})
        while self.one("restarts_total", "sell") < 1:
            pass
        self.assertEqual({("sell", "undeliverable"): 1}, self.refused())

    def test_connections_serve_what_they_say(self):
        self.declare(module=None)
        with harness.Client(self.daemon.socket) as server:
            server.request("serve", "shop", {"operations": ["count", "watch"]})
            samples = self.samples()
            self.assertEqual([0, 1, 1], [self.one("running", what, samples=samples) for what in ("sell", "count", "watch")])
        while self.one("running", "count") > 0:
            pass

    def test_figures_outlive_another_manifest(self):
        config = json.loads(self.daemon.config.read_text())

        def reload(manifest):
            self.daemon.config.write_text(json.dumps({**config, "components": [manifest]}))
            self.client.request("reload")
        (self.daemon.directory / "lua" / "shop.lua").write_text(self.module)
        reload(self.manifest)
        self.client.request("call", "shop", "count", {"n": 1})
        self.refuse("not-found", "none", {})
        reload({**self.manifest, "operations": {name: self.manifest["operations"][name] for name in ("watch", "count")}})
        samples = self.samples()
        self.assertEqual(1, self.one("messages_total", "count", samples=samples))
        self.assertNotIn("sell", {dict(labels).get("operation") for _, labels in samples})
        self.assertEqual({(None, "not-found"): 1}, self.refused())

    @unittest.skipUnless(parser, "prometheus_client (python3-prometheus-client) is not installed")
    def test_a_second_tool_reads_the_same(self):
        self.declare()
        self.client.request("call", "shop", "count", {"n": 1})
        self.refuse("not-found", "none", {})
        theirs = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                  for family in parser.text_string_to_metric_families(self.text()) for sample in family.samples}
        self.assertIn(("troupe_component_refused_total", (("code", "not-found"), ("component", "shop"))), theirs)


class Command(unittest.TestCase):
    setUp = Metrics.setUp
    config = {}

    def troupe(self, *words, code=0):
        done = subprocess.run([str(harness.BUILD / "troupe"), "-S", self.daemon.socket, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual((code, ""), (done.returncode, done.stderr if code == 0 else ""))
        return done.stdout if code == 0 else done.stderr

    def test_it_is_printed_as_it_is(self):
        printed = self.troupe("metrics")
        self.assertEqual(0, read(printed)["troupe_actors", ()])
        self.assertTrue(printed.endswith("\n# EOF\n"))

    def test_a_file_is_replaced_in_one_step(self):
        path = self.daemon.directory / "troupe.prom"
        path.write_text("# EOF\n")
        path.chmod(0o640)
        over, seen = threading.Event(), []

        def look():
            while not over.is_set():
                seen.append(path.read_text())
        reader = threading.Thread(target=look)
        reader.start()
        for _ in range(20):
            self.troupe("metrics", "--write", str(path))
        over.set()
        reader.join()
        for text in set(seen):
            read(text)
        self.assertEqual(0, read(path.read_text())["troupe_actors", ()])
        self.assertEqual(0o640, stat.S_IMODE(path.stat().st_mode))
        self.assertEqual(["troupe.prom"], [entry.name for entry in self.daemon.directory.glob("troupe.prom*")])

    def test_a_new_file_is_what_new_files_are(self):
        path = self.daemon.directory / "new.prom"
        mask = os.umask(0o027)
        try:
            self.troupe("metrics", "--write", str(path))
        finally:
            os.umask(mask)
        self.assertEqual(0o640, stat.S_IMODE(path.stat().st_mode))

    def test_a_file_that_cannot_be(self):
        missing = self.daemon.directory / "missing" / "file"
        self.assertEqual(f"troupe: metrics: {missing}: No such file or directory\n", self.troupe("metrics", "--write", str(missing), code=1))
        folder = self.daemon.directory / "folder"
        folder.mkdir()
        self.assertEqual(f"troupe: metrics: {folder}: Is a directory\n", self.troupe("metrics", "--write", str(folder), code=1))
        self.assertEqual([folder], list(self.daemon.directory.glob("folder*")))


if __name__ == "__main__":
    unittest.main()
