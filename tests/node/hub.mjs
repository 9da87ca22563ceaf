// A hub and a registry on loopback for tests/e2e/pull.sh: Hugging Face's API, Ollama's registry and an OCI registry
// with tokens, all of which misbehave when the path of a repository says so. Needs no packages.
//
//   node hub.mjs FOLDER [MODEL.gguf]      prints "PORT OTHER_PORT"; MODEL is org/home and ollama's home:s; FOLDER/log gets a line a request: PORT METHOD PATH RANGE AUTH
import http from 'node:http';
import fs from 'node:fs';
import crypto from 'node:crypto';

const folder = process.argv[2];
const sha256 = (b) => crypto.createHash('sha256').update(b).digest('hex');
const gitSha1 = (b) => crypto.createHash('sha1').update(`blob ${b.length}\0`).update(b).digest('hex');
// Bytes that look random and are the same in every run.
function bytes(n, seed, magic = '') {
    const b = Buffer.alloc(n);
    let x = seed;
    for (let i = 0; i < n; i++) { x = (Math.imul(x, 1103515245) + 12345) >>> 0; b[i] = x >>> 16; }
    b.write(magic);
    return b;
}
const gguf = (n, seed) => bytes(n, seed, 'GGUF');
const big = gguf(700001, 1);
const config = Buffer.from('{"architectures":["BertForSequenceClassification"]}\n');

// ORG/NAME: path -> bytes
const repos = {
    'org/safe': {
        'config.json': config, 'tokenizer.json': Buffer.from('{}'), 'model.safetensors': bytes(300000, 2),
        '1_Pooling/config.json': Buffer.from('{"p":1}'), 'pytorch_model.bin': bytes(10, 3), 'onnx/model.onnx': bytes(10, 4),
        '.gitattributes': Buffer.from('x'), 'README.md': Buffer.from('hello'),
    },
    'org/sharded': {
        'config.json': config, 'model.safetensors.index.json': Buffer.from('{}'),
        'model-00001-of-00002.safetensors': bytes(1000, 5), 'model-00002-of-00002.safetensors': bytes(1001, 6),
        'consolidated.safetensors': bytes(2000, 7),
    },
    'org/quants': {
        'Tiny-Q4_K_M.gguf': gguf(1000, 8), 'Tiny-Q8_0.gguf': gguf(2000, 9), 'mmproj-Tiny-F16.gguf': gguf(100, 10),
    },
    'org/one': { 'One-Q8_0.gguf': big },
    'org/bin': { 'pytorch_model.bin': bytes(10, 11), 'config.json': config },
    'org/cut': { 'Cut-Q8_0.gguf': big },
    'org/slow': { 'Slow-Q8_0.gguf': big },
    'org/wrong': { 'Wrong-Q8_0.gguf': big },
    'org/endless': { 'Endless-Q8_0.gguf': big },
    'org/short': { 'Short-Q8_0.gguf': big },
    'org/norange': { 'Norange-Q8_0.gguf': big },
    'org/flaky': { 'Flaky-Q8_0.gguf': big },
    'org/away': { 'Away-Q8_0.gguf': gguf(5000, 12) },
    'org/clear': { 'Clear-Q8_0.gguf': gguf(5000, 12) },
    'org/round': { 'Round-Q8_0.gguf': gguf(5000, 12) },
    'org/page': { 'Page-Q8_0.gguf': big },
    'org/huge': { 'Huge-Q8_0.gguf': gguf(100, 13) },
    'org/hostile': { '../../evil.gguf': gguf(10, 1), '/etc/evil.gguf': gguf(10, 1), 'models.json': gguf(10, 1), 'a\\b.gguf': gguf(10, 1), 'x\u0000y.gguf': gguf(10, 1) },
    'org/gated': { 'Gated-Q8_0.gguf': gguf(5000, 14) },
};
const seen = {}; // how often each path was asked for

function send(req, res, body, extra = {}) {
    const range = /^bytes=(\d+)-$/.exec(req.headers.range ?? '');
    const etag = `"${sha256(body).slice(0, 16)}"`;
    const head = { etag, 'accept-ranges': 'bytes', ...extra };
    const fits = !req.headers['if-range'] || req.headers['if-range'] === etag;
    if (range && fits && +range[1] >= body.length) return res.writeHead(416, head).end();
    const from = range && fits ? +range[1] : 0;
    if (from) head['content-range'] = `bytes ${from}-${body.length - 1}/${body.length}`;
    res.writeHead(from ? 206 : 200, { ...head, 'content-length': body.length - from });
    res.end(body.subarray(from));
}

// Each misbehaves in its own way; `n` counts the requests for this file.
const moods = {
    cut(req, res, body, n) { // the connection dies after 200 kB, twice
        if (n > 2) return send(req, res, body);
        const from = +(/^bytes=(\d+)-$/.exec(req.headers.range ?? '')?.[1] ?? 0);
        const head = { etag: '"x"', 'content-length': body.length - from };
        if (from) head['content-range'] = `bytes ${from}-${body.length - 1}/${body.length}`;
        res.writeHead(from ? 206 : 200, head);
        res.write(body.subarray(from, from + 200000), () => setTimeout(() => res.socket.destroy(), 50));
    },
    slow(req, res, body) { // 20 kB, then nothing
        if (fs.existsSync(`${folder}/hurry`)) return send(req, res, body);
        res.writeHead(200, { etag: '"x"', 'content-length': body.length });
        res.write(body.subarray(0, 20000));
    },
    wrong(req, res, body) { const b = Buffer.from(body); b[b.length - 1] ^= 1; send(req, res, b); },
    endless(req, res) {
        res.writeHead(200, {});
        res.write('GGUF');
        const more = () => { while (!res.destroyed && res.write(Buffer.alloc(65536))); };
        res.on('drain', more);
        more();
    },
    short(req, res, body) { send(req, res, body.subarray(0, 1000)); },
    norange(req, res, body) { delete req.headers.range; send(req, res, body); },
    flaky(req, res, body, n) { if (n === 1) return res.writeHead(503, { 'retry-after': '1' }).end('busy'); send(req, res, body); },
    away(req, res) { res.writeHead(302, { location: `http://127.0.0.1:${other.address().port}/away.gguf` }).end(); },
    clear(req, res) { res.writeHead(302, { location: 'http://example.com/clear.gguf' }).end(); },
    round(req, res) { res.writeHead(302, { location: req.url }).end(); },
    page(req, res) { res.writeHead(200, { 'content-type': 'text/html' }).end('<html>log in first</html>'); },
};

function hfTree(res, repo, files) {
    const list = Object.entries(files).map(([path, body]) => ({
        type: 'file', path, size: body.length, oid: gitSha1(body),
        ...(/\.(gguf|safetensors|bin|onnx)$/.test(path) ? { lfs: { oid: sha256(body), size: body.length } } : {}),
    }));
    list.unshift({ type: 'directory', path: '1_Pooling', oid: 'x' });
    if (repo === 'org/huge') for (const f of list) if (f.lfs) f.size = f.lfs.size = 4e12;
    return list;
}

function hub(req, res, url) {
    const tree = /^\/api\/models\/([^/]+\/[^/]+)\/tree\/([^/?]+)/.exec(url.pathname);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/main\/(.+)$/.exec(url.pathname);
    const repo = (tree ?? file)?.[1];
    const files = repos[repo];
    if (repo === 'org/gated' && req.headers.authorization !== 'Bearer hf_secret') return res.writeHead(401).end('no');
    if (!files || (tree && tree[2] !== 'main')) return res.writeHead(404).end('{"error":"not found"}');
    if (tree) {
        const list = hfTree(res, repo, files);
        const at = +(url.searchParams.get('cursor') ?? 0), step = 4;
        const head = { 'content-type': 'application/json' };
        if (at + step < list.length) head.link = `<http://${req.headers.host}${url.pathname}?recursive=1&cursor=${at + step}>; rel="next"`;
        return res.writeHead(200, head).end(JSON.stringify(list.slice(at, at + step)));
    }
    const body = files[decodeURIComponent(file[2])];
    if (!body) return res.writeHead(404).end();
    seen[url.pathname] = (seen[url.pathname] ?? 0) + 1;
    const mood = moods[repo.slice(4)];
    return mood ? mood(req, res, body, seen[url.pathname]) : send(req, res, body);
}

// ---- registries
const blobs = new Map(), manifests = new Map();
const layer = (body, mediaType, title) => {
    blobs.set('sha256:' + sha256(body), body);
    return { mediaType, digest: 'sha256:' + sha256(body), size: body.length, ...(title ? { annotations: { 'org.opencontainers.image.title': title } } : {}) };
};
const manifest = (name, tag, layers, more = {}) => {
    const text = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json', layers, ...more }));
    manifests.set(`${name}:${tag}`, text);
    manifests.set(`${name}:sha256:${sha256(text)}`, text);
    return 'sha256:' + sha256(text);
};
manifest('library/tiny', 'latest', [layer(big, 'application/vnd.ollama.image.model'), layer(Buffer.from('{{ .Prompt }}'), 'application/vnd.ollama.image.template')]);
if (process.argv[3]) {
    const model = fs.readFileSync(process.argv[3]);
    repos['org/home'] = { 'Home-Q8_0.gguf': model };
    manifest('library/home', 's', [layer(model, 'application/vnd.ollama.image.model'), layer(Buffer.from('{{ .System }}[{{ .Prompt }}] {{ .Response }}'), 'application/vnd.ollama.image.template')]);
}
manifest('library/slow', 'latest', [layer(big, 'application/vnd.ollama.image.model')]);
manifest('library/tiny', '1b', [layer(gguf(3000, 20), 'application/vnd.ollama.image.model')]);
const open = manifest('models/open', 'v1', [layer(gguf(4000, 21), 'application/octet-stream', 'Open.gguf')]);
manifests.set('models/index:latest', Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [{ digest: open }] })));
manifests.set(`models/index:${open}`, manifests.get(`models/open:${open}`));
manifest('models/folder', 'latest', [layer(config, 'application/json', 'config.json'), layer(bytes(5000, 22), 'application/octet-stream', 'model.safetensors')]);
manifest('models/evil', 'latest', [layer(gguf(40, 23), 'application/octet-stream', '../evil.gguf')]);
manifest('models/escape', 'latest', [layer(gguf(40, 23), 'application/octet-stream', '\u001b]0;evil\u0007\u009b.gguf')]);
manifest('models/tar', 'latest', [layer(gguf(40, 23), 'application/vnd.oci.image.layer.v1.tar+gzip', 'dir')]);
manifest('models/image', 'latest', [layer(gguf(40, 23), 'application/vnd.oci.image.layer.v1.tar+gzip')]);
manifests.set(`models/lie:sha256:${'0'.repeat(64)}`, manifests.get('models/open:v1'));
const lied = layer(gguf(4100, 24), 'application/octet-stream', 'Lie.gguf');
blobs.set(lied.digest, gguf(4100, 25));
manifest('models/liar', 'latest', [lied]);
manifest('private/tiny', 'latest', [layer(gguf(4200, 26), 'application/octet-stream', 'Private.gguf')]);

function registry(req, res, url) {
    const m = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(url.pathname);
    if (!m) return res.writeHead(404).end();
    const [, name, what, ref] = m;
    if (!name.startsWith('library/') && req.headers.authorization !== `Bearer token-of-${name}`) {
        const realm = `http://${req.headers.host}/token`;
        return res.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}",service="test, registry",scope="repository:${name}:pull"` }).end();
    }
    const body = what === 'manifests' ? manifests.get(`${name}:${ref}`) : blobs.get(ref);
    if (!body) return res.writeHead(404).end();
    if (what === 'blobs' && name === 'models/open') return res.writeHead(307, { location: `http://127.0.0.1:${other.address().port}/blob/${ref}` }).end();
    if (what === 'blobs' && name === 'library/slow') return moods.slow(req, res, body);
    return what === 'manifests' ? res.writeHead(200, { 'content-type': 'application/json' }).end(body) : send(req, res, body);
}
function token(req, res, url) {
    const name = /^repository:(.+):pull$/.exec(url.searchParams.get('scope') ?? '')?.[1];
    const basic = 'Basic ' + Buffer.from('me:pass word').toString('base64');
    if (!name || url.searchParams.get('service') !== 'test, registry') return res.writeHead(400).end();
    if (name.startsWith('private/') && req.headers.authorization !== basic) return res.writeHead(401).end();
    res.writeHead(200).end(JSON.stringify({ token: `token-of-${name}` }));
}

function log(req, port) {
    fs.appendFileSync(`${folder}/log`, `${port} ${req.method} ${req.url} ${req.headers.range ?? '-'} ${req.headers.authorization ?? '-'}\n`);
}
const main = http.createServer((req, res) => {
    const url = new URL(req.url, 'http://x');
    log(req, 'main');
    if (url.pathname === '/token') return token(req, res, url);
    if (url.pathname.startsWith('/v2/')) return registry(req, res, url);
    if (url.pathname.startsWith('/files/page')) return res.writeHead(200, { 'content-type': 'text/html' }).end('<html>log in first</html>');
    if (url.pathname.startsWith('/files/trees')) return send(req, res, Buffer.from('{"not": "trees"}'));
    if (url.pathname.startsWith('/files/')) return send(req, res, gguf(600000, 30), url.pathname.includes('weak') ? { etag: 'W/"x"' } : {});
    return hub(req, res, url);
});
const other = http.createServer((req, res) => {
    log(req, 'other');
    const blob = /^\/blob\/(.+)$/.exec(req.url)?.[1];
    send(req, res, blob ? blobs.get(blob) : gguf(5000, 12));
});
main.listen(0, '127.0.0.1', () => other.listen(0, '127.0.0.1', () => {
    console.log(`${main.address().port} ${other.address().port}`);
}));
