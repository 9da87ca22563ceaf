// Requests of this page as commands and programs, offered for copying.

import { hasKey } from "/assets/page/api.js";
import { $, say } from "/assets/page/dom.js";

export function offerCopy(title, text) {
  say($("copy-title"), title);
  say($("copy-said"), "");
  $("copy-text").textContent = text;
  $("copy-dialog").showModal();
  $("copy-do").focus();
}

$("copy-close").addEventListener("click", () => $("copy-dialog").close());
$("copy-do").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("copy-text").textContent);
    say($("copy-said"), "Copied");
  } catch {
    getSelection().selectAllChildren($("copy-text"));
    say($("copy-said"), "Selected: press Ctrl+C");
  }
});

// ---- as a command, as a program -------------------------------------------------------------------

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function asCurl(path, body) {
  const stream = body.stream ? " -N" : "";
  return `curl${stream} ${quote(location.origin + path)} \\
  -H 'content-type: application/json' \\
${hasKey() ? '  -H "authorization: Bearer $SHOAL_API_KEY" \\\n' : ""}  -d ${quote(JSON.stringify(body, null, 2))}
`;
}

export function asJs(body) {
  const { stream, stream_options, ...rest } = body;
  const text = JSON.stringify(rest, null, 2).replace(/\n}$/, ",\n  \"stream\": true\n}");
  return `// npm install openai
import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${JSON.stringify(`${location.origin}/v1`)}, apiKey: process.env.SHOAL_API_KEY ?? "none" });
const stream = await client.chat.completions.create(${text});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
`;
}
