// record_llama.mjs GGUF: llama.cpp's token ids, greedy replies and log-probabilities for inputs.json and passage.txt,
// as JSON on standard output. See README.md for the versions and how to run it.
import fs from "node:fs";
import { createRequire } from "node:module";
const { getLlama } = await import(createRequire(process.cwd() + "/").resolve("node-llama-cpp"));
const here = new URL(".", import.meta.url).pathname;
const inputs = JSON.parse(fs.readFileSync(here + "inputs.json", "utf8"));
const passage = fs.readFileSync(here + "passage.txt", "utf8");

const llama = await getLlama({ gpu: false, build: "never" });
const model = await llama.loadModel({ modelPath: process.argv[2] });
const context = await model.createContext({ contextSize: 2048, batchSize: 512, threads: 1 });

// Node's bindings renormalise the softmax in single precision; dividing by the sum undoes that.
function judged(probabilities, token) {
    let sum = 0, best = -1, second = 0, first = 0;
    for (const [id, p] of probabilities) {
        sum += p;
        if (p > first) [second, first, best] = [first, p, id];
        else if (p > second) second = p;
    }
    const round = (x) => Math.round(x * 1e5) / 1e5;
    const id = token === undefined ? best : token;
    return { id, log_prob: round(Math.log(probabilities.get(id) / sum)), gap: round(Math.log(first / second)), best };
}
const sequence = context.getSequence();
const SLICE = 32;
const next = { generateNext: { probabilities: true } };

async function reply(ids, n) {
    await sequence.clearHistory();
    const out = [];
    let feed = ids.map((id, i) => (i === ids.length - 1 ? [id, next] : id));
    while (out.length < n) {
        const results = await sequence.controlledEvaluate(feed);
        const r = judged(results[feed.length - 1].next.probabilities);
        out.push({ id: r.id, log_prob: r.log_prob, gap: r.gap });
        if (model.isEogToken(r.id)) break;
        feed = [[r.id, next]];
    }
    console.error(`${out.length} tokens`);
    return { prompt: ids, ids: out.map((r) => r.id), log_probs: out.map((r) => r.log_prob), gaps: out.map((r) => r.gap) };
}

async function read(ids) {
    await sequence.clearHistory();
    const log_probs = [];
    for (let from = 0; from < ids.length - 1; from += SLICE) { // a slice's probabilities fit into memory
        const slice = ids.slice(from, from + SLICE);
        const results = await sequence.controlledEvaluate(slice.map((id) => [id, next]));
        for (let i = 0; i < slice.length && from + i + 1 < ids.length; i++)
            log_probs.push(judged(results[i].next.probabilities, ids[from + i + 1]).log_prob);
    }
    return log_probs;
}

const tokens = (text, special) => [...model.tokenize(text, special, "trimLeadingSpace")];
const replies = [];
for (const text of inputs.prompts) replies.push(await reply(tokens(text, false), 24));
for (const text of inputs.chats)
    replies.push(await reply(tokens(
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n" +
        `<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`, true), 24));
const ids = tokens(passage, false);
const log_probs = await read(ids);
const result = {
    file: process.argv[2].split("/").pop(),
    tokens: inputs.texts.map((text) => tokens(text, false)),
    passage: { ids, perplexity: Math.exp(-log_probs.reduce((a, b) => a + b, 0) / log_probs.length), log_probs },
    replies,
};
console.log(JSON.stringify(result));
process.exit(0);
