"""What deploy/ray decides without Ray: its specification and its numbers of workers.

    test_pure.py FOLDER      a folder of deploy/kubernetes/certificates.sh"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy/ray"))
from shoal_ray import scaling, spec

shipped = Path(__file__).parents[2] / "deploy/ray/cluster.yaml"
tls = Path(sys.argv[1])
text = shipped.read_text().replace("tls: tls ", f"tls: {tls} ")
s = spec.parse(text, Path("."))
assert s.models["home-chat-s"].most == 4 and s.models["home-intent"].most == 1 and s.gateways.replicas == 2
assert s.tls.worker_key != s.tls.gateway_key

def refuses(why, change):
    bad = change(text)
    assert bad != text, why
    try:
        spec.parse(bad, Path("."))
    except spec.SpecError as e:
        assert why in str(e), f"{why!r} is not in {str(e)!r}"
        return
    raise AssertionError(f"taken, though {why}")

refuses("models.home-chat-s.mni: is no key", lambda t: t.replace("    min: 1\n    max", "    mni: 1\n    max"))
refuses("models.home-chat-s.max: must be of type int", lambda t: t.replace("max: 4", "max: many"))
refuses("models.home-chat-s.max: must be of type int", lambda t: t.replace("max: 4", "max: true"))
refuses("0 <= min <= max", lambda t: t.replace("max: 4", "max: 4\n    min: 5").replace("    min: 1\n    max", "    max"))
refuses("may be 0 only with `target`", lambda t: t.replace("home-intent.gguf\n    min: 1", "home-intent.gguf\n    min: 0\n    max: 2"))
refuses("models.home-intent.path: is required", lambda t: t.replace("    path: /usr/local/share/shoal/models/home-intent.gguf\n", ""))
refuses("group: must be one of", lambda t: t.replace("target: 4", "group: NEAR\n    target: 4"))
refuses("gateways.config.discovery: is not for this file", lambda t: t.replace("config: {}", "config: {discovery: {}}"))
refuses("worker/tls.crt: No such file", lambda t: t.replace(str(tls), "/nowhere"))
refuses("ports: must be", lambda t: t + "ports: 9-8\n")
refuses("modles: is no key", lambda t: t.replace("\nmodels:", "\nmodles:"))
refuses("not YAML", lambda t: t + "}")

# Other workers are needed for another file; not for other bounds.
chat = lambda t: spec.parse(t, Path(".")).models["home-chat-s"].digest
assert chat(text) == chat(text.replace("max: 4", "max: 9")) == chat(text.replace("down_s: 60", "down_s: 1"))
assert chat(text) != chat(text.replace("home-chat-s.gguf", "home-chat-m.gguf")) and chat(text) != chat(text.replace("threads: 2", "threads: 1"))

metrics = '''shoal_model_running{model="a"} 3
shoal_model_queue{model="a"} 5
shoal_model_calls_held{model="a"} 2
shoal_model_queue{model="b"} 1
shoal_model_kv_usage_ratio{model="a"} 0.5
'''
loads = scaling.loads_of(metrics)
assert loads == {"a": scaling.Load(3, 5, 2), "b": scaling.Load(0, 1, 0)}
# Two gateways see the same workers (3 run, 3 wait there), and hold calls of their own (2 and 4).
assert scaling.under_way([scaling.Load(3, 5, 2), scaling.Load(3, 7, 4)]) == 12
assert scaling.under_way([]) == 0

at = scaling.Scaler(low=0, high=4, target=2, down_s=60)
assert at.wanted(0, 0) == 0
assert at.wanted(1, 1) == 1
assert at.wanted(2, 5) == 3                 # up at once
assert at.wanted(3, 100) == 4               # not above the most
assert at.wanted(62, 1) == 4                # down only when less was wanted for down_s
assert at.wanted(63.5, 1) == 1
assert at.wanted(200, 0) == 0
print("the specification and the numbers of workers are right")
