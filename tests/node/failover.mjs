// failover.mjs URL MODEL SIGNAL SECONDS: streams of several kinds, again and again, while workers of MODEL get SIGNAL
// at random moments. Each answer has to be the one that was given undisturbed. Prints what it saw, exits with 1 when
// an answer was lost or differs. Without SIGNAL ("none") nothing is done to the workers.
import process from 'node:process';

const [url, model, signal, seconds] = process.argv.slice(2);
const user = (content) => [{role: 'user', content}];
const tool = (name, key) => ({
    type: 'function',
    function: {name, description: `call ${name}`, parameters: {type: 'object', properties: {[key]: {type: 'string', maxLength: 60}}, required: [key]}},
});
const schema = {
    type: 'object',
    properties: {room: {type: 'string', maxLength: 80}, devices: {type: 'array', minItems: 6, maxItems: 8, items: {type: 'string', minLength: 10, maxLength: 40}}},
    required: ['room', 'devices'],
    additionalProperties: false,
};
const cases = [
    {temperature: 0, ignore_eos: true, max_tokens: 400, messages: user('tell me everything')},
    {temperature: 1, seed: 7, ignore_eos: true, max_tokens: 400, presence_penalty: 1.2, frequency_penalty: 0.4, messages: user('and then?')},
    {temperature: 0.8, seed: 9, n: 2, logprobs: true, top_logprobs: 2, ignore_eos: true, max_tokens: 250, messages: user('two stories')},
    {temperature: 1, seed: 5, max_tokens: 400, tools: [tool('light_on', 'area'), tool('say', 'text')], tool_choice: 'required', messages: user('turn on the light')},
    {temperature: 1, seed: 3, max_tokens: 400, response_format: {type: 'json_schema', json_schema: {name: 'home', schema}}, messages: user('describe the home')},
    {temperature: 1, seed: 11, max_tokens: 400, ignore_eos: true, stop: ['zzzz', 'qqq'], messages: user('who is there')},
];
const offered = ({function: {name, description, parameters}}) => ({name, description, input_schema: parameters});
const anthropic = [
    {temperature: 1, seed: 5, max_tokens: 400, tools: [tool('light_on', 'area'), tool('say', 'text')].map(offered), tool_choice: {type: 'any'}, messages: user('turn on the light')},
    {temperature: 1, seed: 3, max_tokens: 400, output_config: {format: {type: 'json_schema', schema}}, messages: user('describe the home')},
];
const asked = [...cases.map((body) => ['/v1/chat/completions', {...body, stream_options: {include_usage: true}}]), ...anthropic.map((body) => ['/v1/messages', body])];

// What of the chunks does not hang on when they were sent: the text of each choice, its calls, its end, the usage.
function collect(chunks) {
    const choices = [];
    let usage = null;
    for (const chunk of chunks) {
        if (chunk.usage) usage = {prompt: chunk.usage.prompt_tokens, completion: chunk.usage.completion_tokens};
        for (const c of chunk.choices) {
            const at = (choices[c.index] ??= {content: '', reasoning: '', calls: [], logprobs: [], roles: 0, finish: null});
            at.content += c.delta.content ?? '';
            at.reasoning += c.delta.reasoning_content ?? '';
            at.roles += c.delta.role ? 1 : 0;
            at.finish ??= c.finish_reason;
            at.logprobs.push(...(c.logprobs?.content ?? []));
            for (const t of c.delta.tool_calls ?? []) {
                const call = (at.calls[t.index] ??= {name: '', arguments: ''});
                call.name += t.function.name ?? '';
                call.arguments += t.function.arguments ?? '';
            }
        }
    }
    return JSON.stringify({choices, usage});
}

// The same of Anthropic's events. Each block begins where the one before it has ended.
function collect_events(events) {
    const blocks = [], ended = new Set();
    let last = null;
    for (const e of events) {
        if (e.type === 'content_block_start') {
            if (e.index !== blocks.length || ended.size !== blocks.length) return `a block out of turn: ${JSON.stringify(e)}`;
            blocks.push({type: e.content_block.type, name: e.content_block.name, text: ''});
        }
        if (e.type === 'content_block_delta') blocks[e.index].text += e.delta.text ?? e.delta.partial_json;
        if (e.type === 'content_block_stop') ended.add(e.index);
        if (e.type === 'message_delta') last = {...e.delta, read: e.usage.input_tokens + e.usage.cache_read_input_tokens, wrote: e.usage.output_tokens};
    }
    return ended.size === blocks.length ? JSON.stringify({blocks, last}) : `a block without an end: ${JSON.stringify(blocks)}`;
}

// Told for each client whose request has begun or gone on.
const grown = new Set();

async function ask([path, body], client) {
    grown.add(client);
    const r = await fetch(url + path, {
        method: 'POST',
        headers: {'content-type': 'application/json', 'cache-control': 'no-store'},
        body: JSON.stringify({model, stream: true, ...body}),
    });
    const decoder = new TextDecoder();
    let text = '';
    for await (const bytes of r.body) {
        text += decoder.decode(bytes, {stream: true});
        grown.add(client);
    }
    if (r.status !== 200) return `HTTP ${r.status}: ${text}`;
    const data = text.split('\n').filter((l) => l.startsWith('data: ')).map((l) => l.slice(6));
    const events = path === '/v1/messages', last = events ? '{"type":"message_stop"}' : '[DONE]';
    if (data.pop() !== last) return `cut: ${text.slice(-300)}`;
    const chunks = data.map((d) => JSON.parse(d));
    const error = chunks.find((c) => c.error);
    return error ? `error: ${JSON.stringify(error)}` : (events ? collect_events : collect)(chunks);
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const metric = async (name) => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (.*)$`, 'gm'))].reduce((sum, m) => sum + Number(m[1]), 0);
};

// One at a random moment, and the next when all are back and each request has gone on: one under which workers die again
// and again before it grows is taken for what kills them.
const N_CLIENTS = 4;
let over = false, hits = 0;
async function disturb() {
    while (!over) {
        await sleep(50 + Math.random() * 700);
        while (!over && grown.size < N_CLIENTS) await sleep(5);
        const {replicas} = await (await fetch(`${url}/readyz`)).json();
        const mine = replicas.filter((r) => r.model === model);
        if (over || mine.some((r) => r.state !== 'ready')) continue;
        try {
            process.kill(mine[Math.floor(Math.random() * mine.length)].pid, signal);
            hits++;
            grown.clear();
        } catch {
            // it had died already
        }
        if (signal === 'SIGSTOP') await sleep(1500);
    }
}

const expected = [];
for (const c of asked) expected.push(await ask(c, 0));
grown.clear();
const wrong = expected.filter((e) => !e.startsWith('{'));
if (wrong.length) {
    console.log(`undisturbed: ${wrong[0]}`);
    process.exit(1);
}
const disturbing = signal === 'none' ? null : disturb();
const end = Date.now() + Number(seconds) * 1000;
let n = 0, bad = 0;
async function client(k) {
    for (let i = k; Date.now() < end; i++) {
        const got = await ask(asked[i % asked.length], k);
        n++;
        if (got === expected[i % asked.length]) continue;
        if (bad++ === 0) console.log(`case ${i % asked.length}:\n  got      ${got}\n  expected ${expected[i % asked.length]}`);
    }
}
await Promise.all([...Array(N_CLIENTS).keys()].map(client));
over = true;
await disturbing;
await sleep(1100); // /metrics is made once a second
const moves = await metric('shoal_moves_total'), gap = await metric('shoal_move_gap_seconds_sum');
console.log(`${n} answers, ${bad} lost or different, ${hits} workers hit, ${moves} moves, ${(gap / (moves || 1) * 1000).toFixed(0)} ms each`);
process.exit(bad ? 1 : 0);
