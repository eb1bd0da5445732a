SELECT set_config('enable_nestloop', 'on', true), set_config('enable_hashjoin', 'off', true), set_config('prunectl.empty', 'yes', true)
