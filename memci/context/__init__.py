"""The context: the live object that an agent holds.

    context          the one façade              async_context   the same, awaited
    compactor        when to compact, and how    renderer        the next request
    tool_dispatch    answers to tool calls
    memory_client    asks the memory             memory_feed     gives it pages

This package knows nothing of providers, frameworks or terminals.
"""
