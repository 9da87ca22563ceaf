// Hosts on loopback for tests/e2e/hosts.sh, well-behaved and not, in clear and over TLS. Needs no packages.
//
//   node hosts.mjs FOLDER      prints "PORT TLS_PORT OTHER_PORT"; FOLDER has key.pem and cert.pem, and FOLDER/log gets a
//                              line a request: PORT METHOD URL AUTHORIZATION BODY
import http from 'node:http';
import https from 'node:https';
import fs from 'node:fs';

const folder = process.argv[2];
const json = (res, v) => { res.setHeader('content-type', 'application/json'); res.end(JSON.stringify(v)); };
const endless = (res, piece) => {
    const more = () => { while (!res.destroyed && res.write(piece)); };
    res.on('drain', more);
    more();
};
const paths = {
    '/weather': (req, res) => json(res, { city: new URL(req.url, 'http://x').searchParams.get('city'), degrees: 21.5 }),
    '/echo': (req, res, body) => json(res, { got: JSON.parse(body) }),
    '/plain': (req, res) => { res.setHeader('content-type', 'text/plain'); res.end('häuser'); },
    '/binary': (req, res) => res.end(Buffer.from([0xff, 0xfe, 0x00])),
    '/not-json': (req, res) => { res.setHeader('content-type', 'application/json'); res.end('<html>'); },
    '/deep': (req, res) => { res.setHeader('content-type', 'application/json'); res.end('['.repeat(50000)); },
    '/slow': () => {},
    '/drip': (req, res) => { res.write(' '); const t = setInterval(() => res.write(' '), 50); res.on('close', () => clearInterval(t)); },
    '/huge': (req, res) => endless(res, 'x'.repeat(65536)),
    '/says-huge': (req, res) => { res.setHeader('content-length', '99999999999'); res.write('x'); },
    '/heads': (req, res) => { for (let i = 0; i < 12; i++) res.setHeader(`x-${i}`, 'y'.repeat(7000)); res.end('x'); },
    '/missing': (req, res) => { res.statusCode = 404; res.end('secret-page'); },
    '/away': (req, res) => { res.writeHead(302, { location: `http://127.0.0.1:${ports[2]}/stolen` }); res.end(); },
    '/hang-up': (req, res) => res.destroy(),
};
function serve(req, res) {
    let body = '';
    req.on('data', (d) => { body += d; });
    req.on('end', () => {
        const path = decodeURIComponent(req.url.split('?')[0]);
        fs.appendFileSync(`${folder}/log`,
            `${req.socket.localPort} ${req.method} ${req.url} ${req.headers.authorization ?? '-'} ${body}\n`);
        (paths[path] ?? paths['/missing'])(req, res, body);
    });
}
const tls = { key: fs.readFileSync(`${folder}/key.pem`), cert: fs.readFileSync(`${folder}/cert.pem`) };
const servers = [http.createServer(serve), https.createServer(tls, serve), http.createServer(serve)];
const ports = await Promise.all(servers.map((s) => new Promise((ok) => s.listen(0, '127.0.0.1', () => ok(s.address().port)))));
console.log(ports.join(' '));
