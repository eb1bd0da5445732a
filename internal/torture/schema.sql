-- Three families of tables, and the bare twins of two of them. There are no foreign keys: they would stand between a wrong
-- delete and its row, and what is tortured is the sweep.

-- The owner form: events of runs, kept while their run lives.
CREATE TABLE runs (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  status  text   NOT NULL,
  touched int    NOT NULL DEFAULT 0
);
CREATE INDEX runs_live ON runs (id) WHERE status NOT IN ('completed', 'failed', 'cancelled');
CREATE TABLE run_events (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id     bigint,
  created_at timestamptz NOT NULL,
  kind       text        NOT NULL DEFAULT 'log',
  touched    int         NOT NULL DEFAULT 0
);
CREATE INDEX run_events_retention ON run_events (created_at, id);
CREATE INDEX run_events_run ON run_events (run_id);

-- The row's own state: jobs, through an index that leads with the state, so that each window is an arm of its own.
CREATE TABLE jobs (
  id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  state       text,
  finished_at timestamptz,
  hold        boolean,
  touched     int     NOT NULL DEFAULT 0
);
CREATE INDEX jobs_live ON jobs (id) WHERE state IN ('queued', 'running');

-- Parents: events with deliveries, and attempts below those. On a loose event deliveries are requeued without the lock of
-- the event, on all others never.
CREATE TABLE events (
  id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  recorded_at timestamptz NOT NULL,
  loose       boolean     NOT NULL,
  hold        boolean     NOT NULL DEFAULT false,
  touched     int         NOT NULL DEFAULT 0
);
CREATE INDEX events_retention ON events (recorded_at, id);
CREATE TABLE deliveries (
  id       bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id bigint  NOT NULL,
  loose    boolean NOT NULL,
  status   text    NOT NULL
);
CREATE INDEX deliveries_event ON deliveries (event_id, id);
CREATE INDEX deliveries_owed ON deliveries (event_id) WHERE status NOT IN ('delivered', 'dead');
CREATE TABLE attempts (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  delivery_id bigint NOT NULL
);
CREATE INDEX attempts_delivery ON attempts (delivery_id, id);

-- The bare twins have no trigger, so that the engine counts what it removes by the statistics. The jobs among them go
-- through an index on the age, in one pass with windows of unequal length.
CREATE TABLE bare_runs (LIKE runs INCLUDING ALL);
CREATE TABLE bare_run_events (LIKE run_events INCLUDING ALL);
CREATE TABLE bare_jobs (LIKE jobs INCLUDING ALL);
CREATE INDEX jobs_retention ON jobs (state, finished_at);
CREATE INDEX bare_jobs_retention ON bare_jobs (finished_at, id);

-- The ledger has a line for each row that anybody deleted. wrong is why it should have stayed, as the trigger saw it.
CREATE UNLOGGED TABLE ledger (
  family text        NOT NULL,  -- the sweep
  part   text        NOT NULL,  -- the table
  id     bigint      NOT NULL,
  key    bigint,                -- the run or the event that it belonged to
  strict boolean     NOT NULL,  -- whoever changes what decides takes the lock that the sweep takes
  who    text        NOT NULL,
  xid    xid         NOT NULL,
  at     timestamptz NOT NULL,
  age    timestamptz,
  state  text,                  -- the row's own, or the run's
  wrong  text
);
CREATE INDEX ledger_wrong ON ledger (family) WHERE wrong IS NOT NULL;

-- The history has a line for each change of what decides: whether a run lives, or is gone, and whether an event is owed.
CREATE UNLOGGED TABLE history (
  n       bigint  GENERATED ALWAYS AS IDENTITY,
  family  text    NOT NULL,
  key     bigint  NOT NULL,
  protects boolean NOT NULL,
  xid     xid     NOT NULL
);

-- enter writes a line. Only sweepers are judged: a program may delete what it likes.
CREATE FUNCTION enter(family text, part text, id bigint, key bigint, strict boolean, age timestamptz, state text, wrong text)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO ledger
  VALUES (family, part, id, key, strict, current_setting('application_name'), pg_current_xact_id()::xid, clock_timestamp(), age, state,
          CASE WHEN current_setting('application_name') LIKE 'sweep %' THEN wrong END);
END $$;

-- young is what is wrong with an age, whatever guards the row; null: nothing.
CREATE FUNCTION young(age timestamptz, keep interval) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN CASE
    WHEN age IS NULL OR age < '1990-01-01 00:00+00' THEN 'it has no usable age'
    WHEN age >= clock_timestamp() - keep THEN 'it is within its window'
  END;
END $$;

-- These functions are VOLATILE, so each query in them has a snapshot of its own: it sees what was committed until then.
CREATE FUNCTION run_event_gone() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  run text;
BEGIN
  SELECT r.status INTO run FROM runs r WHERE r.id = OLD.run_id;
  PERFORM enter('run_events', 'run_events', OLD.id, OLD.run_id, true, OLD.created_at, run, CASE
    WHEN run IS NULL THEN 'its run does not exist'
    WHEN run NOT IN ('completed', 'failed', 'cancelled') THEN 'its run is ' || run
    WHEN OLD.kind = 'pinned' THEN 'it is outside of the sweep'
    ELSE young(OLD.created_at, '2 s') END);
  RETURN NULL;
END $$;
CREATE TRIGGER gone AFTER DELETE ON run_events FOR EACH ROW EXECUTE FUNCTION run_event_gone();

CREATE FUNCTION job_gone() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM enter('jobs', 'jobs', OLD.id, NULL, true, OLD.finished_at, OLD.state, CASE
    WHEN OLD.hold THEN 'it is on hold'
    WHEN OLD.state = 'done' THEN young(OLD.finished_at, '2 s')
    WHEN OLD.state = 'failed' THEN young(OLD.finished_at, '4 s')
    ELSE 'it is ' || coalesce(OLD.state, 'in no state') END);
  RETURN NULL;
END $$;
CREATE TRIGGER gone AFTER DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION job_gone();

-- kept is why an event must stay as it is, with all that belongs to it; null: it may go.
CREATE FUNCTION kept(event bigint) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  e events;
BEGIN
  SELECT * INTO e FROM events x WHERE x.id = event;
  RETURN CASE
    WHEN e.id IS NULL THEN 'its event is gone before it'
    WHEN e.hold THEN 'its event is on hold'
    WHEN NOT e.loose AND EXISTS (SELECT FROM deliveries d WHERE d.event_id = event AND d.status NOT IN ('delivered', 'dead')) THEN 'its event is owed'
    ELSE 'its event: ' || young(e.recorded_at, '2 s')
  END;
END $$;

CREATE FUNCTION event_gone() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM enter('events', 'events', OLD.id, OLD.id, NOT OLD.loose, OLD.recorded_at, NULL, CASE
    WHEN OLD.hold THEN 'it is on hold'
    WHEN EXISTS (SELECT FROM deliveries d WHERE d.event_id = OLD.id) THEN 'it leaves a delivery behind'
    ELSE young(OLD.recorded_at, '2 s') END);
  RETURN NULL;
END $$;
CREATE TRIGGER gone AFTER DELETE ON events FOR EACH ROW EXECUTE FUNCTION event_gone();

CREATE FUNCTION delivery_gone() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM enter('events', 'deliveries', OLD.id, OLD.event_id, NOT OLD.loose, NULL, OLD.status, CASE
    WHEN OLD.status NOT IN ('delivered', 'dead') THEN 'it is owed'
    WHEN EXISTS (SELECT FROM attempts a WHERE a.delivery_id = OLD.id) THEN 'it leaves an attempt behind'
    ELSE kept(OLD.event_id) END);
  RETURN NULL;
END $$;
CREATE TRIGGER gone AFTER DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION delivery_gone();

CREATE FUNCTION attempt_gone() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  delivery deliveries;
BEGIN
  SELECT * INTO delivery FROM deliveries d WHERE d.id = OLD.delivery_id;
  PERFORM enter('events', 'attempts', OLD.id, delivery.event_id, NOT coalesce(delivery.loose, false), NULL, delivery.status, CASE
    WHEN delivery.id IS NULL THEN 'its delivery is gone before it'
    ELSE kept(delivery.event_id) END);
  RETURN NULL;
END $$;
CREATE TRIGGER gone AFTER DELETE ON attempts FOR EACH ROW EXECUTE FUNCTION attempt_gone();

CREATE FUNCTION run_changed() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO history (family, key, protects, xid)
  VALUES ('run_events', coalesce(NEW.id, OLD.id), NEW.status IS NULL OR NEW.status NOT IN ('completed', 'failed', 'cancelled'), pg_current_xact_id()::xid);
  RETURN NULL;
END $$;
CREATE TRIGGER changed AFTER INSERT OR DELETE OR UPDATE OF status ON runs FOR EACH ROW EXECUTE FUNCTION run_changed();

CREATE FUNCTION delivery_changed() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO history (family, key, protects, xid)
  SELECT 'events', x.event, EXISTS (SELECT FROM deliveries d WHERE d.event_id = x.event AND d.status NOT IN ('delivered', 'dead')), pg_current_xact_id()::xid
    FROM (SELECT coalesce(NEW.event_id, OLD.event_id) AS event) x;
  RETURN NULL;
END $$;
CREATE TRIGGER added AFTER INSERT ON deliveries FOR EACH ROW
  WHEN (NOT NEW.loose AND NEW.status NOT IN ('delivered', 'dead')) EXECUTE FUNCTION delivery_changed();
CREATE TRIGGER changed AFTER UPDATE OF status ON deliveries FOR EACH ROW
  WHEN (NOT NEW.loose AND (OLD.status IN ('delivered', 'dead')) <> (NEW.status IN ('delivered', 'dead'))) EXECUTE FUNCTION delivery_changed();
CREATE TRIGGER taken AFTER DELETE ON deliveries FOR EACH ROW
  WHEN (NOT OLD.loose AND OLD.status NOT IN ('delivered', 'dead')) EXECUTE FUNCTION delivery_changed();
