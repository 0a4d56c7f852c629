"""The tiers: values and formulas of what is known. Heat, episodes, facts, profile, events, graph."""
