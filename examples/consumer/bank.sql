-- What the example is about: accounts, what was booked on them, and whom a receipt was mailed.
CREATE TABLE IF NOT EXISTS accounts (
  name    text    PRIMARY KEY,
  open    boolean NOT NULL DEFAULT true,
  balance bigint  NOT NULL DEFAULT 0
);

INSERT INTO accounts (name, open)
VALUES ('ada', true), ('ben', true), ('cleo', true), ('dan', true), ('eve', true), ('finn', true), ('gus', true), ('hal', false)
ON CONFLICT DO NOTHING;

-- One row each time that a handler has done its work. Nothing keeps it from being done twice, so that it is seen if it is.
CREATE TABLE IF NOT EXISTS bookings (
  event_id  text        NOT NULL,
  account   text        NOT NULL,
  amount    bigint      NOT NULL,
  booked_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS mails (
  event_id  text        NOT NULL,
  account   text        NOT NULL,
  mailed_at timestamptz NOT NULL DEFAULT now()
);

-- The broker, in place of yours: see broker.go.
CREATE TABLE IF NOT EXISTS broker (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic      text        NOT NULL,
  partition  integer     NOT NULL,
  event_id   text        NOT NULL,
  body       jsonb       NOT NULL,
  event_at   timestamptz NOT NULL DEFAULT now(), -- when the event was sent first
  sent_at    timestamptz NOT NULL DEFAULT now(),
  deliver_at timestamptz NOT NULL DEFAULT now(),
  deliveries integer     NOT NULL DEFAULT 0,
  acked_at   timestamptz
);

CREATE INDEX IF NOT EXISTS broker_waiting ON broker (partition, deliver_at, id) WHERE acked_at IS NULL;
