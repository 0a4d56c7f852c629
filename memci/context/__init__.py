"""The context: the live object that an agent holds.

    context          the one façade              async_context   the same, awaited
    renderer         the next request            tool_dispatch   answers to the model's tool calls
    memory_client    asks the memory             memory_feed     gives it pages

This package knows nothing of providers, frameworks or terminals.
"""
