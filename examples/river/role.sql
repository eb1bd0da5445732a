-- All that the role of the sweep needs, to be run by the owner of River's tables.
GRANT SELECT, DELETE ON public.river_job TO river_sweeper;
-- On any one column: it lets a batch pass over a job that somebody else has locked.
GRANT UPDATE (tags) ON public.river_job TO river_sweeper;
