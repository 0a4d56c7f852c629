"""Consolidation: the steps that derive episodes, facts and summaries from pages, by rule or with a model."""
