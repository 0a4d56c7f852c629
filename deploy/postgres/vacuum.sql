-- Vacuum the tables that change with every commit and every lock more often than Postgres does by itself.
ALTER TABLE memci.context SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE memci.ticket SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
