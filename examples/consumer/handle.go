package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// handler does the work on the events of a topic. Its name is a part of the key of the inbox: each handler has every event
// once. A handler that gets another name has every event again.
type handler struct {
	name string
	do   func(context.Context, pgx.Tx, message, inboxoutbox.Receipt) error
}

func (c *consumer) handlers() map[string]handler {
	return map[string]handler{
		"payments": {"booking", c.book},
		"receipts": {"mail", c.mail},
	}
}

// book books a payment, and says so to the outbox in the same transaction.
func (c *consumer) book(ctx context.Context, tx pgx.Tx, m message, r inboxoutbox.Receipt) error {
	var p payment
	if err := json.Unmarshal(m.body, &p); err != nil {
		return fmt.Errorf("read the payment: %w", err)
	}
	tag, err := tx.Exec(ctx, `UPDATE accounts SET balance = balance + $2 WHERE name = $1 AND open`, p.Account, p.Amount)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("account %s is not open", p.Account)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO bookings (event_id, account, amount) VALUES ($1, $2, $3)`, m.eventID, p.Account, p.Amount); err != nil {
		return err
	}
	// The id of what follows is made of the id of what it follows from: it is the same at each attempt.
	_, err = c.store.Add(ctx, tx, inboxoutbox.Draft{EventID: "receipt-of-" + m.eventID, Topic: "receipts", Key: p.Account, Body: m.body})
	if err != nil {
		return err
	}
	if p.Shy && r.Attempts == 1 {
		return errors.New("not at the first attempt") // all that was done is undone
	}
	return nil
}

// mail mails a receipt. A mail that is really sent can not be rolled back: it would be sent again after a death before the
// commit, and needs a key by which whoever sends it knows it, the event's id.
func (c *consumer) mail(ctx context.Context, tx pgx.Tx, m message, _ inboxoutbox.Receipt) error {
	var p payment
	if err := json.Unmarshal(m.body, &p); err != nil {
		return fmt.Errorf("read the receipt: %w", err)
	}
	_, err := tx.Exec(ctx, `INSERT INTO mails (event_id, account) VALUES ($1, $2)`, m.eventID, p.Account)
	return err
}
