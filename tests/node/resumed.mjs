// resumed.mjs URL OTHER MODEL [PID]: streams that one gateway begins and another ends. Each stream is read whole at URL;
// then, for many k, the client forgets what came behind event k and asks OTHER for the rest with Last-Event-ID: what
// it then has must be what it had. Given PID, the gateway at URL, it is killed while streams run, and OTHER gives the
// rest. Prints what it saw, exits with 1 when anything differs.
import http from 'node:http';
import process from 'node:process';

const [url, other, model, pid] = process.argv.slice(2);
const user = (content) => [{role: 'user', content}];
const tool = (name, key) => ({
    type: 'function',
    function: {name, description: `call ${name}`, parameters: {type: 'object', properties: {[key]: {type: 'string', maxLength: 40}}, required: [key]}},
});
const schema = {
    type: 'object',
    properties: {room: {type: 'string', maxLength: 30}, devices: {type: 'array', minItems: 3, maxItems: 5, items: {type: 'string', minLength: 5, maxLength: 20}}},
    required: ['room', 'devices'],
    additionalProperties: false,
};
const chat = '/v1/chat/completions', plain = '/v1/completions';
const cases = [
    {name: 'greedy', path: chat, body: {temperature: 0, ignore_eos: true, max_tokens: 80, messages: user('tell me everything')}},
    {name: 'sampled', path: chat, body: {temperature: 1, ignore_eos: true, max_tokens: 80, messages: user('and then?')}},
    {name: 'n2', path: chat, body: {n: 2, logprobs: true, top_logprobs: 2, ignore_eos: true, max_tokens: 40, messages: user('two stories')}},
    {name: 'tools', path: chat, body: {max_tokens: 120, tools: [tool('light_on', 'area'), tool('say', 'text')], tool_choice: 'required', parallel_tool_calls: true, messages: user('turn on the light')}},
    {name: 'schema', path: chat, body: {max_tokens: 200, response_format: {type: 'json_schema', json_schema: {name: 'home', schema}}, messages: user('describe the home')}},
    {name: 'stop', path: chat, body: {max_tokens: 120, ignore_eos: true, stop: ['zzzz', 'the li'], messages: user('who is there')}},
    {name: 'text', path: plain, body: {prompt: ['turn on', 'the light'], n: 2, echo: true, logprobs: 2, ignore_eos: true, max_tokens: 30}},
];

// Everything that a client may rely on: what each chunk says of the answer, and what of each choice adds up.
function collect(events) {
    const choices = [];
    let head = null, usage = null, done = false;
    for (const {data} of events) {
        if (data === '[DONE]') done = true;
        if (data === '[DONE]') continue;
        const chunk = JSON.parse(data);
        if (chunk.error) return JSON.stringify(chunk);
        const {id, object, created, model: name, system_fingerprint} = chunk;
        const says = JSON.stringify({id, object, created, name, system_fingerprint});
        if (head !== null && head !== says) return `two heads: ${head} ${says}`;
        head = says;
        if (chunk.usage) usage = {prompt: chunk.usage.prompt_tokens, completion: chunk.usage.completion_tokens};
        for (const c of chunk.choices) {
            const at = (choices[c.index] ??= {content: '', reasoning: '', calls: [], logprobs: [], roles: 0, finish: []});
            at.content += c.text ?? c.delta.content ?? '';
            at.reasoning += c.delta?.reasoning_content ?? '';
            at.roles += c.delta?.role ? 1 : 0;
            if (c.finish_reason) at.finish.push(c.finish_reason);
            at.logprobs.push(...(c.logprobs?.content ?? []));
            c.logprobs?.tokens?.forEach((t, i) => at.logprobs.push([t, c.logprobs.token_logprobs[i], c.logprobs.top_logprobs[i], c.logprobs.text_offset[i]]));
            for (const t of c.delta?.tool_calls ?? []) {
                const call = (at.calls[t.index] ??= {ids: [], name: '', arguments: ''});
                if (t.id) call.ids.push(t.id);
                call.name += t.function.name ?? '';
                call.arguments += t.function.arguments ?? '';
            }
        }
    }
    return JSON.stringify({head, choices, usage, done});
}

function parse(text) {
    return text.split('\n\n').filter((e) => e).map((e) => {
        const lines = e.split('\n'), get = (name) => lines.find((l) => l.startsWith(name))?.slice(name.length);
        return {id: get('id: '), data: get('data: ')};
    });
}

// The events of an answer; with `most` the connection is broken behind so many, or where it breaks by itself. `on` is
// told how many there are.
function ask(at, {path, body}, last, most = Infinity, on = undefined) {
    return new Promise((resolve, reject) => {
        const headers = {'content-type': 'application/json', 'cache-control': 'no-store'};
        if (last) headers['last-event-id'] = last;
        const r = http.request(at + path, {method: 'POST', headers, agent: false}, (res) => {
            let text = '';
            const end = () => resolve({status: res.statusCode, text, events: res.statusCode === 200 ? parse(text.slice(0, text.lastIndexOf('\n\n') + 2)) : []});
            res.on('data', (d) => {
                text += d;
                if (most === Infinity && !on) return;
                const n_events = parse(text.slice(0, text.lastIndexOf('\n\n') + 2)).length;
                on?.(n_events);
                if (n_events >= most) { r.destroy(); end(); }
            });
            res.on('end', end);
            res.on('error', end);
        });
        r.on('error', (e) => (most < Infinity || pid ? resolve({status: 0, text: String(e), events: []}) : reject(e)));
        r.end(JSON.stringify({model, stream: true, stream_options: {include_usage: true}, ...body}));
    });
}

function fail(what, got, expected) {
    console.log(`${what}\n  got      ${got}\n  expected ${expected}`);
    process.exit(1);
}

let n = 0, longest = 0;
if (!pid) {
    for (const c of cases) {
        const whole = (await ask(url, c)).events, expected = collect(whole);
        if (!expected.includes('"done":true')) fail(c.name, expected, 'a whole answer');
        if (whole.slice(0, -1).some((e) => !e.id)) fail(c.name, 'an event without an id', 'ids');
        longest = Math.max(longest, ...whole.map((e) => e.id?.length ?? 0));
        const step = Math.max(1, Math.floor(whole.length / 12));
        for (let k = 0; k < whole.length - 1; k += k < 4 || k > whole.length - 6 ? 1 : step) {
            const rest = await ask(n % 3 ? other : url, c, whole[k].id);
            const got = rest.status === 200 ? collect([...whole.slice(0, k + 1), ...rest.events]) : rest.text;
            if (got !== expected) fail(`${c.name} behind event ${k} of ${whole.length}`, got, expected);
            n++;
        }
        const one = (await ask(url, c, undefined, 5)).events; // a client that is cut off again and again
        for (let i = 0; i < 4; i++) one.push(...(await ask(i % 2 ? url : other, c, one.findLast((e) => e.id).id, 7)).events);
        const last = await ask(other, c, one.findLast((e) => e.id).id);
        const got = collect([...one.filter((e) => e.id), ...last.events]);
        const again = collect([one[0], ...(await ask(other, c, one[0].id)).events]);
        if (got !== again) fail(`${c.name} cut five times`, got, again);
    }
    console.log(`${n} streams went on elsewhere, ids of at most ${longest} letters`);
} else {
    const forms = {stop: undefined, response_format: undefined, tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined};
    const long = cases.map((c) => ({...c, body: {...c.body, ...forms, ignore_eos: true, max_tokens: 600}}));
    // In the middle: each has begun, or some are far ahead of the others.
    const at = long.map(() => 0);
    let killed = false;
    const look = (i, n_events) => {
        at[i] = n_events;
        if (killed || (at[i] < 100 && at.some((k) => k < 3))) return;
        killed = process.kill(Number(pid), 'SIGKILL');
    };
    const had = await Promise.all(long.map((c, i) => ask(url, c, undefined, Infinity, (n_events) => look(i, n_events))));
    for (const [i, c] of long.entries()) {
        const events = had[i].events.filter((e) => e.id);
        if (!events.length || had[i].text.includes('[DONE]')) continue;
        const got = collect([...events, ...(await ask(other, c, events.at(-1).id)).events]);
        const again = collect([events[0], ...(await ask(other, c, events[0].id)).events]);
        if (got !== again || !got.includes('"done":true')) fail(`${c.name} behind event ${events.length}`, got, again);
        n++;
    }
    if (n === 0) fail('no stream was in the middle', at, 'some');
    console.log(`${n} streams of a killed gateway went on elsewhere`);
}
