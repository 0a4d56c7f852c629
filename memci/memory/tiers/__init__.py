"""The values of the tiers and their formulas: heat, episodes, topics, facts, profile, events, graph."""
