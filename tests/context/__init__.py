"""Tests of the façade: what a framework calls, and what it may rely on."""
