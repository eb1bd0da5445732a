SELECT pg_stat_get_xact_tuples_deleted(<oid>)
     , pg_current_xact_id_if_assigned()::text
     , 0
