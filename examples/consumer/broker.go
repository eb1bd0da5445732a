package main

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// broker stands in for yours. It delivers at least once: what is not acknowledged within a time is delivered again, until it
// has tried for the whole of its redelivery time. It happens to be a table, and shares nothing with the work on a message,
// least of all a transaction: it could as well be at the other end of the world.
type broker struct {
	pool       *pgxpool.Pool
	ackTimeout time.Duration
	redelivery time.Duration
}

// partitions are those of the broker: messages of one key are in one of them.
const partitions = 4

// message is one delivery of a message.
type message struct {
	id       int64
	topic    string
	eventID  string
	body     json.RawMessage
	delivery int // the how manieth
}

// publish sends a message. Whether it was sent before is nothing that the broker asks.
func publish(ctx context.Context, pool *pgxpool.Pool, topic, key, eventID string, body json.RawMessage) error {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	_, err := pool.Exec(ctx, `INSERT INTO broker (topic, partition, event_id, body) VALUES ($1, $2, $3, $4)`, topic, hash.Sum32()%partitions, eventID, body)
	return err
}

// waiting are the partitions in which there is something to deliver.
func (b broker) waiting(ctx context.Context) ([]int, error) {
	rows, err := b.pool.Query(ctx, `
SELECT p FROM generate_series(0, $1 - 1) AS p
 WHERE EXISTS (SELECT FROM broker
                WHERE partition = p AND acked_at IS NULL AND deliver_at <= now() AND sent_at > now() - $2::interval)`, partitions, b.redelivery)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// take delivers up to n messages of a partition.
func (b broker) take(ctx context.Context, partition, n int) ([]message, error) {
	rows, err := b.pool.Query(ctx, `
WITH next AS (
  SELECT id FROM broker
   WHERE partition = $1 AND acked_at IS NULL AND deliver_at <= now() AND sent_at > now() - $2::interval
   ORDER BY deliver_at, id LIMIT $3 FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE broker AS b SET deliver_at = now() + $4::interval, deliveries = deliveries + 1
    FROM next WHERE b.id = next.id
  RETURNING b.*
)
SELECT id, topic, event_id, body, deliveries FROM taken ORDER BY id`, partition, b.redelivery, n, b.ackTimeout)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (m message, err error) {
		return m, row.Scan(&m.id, &m.topic, &m.eventID, &m.body, &m.delivery)
	})
}

// ack says that a message needs no further delivery.
func (b broker) ack(ctx context.Context, m message) error {
	_, err := b.pool.Exec(ctx, `UPDATE broker SET acked_at = now() WHERE id = $1`, m.id)
	return err
}

// putOff asks for the next delivery of a message in a while.
func (b broker) putOff(ctx context.Context, m message, pause time.Duration) error {
	_, err := b.pool.Exec(ctx, `UPDATE broker SET deliver_at = now() + $2::interval WHERE id = $1`, m.id, pause)
	return err
}
