-- What the example is about: orders, and what was done for them.
CREATE TABLE IF NOT EXISTS orders (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  placed_at timestamptz NOT NULL DEFAULT now()
);

-- One row each time that a receiver has done its work. Nothing keeps it from being done twice, so that it is seen if it is.
CREATE TABLE IF NOT EXISTS work_done (
  event_id bigint      NOT NULL,
  receiver text        NOT NULL,
  done_at  timestamptz NOT NULL DEFAULT now()
);
