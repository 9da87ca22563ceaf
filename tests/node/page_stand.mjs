// A server that is as bad as a test wants: the page itself comes from the real one, and what it asks for is made up here.
//
//   const stand = await openStand(realUrl);
//   stand.chat = (res) => ...         // answers POST /v1/chat/completions
//   stand.process = (res) => ...      // answers POST /v1/process
//   stand.status = {gateway, nodes, replicas}; stand.tell({replicas: [...]})
import http from "node:http";

export async function openStand(real) {
  const stand = { key: null, refuse: {}, models: [], requests: [], status: { gateway: { status: "ready", requests: 0, moves: 0, degraded: 0, away: [] }, nodes: [], replicas: [] }, listeners: new Set(), chat: null, asked: [] };

  const json = (res, status, value) => {
    res.writeHead(status, { "content-type": "application/json" });
    res.end(JSON.stringify(value));
  };
  const event = (value) => `event: status\ndata: ${JSON.stringify({ at: Date.now() / 1000, nodes: [], replicas: [], gone: [], ...value })}\n\n`;

  async function pass(req, res) {
    const answer = await fetch(real + req.url, { headers: { accept: req.headers.accept ?? "*/*" } });
    const headers = { "content-type": answer.headers.get("content-type") };
    const policy = answer.headers.get("content-security-policy");
    if (policy) headers["content-security-policy"] = policy;
    res.writeHead(answer.status, headers);
    res.end(Buffer.from(await answer.arrayBuffer()));
  }

  const read = (req, then) => {
    let body = "";
    req.on("data", (d) => (body += d));
    req.on("end", () => then(JSON.parse(body)));
  };

  const routes = {
    "/v1/models": (req, res) => json(res, 200, { object: "list", data: stand.models }),
    "/v1/pipelines": (req, res) => json(res, 200, { object: "list", data: [] }),
    "/v1/requests": (req, res) => json(res, 200, { object: "list", last: stand.requests.length, kept: 512, prompts: false, data: stand.requests }),
    "/v1/events": (req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(event(stand.status));
      stand.listeners.add(res);
      res.on("close", () => stand.listeners.delete(res));
    },
    "/v1/chat/completions": (req, res) => {
      read(req, (body) => {
        stand.asked.push(body);
        res.writeHead(200, { "content-type": "text/event-stream", "x-request-id": "made-up" });
        stand.chat(res);
      });
    },
    "/v1/process": (req, res) => {
      read(req, () => {
        res.writeHead(200, { "content-type": "text/event-stream" });
        stand.process(res);
      });
    },
    "/v1/models/load": (req, res) => {
      read(req, (body) => {
        res.setHeader("content-type", "text/event-stream");
        stand.load(res, body);
      });
    },
  };

  const server = http.createServer((req, res) => {
    const path = req.url.split("?")[0];
    if (!path.startsWith("/v1/")) return pass(req, res);
    if (stand.key && req.headers.authorization !== `Bearer ${stand.key}`) return json(res, 401, { error: { message: "a valid API key is needed", code: "invalid_api_key" } });
    if (stand.refuse[path]) return json(res, stand.refuse[path], { error: { message: "no", code: "no" } });
    return routes[path] ? routes[path](req, res) : json(res, 404, { error: { message: "there is nothing", code: "not_found" } });
  });

  stand.tell = (value) => stand.listeners.forEach((res) => res.write(event(value)));
  stand.chunk = (res, delta, more = {}) => res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`);
  stand.hangUp = () => server.closeAllConnections();
  stand.open = (port = 0) => new Promise((done) => server.listen(port, "127.0.0.1", () => done((stand.port = server.address().port))));
  stand.shut = () => new Promise((done) => {
    server.close(done);
    server.closeAllConnections();
  });
  await stand.open();
  stand.url = `http://127.0.0.1:${stand.port}`;
  return stand;
}
