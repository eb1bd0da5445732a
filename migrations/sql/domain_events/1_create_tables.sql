-- +goose Up
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.domain_events (
  id                bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
  type              text        NOT NULL,
  version           integer     NOT NULL DEFAULT 1,
  payload           jsonb       NOT NULL,
  recorded_at       timestamptz NOT NULL DEFAULT now(),
  occurred_at       timestamptz NOT NULL DEFAULT now(),
  dedupe_key        text,
  suppressed        text,
  -- how long it is kept, copied from its declaration when it was recorded: a policy's
  -- word, a window of its own, or neither, which is the default window. A word that is
  -- not known goes by the default window too, so it is no constraint here
  retention_policy  text,
  retention_seconds integer,
  -- a dead letter keeps it; set and cleared by triggers, so that no sweep reads it in vain
  parked            boolean     NOT NULL DEFAULT false,
  -- in UTC, so that a day is a day and the expression immutable
  expires_at        timestamptz GENERATED ALWAYS AS
    (((recorded_at AT TIME ZONE 'UTC') + retention_seconds * interval '1 second') AT TIME ZONE 'UTC') STORED,
  CONSTRAINT domain_events_pkey PRIMARY KEY (id),
  CONSTRAINT domain_events_type_check CHECK (type <> ''),
  CONSTRAINT domain_events_version_check CHECK (version > 0),
  CONSTRAINT domain_events_window_check CHECK (retention_seconds > 0),
  CONSTRAINT domain_events_retention_check CHECK (retention_policy IS NULL OR retention_seconds IS NULL),
  -- an event that goes early forgets its key early, and a late repetition would be taken for new
  CONSTRAINT domain_events_dedupe_check CHECK (dedupe_key IS NULL OR retention_policy IS NULL OR retention_policy NOT IN ({{.Policies}})),
  CONSTRAINT domain_events_parked_check CHECK (NOT parked OR retention_policy IS NOT DISTINCT FROM {{literal .PolicySucceeded}})
);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE UNIQUE INDEX domain_events_dedupe
  ON {{.Schema}}.domain_events (dedupe_key)
  WHERE dedupe_key IS NOT NULL;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.domain_event_deliveries (
  id            bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
  event_id      bigint      NOT NULL,
  receiver      text        NOT NULL,
  target        text        NOT NULL DEFAULT '',
  status        text        NOT NULL DEFAULT {{literal .Pending}},
  due_at        timestamptz NOT NULL DEFAULT now(),
  claimed_by    text,
  claimed_at    timestamptz,
  claimed_until timestamptz,
  attempts      integer     NOT NULL DEFAULT 0,
  last_error    text,
  finished_at   timestamptz,
  CONSTRAINT domain_event_deliveries_pkey PRIMARY KEY (id),
  CONSTRAINT domain_event_deliveries_key UNIQUE (event_id, receiver, target),
  CONSTRAINT domain_event_deliveries_event_fkey FOREIGN KEY (event_id) REFERENCES {{.Schema}}.domain_events (id),
  CONSTRAINT domain_event_deliveries_receiver_check CHECK (receiver <> ''),
  CONSTRAINT domain_event_deliveries_status_check CHECK (status IN ({{.Statuses}})),
  CONSTRAINT domain_event_deliveries_attempts_check CHECK (attempts >= 0),
  CONSTRAINT domain_event_deliveries_claim_check CHECK (
    num_nonnulls(claimed_by, claimed_at, claimed_until) = CASE status WHEN {{literal .Claimed}} THEN 3 ELSE 0 END),
  CONSTRAINT domain_event_deliveries_finished_check CHECK ((finished_at IS NOT NULL) = (status IN ({{.Terminal}})))
);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TABLE {{.Schema}}.domain_event_receivers (
  receiver     text        NOT NULL,
  -- the newest success among deliveries that are gone, or no success any more
  last_success timestamptz NOT NULL,
  CONSTRAINT domain_event_receivers_pkey PRIMARY KEY (receiver)
);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION {{.Schema}}.domain_events_park() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {{.Dollar}}
BEGIN
  -- One at a time for each event. What others did to its deliveries before is seen
  -- by the next statement, which has a snapshot of its own. A dead letter that is
  -- deleted is not asked for: whoever sweeps deletes its event next.
  PERFORM FROM {{.Schema}}.domain_events e
    WHERE e.id = NEW.event_id AND e.retention_policy = {{literal .PolicySucceeded}}
      FOR NO KEY UPDATE;
  IF FOUND THEN
    UPDATE {{.Schema}}.domain_events e
       SET parked = NOT e.parked
     WHERE e.id = NEW.event_id
       AND e.retention_policy = {{literal .PolicySucceeded}}
       AND e.parked <> EXISTS (SELECT FROM {{.Schema}}.domain_event_deliveries d
                                WHERE d.event_id = NEW.event_id
                                  AND d.status IN ({{.DeadLetters}}));
  END IF;
  RETURN NULL;
END
{{.Dollar}};
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION {{.Schema}}.domain_events_remember_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {{.Dollar}}
BEGIN
  -- in the order of the key, so that two who delete at once can not deadlock here
  INSERT INTO {{.Schema}}.domain_event_receivers AS r (receiver, last_success)
  SELECT g.receiver, max(g.finished_at)
    FROM gone g
   WHERE g.status = {{literal .Succeeded}}
   GROUP BY g.receiver
   ORDER BY g.receiver
  ON CONFLICT (receiver) DO UPDATE SET last_success = excluded.last_success
   WHERE r.last_success < excluded.last_success;
  RETURN NULL;
END
{{.Dollar}};
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION {{.Schema}}.domain_events_remember_reopened() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {{.Dollar}}
BEGIN
  INSERT INTO {{.Schema}}.domain_event_receivers AS r (receiver, last_success)
  VALUES (OLD.receiver, OLD.finished_at)
  ON CONFLICT (receiver) DO UPDATE SET last_success = excluded.last_success
   WHERE r.last_success < excluded.last_success;
  RETURN NULL;
END
{{.Dollar}};
-- +goose StatementEnd
-- +goose StatementBegin
-- they run as their owner, and a table of somebody else's could call them too
REVOKE ALL ON FUNCTION {{.Schema}}.domain_events_park(), {{.Schema}}.domain_events_remember_gone(), {{.Schema}}.domain_events_remember_reopened() FROM PUBLIC;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER domain_event_deliveries_park_new
  AFTER INSERT ON {{.Schema}}.domain_event_deliveries
  FOR EACH ROW WHEN (NEW.status IN ({{.DeadLetters}}))
  EXECUTE FUNCTION {{.Schema}}.domain_events_park();
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER domain_event_deliveries_park
  AFTER UPDATE OF status ON {{.Schema}}.domain_event_deliveries
  FOR EACH ROW WHEN ((OLD.status IN ({{.DeadLetters}})) <> (NEW.status IN ({{.DeadLetters}})))
  EXECUTE FUNCTION {{.Schema}}.domain_events_park();
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER domain_event_deliveries_remember_gone
  AFTER DELETE ON {{.Schema}}.domain_event_deliveries
  REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT
  EXECUTE FUNCTION {{.Schema}}.domain_events_remember_gone();
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER domain_event_deliveries_remember_reopened
  AFTER UPDATE OF status ON {{.Schema}}.domain_event_deliveries
  FOR EACH ROW WHEN (OLD.status = {{literal .Succeeded}} AND NEW.status <> {{literal .Succeeded}})
  EXECUTE FUNCTION {{.Schema}}.domain_events_remember_reopened();
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
SET LOCAL lock_timeout = '5s';
-- +goose StatementEnd
-- +goose StatementBegin
LOCK TABLE {{.Schema}}.domain_events, {{.Schema}}.domain_event_deliveries, {{.Schema}}.domain_event_receivers IN ACCESS EXCLUSIVE MODE;
-- +goose StatementEnd
-- +goose StatementBegin
DO {{.Dollar}}
BEGIN
  -- asked under the lock, so that nothing can come in between this and the drop
  IF EXISTS (SELECT FROM {{.Schema}}.domain_events)
     OR EXISTS (SELECT FROM {{.Schema}}.domain_event_deliveries)
     OR EXISTS (SELECT FROM {{.Schema}}.domain_event_receivers) THEN
    RAISE EXCEPTION USING
      ERRCODE = {{literal .HoldsRows}},
      MESSAGE = {{literal (printf "%s.domain_events, %s.domain_event_deliveries and %s.domain_event_receivers are not all empty" .Schema .Schema .Schema)}},
      HINT = 'nothing was dropped; where the data is truly not needed, empty the three tables yourself and run it again';
  END IF;
END
{{.Dollar}};
-- +goose StatementEnd
-- +goose StatementBegin
DROP TABLE {{.Schema}}.domain_event_receivers, {{.Schema}}.domain_event_deliveries, {{.Schema}}.domain_events;
-- +goose StatementEnd
-- +goose StatementBegin
DROP FUNCTION {{.Schema}}.domain_events_park(), {{.Schema}}.domain_events_remember_gone(), {{.Schema}}.domain_events_remember_reopened();
-- +goose StatementEnd
