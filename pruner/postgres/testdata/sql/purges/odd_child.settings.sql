SELECT (extract(epoch FROM set_config('statement_timeout', (coalesce(least(nullif((extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::bigint, 0), $1::bigint), $1::bigint))::text, true)::interval) * 1000)::bigint
     , (extract(epoch FROM set_config('lock_timeout', (coalesce(least(nullif((extract(epoch FROM current_setting('lock_timeout')::interval) * 1000)::bigint, 0), $2::bigint), $2::bigint))::text, true)::interval) * 1000)::bigint
     , set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)  -- what is said to be gone is gone
     , set_config('jit', 'off', true)
     , set_config('plan_cache_mode', 'force_generic_plan', true)
     , set_config('work_mem', '16MB', true)
     , set_config('enable_seqscan', 'off', true)
     , set_config('enable_bitmapscan', 'off', true)
     , set_config('enable_nestloop', 'on', true)
     , set_config('enable_mergejoin', 'off', true)
     , set_config('enable_sort', 'off', true)
     , set_config('enable_incremental_sort', 'off', true)
     , set_config('max_parallel_workers_per_gather', '0', true)
     , set_config('enable_hashjoin', 'off', true)
     , set_config('app.purging', E'it''s \\ on', true)
     , set_config('row_security', 'off', true)  -- an error instead of rows that are silently not seen
-- $1: statement timeout
-- $2: lock timeout
