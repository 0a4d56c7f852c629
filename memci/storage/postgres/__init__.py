"""Many contexts in a Postgres database, for many processes on many machines."""
