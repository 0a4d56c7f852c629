"""LoCoMo question answering: what a model answers from what a memory gives it, one harness for all memories."""
