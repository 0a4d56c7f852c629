"""A client of MCP that reads what an agent has stored, as a coding agent would.

pip install 'memci[mcp]'
python examples/mcp_client.py
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters

from memci import Context

with Context.open("mcp_client.db", "alice", owner="ada", window=2_000) as context:
    for number in range(1, 31):
        answer = {"role": "assistant", "content": f"Stop {number} is served by IC {number * 7}. " * 6}
        context.append_turn(f"Which train goes to stop {number}?", answer, op_id=f"stop {number}")

server = StdioServerParameters(command=sys.executable, args=["-m", "memci", "mcp", "mcp_client.db", "--owner", "ada"])


async def main() -> None:
    """Search, read the page that was found, and store a note."""
    async with Client(server) as client:
        found = await client.call_tool("search_memory", {"query": "Which train goes to stop 12?", "k": 1})
        best = found.structured_content["messages"][0]
        print(f"found: page #{best['page']}, {best['uri']}")

        page = await client.call_tool("recall_page", {"page": best["page"]})
        for message in page.structured_content["messages"]:
            print(f"{message['role']}: {message['text'][:40]}")

        note = {"role": "user", "content": "Stop 12 was checked."}
        stored = await client.call_tool("append_turn", {"messages": [note], "op_id": "check 12"})
        print(f"stored: page #{stored.structured_content['page']}")

        text = (await client.read_resource(best["uri"])).contents[0].text
        print(text.splitlines()[0])


asyncio.run(main())
