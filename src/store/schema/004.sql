-- Agents: what each session of one was and used. Cost in millionths of a US dollar; tokens_in is without what came from a
-- cache. NULL: it did not tell.
ALTER TABLE sessions ADD COLUMN harness TEXT;
ALTER TABLE sessions ADD COLUMN model TEXT;
ALTER TABLE sessions ADD COLUMN conversation TEXT;
ALTER TABLE sessions ADD COLUMN tokens_in INTEGER;
ALTER TABLE sessions ADD COLUMN tokens_out INTEGER;
ALTER TABLE sessions ADD COLUMN tokens_cache_write INTEGER;
ALTER TABLE sessions ADD COLUMN tokens_cache_read INTEGER;
ALTER TABLE sessions ADD COLUMN cost_micro INTEGER;

-- The harness in place of the one that the item's chain names.
ALTER TABLE items ADD COLUMN harness TEXT;

-- When an item that its agent's provider turned away goes on.
ALTER TABLE items ADD COLUMN retry_ms INTEGER;
