"""What a memory finds again: the evidence of questions about long talks, and the values that an agent's calls need."""
