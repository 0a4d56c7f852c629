"""Fault tests: what may go wrong is made to go wrong, and every promise is checked afterwards."""
