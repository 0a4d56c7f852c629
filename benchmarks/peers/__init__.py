"""What other context managers cost, and what they keep in sight: their real classes on the same conversations."""
