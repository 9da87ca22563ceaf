"""The Model Context Protocol's own client of PyPI, unmodified: with and without the handshake of older versions."""

import asyncio
import json
import os

import mcp
from calls import client, equal

URL = os.environ["SHOAL_URL"] + "/mcp"
call = client("mcp")


def session(mode, use):
    async def run():
        async with mcp.Client(URL, mode=mode) as c:
            return await use(c)

    return asyncio.run(run())


for mode in ("auto", "legacy", "2026-07-28"):

    @call(f"mode={mode}: list_tools", "a tool for each task that is served, with the models that do it")
    def _(mode=mode):
        async def use(c):
            return c.protocol_version, (await c.list_tools()).tools

        version, tools = session(mode, use)
        equal(version, "2025-11-25" if mode == "legacy" else "2026-07-28")
        named = {t.name: t for t in tools}
        for name in ("process", "chat", "classify", "tag", "embed", "collections", "search", "answer"):
            assert name in named, sorted(named)
        assert "rerank" not in named, "nothing here ranks"
        assert "home-intent" in named["classify"].input_schema["properties"]["model"]["enum"]
        equal(named["process"].input_schema["properties"]["pipeline"]["enum"], ["home"])

    @call(f"mode={mode}: call_tool", "process, chat, classify; what a tool refuses is a result that says so")
    def _(mode=mode):
        async def use(c):
            done = await c.call_tool("process", {"input": "turn on the kitchen light"})
            assert not done.is_error, done
            equal(done.structured_content["tool_call"]["name"], "light.turn_on")
            equal(json.loads(done.content[0].text), done.structured_content)
            said = await c.call_tool("chat", {"model": "home-chat-s", "prompt": "hello", "max_tokens": 8})
            equal(said.content[0].text, said.structured_content["choices"][0]["message"]["content"])
            kinds = await c.call_tool("classify", {"model": "home-intent", "input": ["turn on the light", "tell a joke"], "top_k": 1})
            equal([row["labels"][0]["label"] for row in kinds.structured_content["data"]], ["iot_hue_lighton", "general_joke"])
            bad = await c.call_tool("classify", {"model": "no-such", "input": "x"})
            assert bad.is_error and "no-such" in bad.content[0].text, bad
            bad = await c.call_tool("classify", {"model": "home-intent"})
            assert bad.is_error and '"input"' in bad.content[0].text, bad
            try:
                await c.call_tool("delete_everything", {})
            except mcp.MCPError as e:
                equal(e.error.code, -32602)
            else:
                raise AssertionError("a tool that is none was called")

        session(mode, use)
