// The Model Context Protocol's own clients of npm, unmodified: the package of the versions with a handshake, and the one
// that may do without.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OlderTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { client } from "./calls.mjs";

const url = new URL("/mcp", process.env.SHOAL_URL);
const about = { name: "tests", version: "1" };
const kinds = [
  ["@modelcontextprotocol/sdk", () => [new OlderClient(about), new OlderTransport(url)]],
  ["@modelcontextprotocol/client", () => [new Client(about), new StreamableHTTPClientTransport(url)]],
];

for (const [name, make] of kinds) {
  const call = client(name);
  const connected = async (use) => {
    const [c, transport] = make();
    await c.connect(transport);
    try { return await use(c); } finally { await c.close(); }
  };

  call("connect, listTools", "a tool for each task that is served", () => connected(async (c) => {
    assert.equal(c.getServerVersion()?.name, "shoal");
    const { tools } = await c.listTools();
    const named = Object.fromEntries(tools.map((t) => [t.name, t]));
    for (const n of ["process", "chat", "classify", "tag", "embed", "collections", "search", "answer"]) assert.ok(named[n], n);
    assert.ok(named.classify.inputSchema.properties.model.enum.includes("home-intent"));
    assert.equal(named.classify.annotations.readOnlyHint, true);
  }));

  call("callTool", "process, embed; what a tool refuses is a result that says so", () => connected(async (c) => {
    const done = await c.callTool({ name: "process", arguments: { input: "turn on the kitchen light" } });
    assert.ok(!done.isError, JSON.stringify(done));
    assert.equal(done.structuredContent.tool_call.name, "light.turn_on");
    assert.deepEqual(JSON.parse(done.content[0].text), done.structuredContent);
    const vectors = await c.callTool({ name: "embed", arguments: { input: ["one", "two"] } });
    assert.equal(vectors.structuredContent.data.length, 2);
    const bad = await c.callTool({ name: "search", arguments: { collection: "../files", query: "x" } });
    assert.ok(bad.isError && /no name of a collection/.test(bad.content[0].text), JSON.stringify(bad));
    await assert.rejects(c.callTool({ name: "delete_everything", arguments: {} }), /there is no tool "delete_everything"/);
  }));
}
