// The same as tests/python/mcp_server.py with the official SDK for TypeScript: `node mcp_server.mjs stdio|PORT LOG`.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const [how, log] = process.argv.slice(2);

function lights() {
  const server = new McpServer({ name: "lights", version: "1.0.0" });
  server.registerTool(
    "switch_light",
    { description: "Turns a light on or off.", inputSchema: { target: z.enum(["light.kitchen", "light.hall"]), on: z.boolean() } },
    async ({ target, on }) => {
      appendFileSync(log, JSON.stringify({ tool: "switch_light", target, on }) + "\n");
      return { content: [{ type: "text", text: `${target} is ${on ? "on" : "off"}` }] };
    },
  );
  return server;
}

if (how === "stdio") {
  await lights().connect(new StdioServerTransport());
} else {
  createServer(async (req, res) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    res.on("close", () => transport.close());
    await lights().connect(transport);
    await transport.handleRequest(req, res);
  }).listen(Number(how), "127.0.0.1");
}
