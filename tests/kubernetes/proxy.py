"""A stand-in for kube-proxy: each Service's cluster address is one of this network namespace's, and its connections go to a random
ready endpoint (where none is, to one that is still serving though it ends). Connections stay where they are. TCP alone."""
import asyncio, random, subprocess, sys
import api

services, slices = {}, {}
listening = {}
connections = set() # the event loop holds its tasks weakly: one that is held by nobody else may vanish in the middle

def hold(coroutine):
    task = asyncio.get_running_loop().create_task(coroutine)
    connections.add(task)
    task.add_done_callback(connections.discard)

def endpoints(key, port_name):
    ready, serving = [], []
    for s in list(slices.values()):
        if (s["metadata"]["namespace"], s["metadata"].get("labels", {}).get("kubernetes.io/service-name")) != key:
            continue
        port = next((p["port"] for p in s.get("ports") or [] if (p.get("name") or "") == port_name), None)
        for e in s.get("endpoints") or []:
            c = e["conditions"]
            if port and c.get("ready", True):
                ready.append((e["addresses"][0], port))
            elif port and c.get("serving") and c.get("terminating"):
                serving.append((e["addresses"][0], port))
    return ready or serving

async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (OSError, asyncio.CancelledError):
        writer.transport.abort()

async def serve(key, port_name, reader, writer):
    tried = endpoints(key, port_name)
    random.shuffle(tried)
    for address in tried:
        try:
            to = await asyncio.wait_for(asyncio.open_connection(*address), 1)
            break
        except (OSError, asyncio.TimeoutError):
            continue
    else: # as the kernel answers where a Service has no endpoint
        writer.transport.abort()
        return
    await asyncio.gather(copy(reader, to[1]), copy(to[0], writer))
    for w in (to[1], writer):
        w.close()

async def listen(key, address, port, name):
    r = subprocess.run(["ip", "addr", "add", address + "/32", "dev", "lo"], capture_output=True, text=True)
    if r.returncode and "File exists" not in r.stderr:
        print("proxy:", r.stderr, file=sys.stderr)
    listening[key, address, port] = await asyncio.start_server(lambda r, w: hold(serve(key, name, r, w)), address, port, backlog=512)
    print(f"{key[0]}/{key[1]} {address}:{port}", flush=True)

async def main():
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    def keep(where):
        def on_event(event, o):
            if event == "DELETED":
                where.pop(o["metadata"]["uid"], None)
            else:
                where[o["metadata"]["uid"]] = o
            loop.call_soon_threadsafe(changed.set)
        return on_event
    api.in_background(api.watch, "/api/v1/services", keep(services))
    api.in_background(api.watch, "/apis/discovery.k8s.io/v1/endpointslices", keep(slices))
    while True:
        await changed.wait()
        changed.clear()
        wanted = {}
        for s in list(services.values()):
            address = s["spec"].get("clusterIP")
            for p in s["spec"].get("ports", []):
                if address not in (None, "None") and p.get("protocol") == "TCP" and s["metadata"]["name"] != "kube-dns":
                    wanted[(s["metadata"]["namespace"], s["metadata"]["name"]), address, p["port"]] = p.get("name") or ""
        for key in set(listening) - set(wanted):
            listening.pop(key).close()
        for key, name in wanted.items():
            if key not in listening:
                await listen(*key, name)

asyncio.run(main())
