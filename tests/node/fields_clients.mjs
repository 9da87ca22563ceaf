// The four transports of fields.mjs, by Node's own modules: each takes a request and gives its whole answer.
//
//   request  {method, path, query, headers, body}      body: a Buffer or undefined
//   answer   {status, type, body}                      body: a string; a stream is read to its end, that of a GET, which may have
//                                                      none, to its head
//
// No answer within WAIT_MS, a closed connection and a message that is none are errors.
import http from "node:http";
import http2 from "node:http2";
import crypto from "node:crypto";

const WAIT_MS = 120_000;

const bounded = (promise, what) => {
  let timer;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`no answer within ${WAIT_MS} ms (${what})`)), WAIT_MS); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};
const isEndless = (r, type) => r.method === "GET" && /event-stream|ndjson/.test(type ?? "");
const target = (r) => r.path + (r.query ? `?${r.query}` : "");

export class Http1 {
  constructor(base, width) {
    this.base = new URL(base);
    this.agent = new http.Agent({ keepAlive: true, maxSockets: width });
  }
  name = "HTTP/1.1";
  async ask(r) {
    return bounded(new Promise((done, fail) => {
      const rq = http.request({ agent: this.agent, host: this.base.hostname, port: this.base.port, method: r.method, path: target(r),
        headers: { ...r.headers, ...(r.body && { "content-length": r.body.length }) } }, (answer) => {
        const parts = [];
        if (isEndless(r, answer.headers["content-type"])) {
          done({ status: answer.statusCode, type: answer.headers["content-type"], body: "" });
          return rq.destroy();
        }
        answer.on("data", (d) => parts.push(d)).on("error", fail).on("end", () =>
          done({ status: answer.statusCode, type: answer.headers["content-type"] ?? "", body: Buffer.concat(parts).toString() }));
      });
      rq.on("error", fail).end(r.body);
    }), this.name);
  }
  close() { this.agent.destroy(); }
}

export class Http2 {
  constructor(base) { this.session = http2.connect(base).on("error", () => {}); this.session.setMaxListeners(0); }
  name = "HTTP/2";
  async ask(r) {
    return bounded(new Promise((done, fail) => {
      const s = this.session.request({ ...r.headers, ":method": r.method, ":path": target(r) }, { endStream: !r.body });
      const parts = [];
      let head;
      s.on("response", (h) => { head = h; if (isEndless(r, h["content-type"])) s.close(http2.constants.NGHTTP2_CANCEL); })
        .on("data", (d) => parts.push(d)).on("error", fail).on("close", () => head
        ? done({ status: head[":status"], type: head["content-type"] ?? "", body: Buffer.concat(parts).toString() })
        : fail(new Error(`stream closed with code ${s.rstCode} before an answer`)));
      if (r.body) s.end(r.body);
    }), this.name);
  }
  close() { this.session.close(); }
}

/** One WebSocket (RFC 6455); `message` asks with an envelope of the caller's own. */
export class Ws {
  constructor(base) { this.base = new URL(base); this.n = 0; this.waits = new Map(); this.bytes = Buffer.alloc(0); this.parts = []; this.late = []; this.nLate = this.needs = 0; }
  name = "WebSocket";
  async open() {
    await bounded(new Promise((done, fail) => {
      http.get({ host: this.base.hostname, port: this.base.port, path: "/v1/ws", headers: { connection: "Upgrade", upgrade: "websocket",
        "sec-websocket-version": "13", "sec-websocket-key": crypto.createHash("md5").update("k").digest("base64") } })
        .on("error", fail).on("response", (r) => fail(new Error(`handshake: ${r.statusCode}`)))
        .on("upgrade", (_, socket, head) => {
          this.socket = socket;
          socket.on("data", (d) => this.take(d)).on("error", (e) => this.end(e)).on("close", () => this.end(new Error("the socket was closed")));
          this.take(head);
          done();
        });
    }), this.name);
    return this;
  }
  end(error) { this.dead ??= error; for (const w of this.waits.values()) w.fail(error); this.waits.clear(); }
  /** Joined only once a whole frame is there: answers of megabytes come in thousands of pieces. */
  take(d) {
    this.late.push(d);
    this.nLate += d.length;
    if (this.bytes.length + this.nLate < this.needs) return;
    this.bytes = Buffer.concat([this.bytes, ...this.late]);
    this.late = [];
    this.nLate = this.needs = 0;
    for (;;) {
      const b = this.bytes;
      if (b.length < 2) return;
      const short = b[1] & 127, head = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (b.length < head) return;
      const n = short === 126 ? b.readUInt16BE(2) : short === 127 ? Number(b.readBigUInt64BE(2)) : short;
      if (b.length < head + n) { this.needs = head + n; return; }
      this.bytes = b.subarray(head + n);
      this.frame(b[0] & 15, b[0] >> 7, b.subarray(head, head + n));
    }
  }
  frame(op, fin, data) {
    if (op === 9) return this.write(10, data);
    if (op === 8) return this.end(new Error(`closed with ${data.length >= 2 ? data.readUInt16BE(0) : "no code"}: ${data.subarray(2)}`));
    if (op > 2) return;
    this.parts.push(data);
    if (!fin) return;
    const m = JSON.parse(Buffer.concat(this.parts).toString());
    this.parts = [];
    this.waits.get(m.id ?? null)?.hear(m);
  }
  write(op, data) {
    const mask = Buffer.from([1, 2, 3, 4]), n = data.length;
    const head = n < 126 ? Buffer.from([128 | op, 128 | n]) : n < 65536 ? Buffer.from([128 | op, 254, n >> 8, n & 255]) : Buffer.alloc(10);
    if (n >= 65536) { head[0] = 128 | op; head[1] = 255; head.writeBigUInt64BE(BigInt(n), 2); }
    const masked = Buffer.allocUnsafe(n);
    for (let i = 0; i < n; i++) masked[i] = data[i] ^ mask[i & 3];
    this.socket.write(Buffer.concat([head, mask, masked]));
  }
  /** id: what the answer will be known by; null: an answer without one. */
  message(text, id, endless = () => false) {
    if (this.dead) return Promise.reject(this.dead);
    return bounded(new Promise((done, fail) => {
      const seen = [];
      let first;
      const end = () => { this.waits.delete(id); done({ status: first.status, type: first.headers?.["content-type"] ?? "application/json",
        body: first.stream ? seen.join("\n") : "body" in first ? JSON.stringify(first.body) : first.body_base64 ?? "" }); };
      this.waits.set(id, { fail, hear: (m) => {
        if (m.status) first = m; else seen.push(JSON.stringify(m));
        if (m.stream && endless(first.headers?.["content-type"])) { this.write(1, Buffer.from(JSON.stringify({ id, cancel: true }))); return end(); }
        if (m.end || (m.status && !m.stream)) end();
      } });
      this.write(1, Buffer.from(text));
    }), this.name).finally(() => this.waits.delete(id));
  }
  async ask(r) {
    const id = String(++this.n), type = r.headers["content-type"] ?? "";
    // What no JSON parser takes would leave the message without an id.
    const plain = type === "application/json" && !/1e999|[0-9]{20}|\[{1000}/.test(r.body);
    const body = !r.body ? "" : plain ? `,"body":${r.body}` : `,"body_base64":"${r.body.toString("base64")}"`;
    return this.message(`{"id":"${id}","method":"${r.method}","path":${JSON.stringify(target(r))},"headers":${JSON.stringify(r.headers)}${body}}`, id, (type) => isEndless(r, type));
  }
  close() { this.socket.destroy(); }
}

/** gRPC by HTTP/2's frames: ask({path, message}) gives {code, details, body}. */
export class Grpc {
  constructor(base) { this.session = http2.connect(base).on("error", () => {}); this.session.setMaxListeners(0); }
  name = "gRPC";
  async ask(r) {
    return bounded(new Promise((done, fail) => {
      const s = this.session.request({ ":method": "POST", ":path": r.path, "content-type": "application/grpc", te: "trailers", ...r.headers });
      const parts = [], head = Buffer.alloc(5);
      let ends = {};
      head.writeUInt32BE(r.message.length, 1);
      s.on("response", (h) => { ends = { ...ends, ...h }; }).on("trailers", (h) => { ends = { ...ends, ...h }; })
        .on("data", (d) => parts.push(d)).on("error", fail).on("close", () => "grpc-status" in ends
          ? done({ code: Number(ends["grpc-status"]), details: Buffer.from(ends["grpc-status-details-bin"] ?? "", "base64").toString("latin1"),
            message: decodeURIComponent(ends["grpc-message"] ?? ""), bytes: Buffer.concat(parts) })
          : fail(new Error(`no grpc-status; HTTP ${ends[":status"]}, stream code ${s.rstCode}`)));
      s.end(Buffer.concat([head, r.message]));
    }), this.name);
  }
  close() { this.session.close(); }
}
