// npm's ws against /v1/ws: many requests over one socket, streams, cancelling, resuming, and nonsense.
import test from "node:test";
import assert from "node:assert/strict";
import http2 from "node:http2";
import WebSocket from "ws";
import { client } from "./calls.mjs";

const call = client("ws");
const base = process.env.SHOAL_URL, at = base.replace(/^http/, 'ws') + '/v1/ws';

/** A socket whose answers are waited for by their request's id. */
class Talk {
  constructor(socket) {
    this.socket = socket;
    this.heard = new Map();
    this.waiting = new Map();
    this.closed = new Promise((done) => socket.on('close', (code, why) => {
      done({ code, why: String(why) });
      for (const wake of this.waiting.values()) wake();
    }));
    socket.on('message', (text) => {
      const m = JSON.parse(text);
      if (!this.heard.has(m.id)) this.heard.set(m.id, []);
      this.heard.get(m.id).push(m);
      this.waiting.get(m.id)?.();
    });
  }
  static async open(options) {
    const socket = new WebSocket(at, options);
    await new Promise((done, failed) => socket.on('open', done).on('error', failed));
    return new Talk(socket);
  }
  say(m) { this.socket.send(JSON.stringify(m)); }
  /** All messages of a request, to its end. */
  async all(id) {
    for (;;) {
      const seen = this.heard.get(id) ?? [], last = seen.at(-1);
      if (last && (last.end || (last.status && !last.stream))) return seen;
      if (this.socket.readyState !== WebSocket.OPEN) throw new Error(`closed with ${JSON.stringify(await this.closed)}`);
      await new Promise((wake) => this.waiting.set(id, wake));
    }
  }
  async ask(id, path, body, headers) {
    this.say({ id, path, body, ...(headers && { headers }) });
    return this.all(id);
  }
}

const chat = (content, more) => ({
  model: 'home-chat-s', temperature: 0, max_tokens: 24, messages: [{ role: 'user', content }], ...more,
});
const text = (seen) => seen.flatMap((m) => m.data?.choices ?? []).map((c) => c.delta?.content ?? '').join('');

call('/v1/ws', 'one answer, as over HTTP', async () => {
  const talk = await Talk.open();
  const [a] = await talk.ask('1', '/v1/classify', { model: 'home-intent', input: 'turn on the light' });
  const b = await (await fetch(base + '/v1/classify', {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'home-intent', input: 'turn on the light' }),
  })).json();
  assert.equal(a.status, 200);
  assert.match(a.headers['content-type'], /^application\/json/);
  assert.deepEqual(a.body.results, b.results);
  const [models] = await talk.ask('2', '/v1/models');
  assert.ok(models.body.data.length > 4);
  const [metrics] = await talk.ask('3', '/metrics');
  assert.match(metrics.body, /shoal_requests_total/);
  talk.socket.close(1000);
  assert.equal((await talk.closed).code, 1000);
});

call('/v1/ws', 'forty streams at once are those of HTTP, and each has its own end', async () => {
  const talk = await Talk.open();
  const words = ['turn off the kitchen light', 'lock the front door', 'hello', 'is the garage open?'];
  const want = await Promise.all(words.map(async (w) => {
    const r = await fetch(base + '/v1/chat/completions', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(chat(w)),
    });
    return (await r.json()).choices[0].message.content ?? '';
  }));
  const got = await Promise.all([...Array(40).keys()].map((i) =>
    talk.ask(`s${i}`, '/v1/chat/completions', chat(words[i % 4], { stream: true }), { 'cache-control': 'no-cache' })));
  got.forEach((seen, i) => {
    assert.equal(seen[0].status, 200);
    assert.ok(seen[0].stream && seen.at(-1).end);
    assert.equal(text(seen), want[i % 4]);
    assert.equal(seen.filter((m) => m.end).length, 1);
  });
  talk.socket.close();
});

call('/v1/ws', 'a stream goes on over another socket', async () => {
  const one = await Talk.open(), two = await Talk.open();
  const body = chat('tell me about lights', { stream: true, max_tokens: 48, seed: 3, temperature: 1, ignore_eos: true });
  const whole = await one.ask('w', '/v1/chat/completions', body);
  const events = whole.filter((m) => m.event_id), cut = events[Math.floor(events.length / 2)];
  const rest = await two.ask('r', '/v1/chat/completions', body, { 'last-event-id': cut.event_id });
  const had = text(whole.slice(0, whole.indexOf(cut) + 1));
  assert.equal(had + text(rest), text(whole));
  one.socket.close();
  two.socket.close();
});

call('/v1/ws', 'what is cancelled stops, and its id is free again', async () => {
  const talk = await Talk.open();
  // Heavy enough to run still when this process, for a while given no core, says so.
  const heavy = { stream: true, n: 8, max_tokens: 1900, temperature: 1, logprobs: true, top_logprobs: 20, ignore_eos: true };
  talk.say({ id: 'long', path: '/v1/chat/completions', body: chat('go on', heavy) });
  while (!talk.heard.get('long')?.some((m) => m.data)) await new Promise((wake) => talk.waiting.set('long', wake));
  talk.say({ id: 'long', cancel: true });
  const [after] = await talk.ask('after', '/v1/embeddings', { model: 'home-embed', input: 'a' });
  assert.equal(after.status, 200);
  const n = talk.heard.get('long').length;
  assert.ok(!talk.heard.get('long').some((m) => m.end));
  await new Promise((r) => setTimeout(r, 50));
  assert.equal(talk.heard.get('long').length, n);
  talk.heard.delete('long');
  assert.equal((await talk.ask('long', '/v1/embeddings', { model: 'home-embed', input: 'a' }))[0].status, 200);
  talk.socket.close();
});

call('/v1/ws', 'nonsense is answered by name, and the socket goes on', async () => {
  const talk = await Talk.open();
  const wrong = [
    ['not json', /message/], ['[]', /JSON object/], ['{}', /needs an id/], ['{"id":""}', /needs an id/],
    [JSON.stringify({ id: 'x'.repeat(65) }), /needs an id/], ['{"id":"a"}', /needs a path/],
    ['{"id":"a","path":"v1"}', /needs a path/], ['{"id":"a","path":"/x","bodi":1}', /bodi/],
    ['{"id":"a","path":"/x","headers":{"a":1}}', /headers/], ['{"id":"a","path":"/x","headers":{"a":"b\\r\\nc: d"}}', /headers/],
    ['{"id":"a","path":"/x","body":1,"body_base64":""}', /together/], ['{"id":"a","path":"/x","body_base64":"?"}', /base64/],
    ['{"id":"a","path":"/v1/nothing"}', /nothing at/], ['{"id":"a","path":"/v1/ws"}', /WebSocket/],
    ['{"id":"a","path":"/v1/chat/completions","body":7}', /./], ['{"id":"a","method":"PUT","path":"/v1/models"}', /not allowed/],
  ];
  for (const [sent, said] of wrong) {
    const id = sent.includes('"id":"a"') ? 'a' : null;
    talk.heard.delete(id);
    talk.socket.send(sent);
    const [m] = await talk.all(id);
    assert.ok(m.status >= 400, sent);
    assert.match(m.body.error.message, said);
  }
  talk.say({ id: 'same', path: '/v1/chat/completions', body: chat('a', { stream: true, max_tokens: 200, ignore_eos: true }) });
  talk.say({ id: 'same', path: '/v1/models' });
  while (!talk.heard.get('same')?.some((m) => m.status === 409)) await new Promise((wake) => talk.waiting.set('same', wake));
  assert.equal((await talk.ask('fine', '/v1/models'))[0].status, 200);
  talk.socket.send(Buffer.from([1, 2]));
  assert.equal((await talk.closed).code, 1003);
});

call('/v1/ws', 'a page of another site does not get in', async () => {
  await assert.rejects(Talk.open({ headers: { origin: 'http://evil.example' } }), /403/);
  const r = await fetch(base + '/v1/ws');
  assert.equal(r.status, 426);
  assert.match((await r.json()).error.message, /WebSocket/);
});

call('/v1/ws', 'bytes in base64', async () => {
  const talk = await Talk.open();
  const bytes = Buffer.from(JSON.stringify({ model: 'home-embed', input: 'a' }));
  talk.say({ id: 'b', path: '/v1/embeddings', headers: { 'Content-Type': 'application/json' }, body_base64: bytes.toString('base64') });
  assert.equal((await talk.all('b'))[0].status, 200);
  talk.socket.close();
});

call('/v1/ws', 'over HTTP/2 as well (RFC 8441)', async () => {
  const session = http2.connect(base);
  await new Promise((done) => session.once('remoteSettings', done));
  assert.ok(session.remoteSettings.enableConnectProtocol);
  const stream = session.request({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': '/v1/ws', 'sec-websocket-version': '13' });
  const status = await new Promise((done) => stream.on('response', (h) => done(h[':status'])));
  assert.equal(status, 200);
  const payload = Buffer.from('{"id":"h2","path":"/v1/models"}');
  stream.write(Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]));
  const got = await new Promise((done) => stream.on('data', done));
  assert.match(got.toString(), /"id":"h2","status":200/);
  stream.destroy();
  session.close();
});

call('/v1/ws', 'long messages are packed both ways where the client offers it (RFC 7692)', async () => {
  const sizes = [];
  for (const perMessageDeflate of [{ threshold: 0 }, false]) {
    const talk = await Talk.open({ perMessageDeflate });
    assert.equal(talk.socket.extensions, perMessageDeflate ? 'permessage-deflate' : '');
    talk.say({ id: 'p', path: '/v1/models', headers: { 'x-note': 'a'.repeat(2000) } });
    const [m] = await talk.all('p');
    assert.equal(m.body.object, 'list');
    sizes.push(talk.socket._socket.bytesRead);
    talk.socket.close();
  }
  assert.ok(sizes[0] * 3 < sizes[1], `${sizes[0]} bytes packed, ${sizes[1]} plain`);
});
