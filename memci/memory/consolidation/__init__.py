"""Consolidation: the steps that turn pages into what is known, by rule or by a model."""
