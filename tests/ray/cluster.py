"""A Ray cluster of several raylets on this machine, for end-to-end tests.

    cluster.py NODES CPUS            NODES raylets with CPUS each; prints its address; then obeys lines of standard input:
                                     `kill ID` (SIGKILL to the raylet of that node and to all that it started)
    cluster.py autoscaled MAX CPUS   a head without cores, and Ray's autoscaler, which starts up to MAX raylets on demand

Everything ends with standard input."""
import json, os, signal, socket, subprocess, sys, time
import ray
from ray.cluster_utils import Cluster

def little():
    """A node's parameters. With ports of its own a raylet does not wait until its agents have found some, which it does for 15 s and then
    ends: too few on a busy machine."""
    held = [socket.create_server(("", 0)) for _ in range(4)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    names = ("dashboard_agent_listen_port", "runtime_env_agent_port", "metrics_agent_port", "metrics_export_port")
    return {"object_store_memory": 80 << 20, **dict(zip(names, ports))}

def below(pid):
    """The process and all that it started."""
    parents = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents.setdefault(int(open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[1]), []).append(int(p))
        except OSError:
            pass
    found = [pid]
    for p in found:
        found += parents.get(p, [])
    return found

def end(pid):
    """All of them at once, as when a machine loses its power: none sees another one go."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for p in below(pid):
            try:
                os.kill(p, number)
            except ProcessLookupError:
                pass

def fixed(n, cpus):
    c = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, "include_dashboard": False, **little()})
    nodes = [c.head_node] + [c.add_node(num_cpus=cpus, **little()) for _ in range(n - 1)]
    print(c.address, flush=True)
    for line in sys.stdin:
        what, *rest = line.split()
        if what == "kill":
            node = next(n for n in nodes if n.node_id == rest[0])
            pid = node.all_processes[ray._private.ray_constants.PROCESS_TYPE_RAYLET][0].process.pid
            end(pid)
            c.remove_node(node, allow_graceful=False)
        print("done", flush=True)
    c.shutdown()

def autoscaled(most, cpus):
    """Ray's AutoscalingCluster would first end every Ray process of the machine."""
    kinds = {"ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
             "board": {"resources": {"CPU": cpus, "object_store_memory": 80 << 20}, "node_config": {}, "min_workers": 0, "max_workers": most}}
    config = {"cluster_name": "boards", "max_workers": most, "upscaling_speed": 1.0, "idle_timeout_minutes": 0.1, "docker": {}, "auth": {},
              "provider": {"type": "fake_multinode", "use_node_id_as_ip": True, "disable_node_updaters": True, "disable_launch_config_check": True},
              "available_node_types": kinds, "head_node_type": "ray.head.default", "file_mounts": {}, "cluster_synced_files": [], "file_mounts_sync_continuously": False,
              "rsync_exclude": [], "rsync_filter": [], "initialization_commands": [],
              "setup_commands": [], "head_setup_commands": [], "worker_setup_commands": [], "head_start_ray_commands": [],
              "worker_start_ray_commands": []}
    path = os.path.join(os.environ["RAY_TMPDIR"], "autoscaling.json")
    json.dump(config, open(path, "w"))
    port = 6379  # the provider of local nodes knows no other
    ports = [f"--{k.replace('_', '-')}={v}" for k, v in little().items() if k in ("dashboard_agent_listen_port", "runtime_env_agent_port", "metrics_export_port")]
    head = subprocess.Popen(["ray", "start", "--head", "--block", f"--port={port}", f"--autoscaling-config={path}", "--num-cpus=0",
                             f"--object-store-memory={80 << 20}", "--include-dashboard=false", *ports], stdout=sys.stderr,
                            env=os.environ | {"AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1"})
    for _ in range(1800):
        try:
            address = f"{ray.util.get_node_ip_address()}:{port}"
            ray.init(address=address, log_to_driver=False, logging_level="error")
            break
        except (ConnectionError, RuntimeError):
            if head.poll() is not None:
                sys.exit("the head has ended")
            time.sleep(0.5)
    ray.shutdown()
    print(address, flush=True)
    sys.stdin.read()
    end(head.pid)

if sys.argv[1] == "autoscaled":
    autoscaled(int(sys.argv[2]), float(sys.argv[3]))
else:
    fixed(int(sys.argv[1]), float(sys.argv[2]))
