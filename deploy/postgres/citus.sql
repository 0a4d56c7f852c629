-- Split a store by owner over the nodes of a Citus cluster: run it after the first process has made the tables.
-- NOT TRIED: docs/scale.md says why, and what is not known.
DROP INDEX memci.context_key;
CREATE INDEX context_key ON memci.context (key);
CREATE UNIQUE INDEX context_owner_key ON memci.context (owner_key, key);
SELECT create_distributed_table('memci.context', 'owner_key');
SELECT create_distributed_table(table_name::regclass, 'owner_key', colocate_with => 'memci.context')
FROM unnest(ARRAY[
    'memci.entry', 'memci.view', 'memci.page', 'memci.compaction', 'memci.op', 'memci.call', 'memci.tools'
]) AS table_name;
SELECT citus_add_local_table_to_metadata('memci.ticket');
