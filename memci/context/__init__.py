"""The context: the live object that an agent holds.

context          the façade                   async_context   the same, awaited
compactor        when to compact, and how     renderer        the next request
tool_dispatch    answers to tool calls        loop            asks the model and answers its calls
memory_client    asks the memory              memory_feed     sends it pages
"""
