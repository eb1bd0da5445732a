SELECT pg_stat_get_xact_tuples_deleted(<oid>)
     , pg_current_xact_id_if_assigned()::text || ' '::text || extract(epoch FROM pg_postmaster_start_time()) || ' '::text || extract(epoch FROM now())
     , (SELECT count(*) FROM ONLY "public"."tokens" d
         WHERE d.ctid = ANY (coalesce(nullif(current_setting('prunectl.stayed', true), ''), '{}')::tid[])
           AND d."expires_at" < $1::timestamptz)
-- $1: cutoff
